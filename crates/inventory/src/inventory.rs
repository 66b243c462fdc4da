use crate::{Around, Gpu, Kfd, Reading, Unread, UnreadOf, Vendor};

/// The GPUs of a machine and what they need.
#[derive(Debug)]
pub struct Inventory {
    /// AMD's first, in KFD node order, then those that KFD does not know, then other vendors', in PCI order.
    pub gpus: Vec<Gpu>,
    pub kfd: Kfd,
    pub amdgpu: Module,
    /// The container or virtual machine that this is.
    pub virtualization: Option<Around>,
    /// Functions and nodes in the order of their numbers, KFD's nodes last.
    pub unread: Vec<Unread>,
    /// Sentences on contradictions in the machine that belong to no one GPU.
    pub contradictions: Vec<String>,
}

/// The amdgpu kernel module as the running kernel knows it.
#[derive(Debug, Clone)]
pub struct Module {
    /// Live, built in (which has no `initstate`), or bound to a card. Unknown where its state cannot be read.
    pub loaded: Reading<bool>,
    /// The module's version, which only a DKMS build names.
    pub version: Reading<String>,
    pub srcversion: Reading<String>,
}

/// One of AMD's cards: the whole GPU that it is, or its partitions.
#[derive(Debug)]
pub struct Card<'m> {
    /// The card's first GPU, whose `pci` is the card's address.
    pub first: &'m Gpu,
    /// The card's GPUs, at least one, in the order of their indexes.
    pub gpus: Vec<&'m Gpu>,
}

impl Card<'_> {
    /// Whether containers may see parts of it: a card in SPX, or without partition modes, is one GPU.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        let mode = |gpu: &&Gpu| gpu.partition.as_ref().and_then(|partition| partition.compute.clone().ok());
        self.gpus.len() > 1 || self.gpus.iter().filter_map(mode).any(|mode| mode != "SPX")
    }
}

impl Inventory {
    /// Whether a failed read leaves open which GPUs there are.
    #[must_use]
    pub fn may_lack_gpus(&self) -> bool {
        self.unanswered().next().is_some()
    }

    /// The failed reads that leave open which GPUs there are, or which nodes and index each has.
    pub fn unanswered(&self) -> impl Iterator<Item = &Unread> {
        self.unread.iter().filter(|unread| unread.is_unanswered())
    }

    /// Why it is not known which GPUs there are, if it is not.
    #[must_use]
    pub fn why_incomplete(&self) -> Option<String> {
        let unread: Vec<String> = self.unanswered().map(ToString::to_string).collect();
        (!unread.is_empty()).then(|| format!("not every GPU can be read: {}", unread.join("; ")))
    }

    /// Sentences on what is wrong with the machine and belongs to no one GPU.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        // A node in /dev belongs to one GPU, whose problems name it.
        let unread = self.unread.iter().filter(|unread| unread.of != UnreadOf::Device);
        unread.map(ToString::to_string).chain(self.contradictions.iter().cloned()).collect()
    }

    /// AMD's GPUs, in the order of their indexes.
    pub fn amd(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().filter(|gpu| gpu.vendor == Vendor::Amd)
    }

    /// AMD's cards, in the order of their first GPUs. A GPU whose card sysfs does not tell stands alone.
    #[must_use]
    pub fn cards(&self) -> Vec<Card<'_>> {
        let mut cards: Vec<Card<'_>> = Vec::new();
        for gpu in self.amd() {
            match cards.iter_mut().find(|card| card.first.pci.is_some() && card.first.pci == gpu.pci) {
                Some(card) => card.gpus.push(gpu),
                None => cards.push(Card { first: gpu, gpus: vec![gpu] }),
            }
        }
        cards
    }
}
