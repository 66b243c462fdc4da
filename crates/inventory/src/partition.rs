use crate::{Reading, Unknown};

/// How a card is partitioned, and which of its partitions this is.
#[derive(Debug, Clone)]
pub struct Partition {
    /// `SPX`, `DPX`, `TPX`, `QPX`, `CPX`.
    pub compute: Reading<String>,
    /// `NPS1`, `NPS2`, `NPS4`, `NPS8`.
    pub memory: Reading<String>,
    /// The GPU's place among its card's KFD nodes, from 0.
    pub id: u32,
}

impl Partition {
    /// The modes of a card that is not asked, for this reason.
    #[must_use]
    pub fn unread(why: &Unknown) -> Self {
        Self { compute: Err(why.clone()), memory: Err(why.clone()), id: 0 }
    }

    /// Whether the card reports a compute or memory mode: it is partitioned or can be.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.compute.is_ok() || self.memory.is_ok()
    }

    /// Whether the partition is its whole card: the card has no other KFD node and reports no mode but SPX. A
    /// container may see one node of a card in CPX.
    #[must_use]
    pub fn is_whole(&self, nodes_of_card: usize) -> bool {
        nodes_of_card == 1 && self.compute.as_deref().map_or(true, |mode| mode == "SPX")
    }
}
