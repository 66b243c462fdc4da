//! How far a switch has come, on disk: a killed one is finished by the next.

use inventory::PciAddress;
use inventory::partitioning::{Aim, Card, Change, Compute, Entry, Memory, Modes, Selector, Steps};
use root::{Attributes, Root};
use serde::{Deserialize, Serialize};

const PATH: &str = "/var/lib/rocworker/partition.json";
const SCHEMA_VERSION: u32 = 1;
const LIMIT: usize = 1 << 20;

/// A switch of cards, under way or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    schema_version: u32,
    pub goal: Goal,
    pub phase: Phase,
    /// The boot in which it began: no kernel keeps modes over the next.
    pub boot: Option<String>,
    /// When it began: `2026-11-29T15:14:27Z`.
    pub since: String,
    /// Every card of the driver, also where the goal leaves it out.
    pub cards: Vec<CardGoal>,
    /// Every card's modes before the first switch of this boot, for a reset.
    pub before: Vec<CardModes>,
    /// The memory mode that the driver was asked for, and takes at its next load.
    pub requested: Option<Memory>,
    /// Units that were stopped and are to be started again.
    pub units: Vec<String>,
    /// Why it failed, and what is true now.
    pub problem: Option<String>,
}

/// What a switch is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// A profile of the configuration, by its name.
    Profile(String),
    /// The modes before rocworker's first switch of this boot.
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is planned, and nothing is changed.
    Pending,
    /// Units stop, and processes leave the cards.
    Draining,
    /// Modes are written.
    Applying,
    /// The driver is unloaded and loaded, and compute modes are written after that.
    Reloading,
    /// Modes are read back.
    Verifying,
    Succeeded,
    Failed,
}

/// A card's modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardModes {
    pub pci: PciAddress,
    pub compute: Compute,
    /// `None` where the card has no memory modes.
    pub memory: Option<Memory>,
}

/// A card's modes before the switch, and those that it is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardGoal {
    #[serde(flatten)]
    pub aim: Aim,
    /// Whether the goal leaves the card out, which then has its modes again afterwards.
    pub is_skipped: bool,
}

impl Progress {
    pub(super) fn begun(goal: Goal, boot: Option<String>, since: String, cards: Vec<CardGoal>) -> Self {
        let modes = |card: &CardGoal| CardModes {
            pci: card.aim.pci,
            compute: card.aim.compute.from,
            memory: card.aim.memory.map(|memory| memory.from),
        };
        let before = cards.iter().map(modes).collect();
        Self {
            schema_version: SCHEMA_VERSION,
            goal,
            phase: Phase::Pending,
            boot,
            since,
            cards,
            before,
            requested: None,
            units: Vec::new(),
            problem: None,
        }
    }

    /// Reads the last switch; `None`: there was none.
    ///
    /// # Errors
    /// A sentence on why the file cannot be believed, and what to do.
    pub fn read(root: &Root) -> Result<Option<Self>, String> {
        let wrong = |problem: String| {
            format!("{}: {problem}; it says how far a switch came: remove it", root.shown(PATH).display())
        };
        let bytes = match root.read_trusted(PATH, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let progress: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if progress.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!(
                "schema_version is {}, and this rocworker reads {SCHEMA_VERSION}",
                progress.schema_version
            )));
        }
        Ok(Some(progress))
    }

    pub(super) fn is_there(root: &Root) -> bool {
        root.is_there(PATH)
    }

    pub(super) fn write(&self, root: &Root) -> anyhow::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        root.write(PATH, &bytes, Attributes { mode: 0o644, owner: None })?;
        Ok(())
    }

    /// Forgets the last switch, which an undo of the whole machine has reverted.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget(root: &Root) -> Result<(), root::Error> {
        root.remove(PATH).map(drop)
    }

    /// The modes that a card had before the first switch of this boot.
    pub(super) fn before(&self, pci: PciAddress) -> Option<&CardModes> {
        self.before.iter().find(|modes| modes.pci == pci)
    }

    /// Goes on where a switch was killed or failed: cards that are left out get their modes of before a load of the driver,
    /// and units that it stopped start in the end. `cards`: as they are now.
    pub(super) fn keep(&mut self, left: Self, cards: &[Card]) {
        (self.units, self.since, self.requested) = (left.units, left.since, left.requested);
        // A reset restores the modes that cards had before the first switch.
        if self.goal == Goal::Reset {
            return;
        }
        // Without a load nothing of rocworker's has changed cards that are left out.
        let was_loaded = left.cards.iter().any(|card| card.aim.changes_memory());
        let is_lost =
            |then: &CardGoal| then.is_skipped && (was_loaded || then.aim.compute.from != then.aim.compute.to);
        for then in left.cards.into_iter().filter(is_lost) {
            match self.cards.iter_mut().find(|card| card.aim.pci == then.aim.pci) {
                Some(card) if card.is_skipped => card.aim.compute.to = then.aim.compute.to,
                Some(_) => {}
                // The card is there, and its mode cannot be read now.
                None if cards.iter().any(|card| card.pci == then.aim.pci) => self.cards.push(then),
                None => {}
            }
        }
    }

    /// The writes that are left.
    pub(super) fn steps(&self, cards: &[Card]) -> Steps {
        // Cards that the goal leaves out are to have their modes, too: a reload resets them.
        let aim = |CardGoal { aim, .. }: &CardGoal| {
            let now = cards.iter().find(|now| now.pci == aim.pci);
            let now = now.and_then(|now| now.memory.clone().ok());
            let memory = aim.memory.map(|Change { to, .. }| Change { from: now.unwrap_or(to), to });
            Aim { memory, ..*aim }
        };
        let aims: Vec<Aim> = self.cards.iter().map(aim).collect();
        Steps::of(&aims, cards)
    }

    /// The modes of before, as a profile of the cards that have others now.
    #[must_use]
    pub fn of_before(&self, cards: &[Card]) -> Vec<Entry> {
        // A card that is gone has no modes to restore.
        let differs = |modes: &&CardModes| {
            let card = cards.iter().find(|card| card.pci == modes.pci);
            card.is_some_and(|card| {
                card.compute.as_ref() != Ok(&modes.compute)
                    || card.memory.as_ref().ok() != modes.memory.as_ref()
            })
        };
        let entry = |card: &CardModes| {
            let modes = Some(Modes { compute: card.compute, memory: card.memory });
            Entry { cards: Selector::Card(card.pci), modes, count: None }
        };
        self.before.iter().filter(differs).map(entry).collect()
    }

    /// Whether it has not ended: it is at work, or was killed.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Each mode that a card does not have as the goal asks, as the end of a sentence.
    #[must_use]
    pub fn wrong(&self, cards: &[Card]) -> Vec<String> {
        let mut wrong = Vec::new();
        for Aim { pci, compute, memory } in self.cards.iter().map(|card| card.aim) {
            let Some(card) = cards.iter().find(|card| card.pci == pci) else {
                wrong.push(format!("{pci} is gone"));
                continue;
            };
            match &card.compute {
                Ok(mode) if *mode == compute.to => {}
                Ok(mode) => wrong.push(format!("{pci} is in {mode}, not in {}", compute.to)),
                Err(why) => wrong.push(format!("{pci}: {why}")),
            }
            match (memory, &card.memory) {
                (None, _) => {}
                (Some(memory), Ok(mode)) if *mode == memory.to => {}
                (Some(memory), Ok(mode)) => wrong.push(format!("{pci} is in {mode}, not in {}", memory.to)),
                (Some(_), Err(why)) => wrong.push(format!("{pci}: {why}")),
            }
        }
        wrong
    }
}

impl Goal {
    /// The command that a person gives for it.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Self::Profile(name) => format!("rocworker partition set {name}"),
            Self::Reset => "rocworker partition reset".to_owned(),
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Profile(name) => f.write_str(name),
            Self::Reset => f.write_str("the modes of before"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(bus: u8, (from, to): (Compute, Compute), memory: (Memory, Memory), is_skipped: bool) -> CardGoal {
        let pci = PciAddress::parse(&format!("0000:{bus:02}:00.0")).unwrap();
        let memory = Some(Change { from: memory.0, to: memory.1 });
        CardGoal { aim: Aim { pci, compute: Change { from, to }, memory }, is_skipped }
    }

    fn progress(goal: Goal, cards: Vec<CardGoal>) -> Progress {
        Progress::begun(goal, None, "now".to_owned(), cards)
    }

    /// The mode that a card which the goal leaves out gets, after a switch that was killed or failed.
    #[test]
    fn a_card_that_is_left_out_gets_its_mode_of_before_a_load_and_a_reset_goes_by_the_first_modes() {
        use Compute::{Cpx, Dpx, Spx};
        let (stays, changes) = ((Memory::NPS1, Memory::NPS1), (Memory::NPS1, Memory::NPS4));
        let set = || Goal::Profile("quarters".to_owned());
        for (goal, left, expected) in [
            // A load of the driver was to come: the card was in DPX, and the driver has picked SPX.
            (set(), vec![card(5, (Spx, Cpx), changes, false), card(6, (Dpx, Dpx), stays, true)], Dpx),
            // The switch after that one failed, too.
            (set(), vec![card(5, (Cpx, Cpx), stays, false), card(6, (Spx, Dpx), stays, true)], Dpx),
            // Without a load another program has switched the card.
            (set(), vec![card(5, (Spx, Cpx), stays, false), card(6, (Dpx, Dpx), stays, true)], Spx),
            (set(), vec![card(6, (Spx, Dpx), stays, false)], Spx),
            (Goal::Reset, vec![card(5, (Spx, Cpx), changes, false), card(6, (Dpx, Dpx), stays, true)], Spx),
        ] {
            let mut left = progress(set(), left);
            left.units = vec!["vllm.service".to_owned()];
            left.requested = Some(Memory::NPS4);
            let mut next = progress(goal, vec![card(6, (Spx, Spx), stays, true)]);
            next.keep(left.clone(), &[]);
            assert_eq!(next.cards[0].aim.compute.to, expected, "{left:?}");
            assert_eq!((&*next.units, next.requested), (&*left.units, left.requested));
        }
    }
}
