//! Which GPUs a request gets.

mod inventory;
mod pack;

use std::fmt;

use crate::{PciAddress, Quoted, Render};

pub use inventory::Inventory;

/// Something that a container can be given: a GPU, or a partition of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// As `rocworker detect` counts: in KFD's node order.
    pub index: u32,
    /// None where only a CDI spec says what there is, and it has no PCI address for it.
    pub pci: Option<PciAddress>,
    pub render: Render,
    /// Only where it is this GPU's own, not one that partitions share.
    pub uuid: Option<String>,
    /// The card that it is a part of. Partitions of one card have the same.
    pub card: Option<PciAddress>,
    /// The XGMI hive of the card.
    pub hive: Option<String>,
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pci {
            Some(pci) => write!(f, "{} ({pci}, {})", self.index, self.render),
            None => write!(f, "{} ({})", self.index, self.render),
        }
    }
}

/// A GPU that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<'i> {
    pub gpu: &'i Gpu,
    /// Its place in [`crate::cdi::Outline::devices`].
    pub device: usize,
}

/// Why a request is not met. Each is one sentence; where it is about a GPU, it names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The policy honours no requests.
    Denied { asked: String },
    /// In Kubernetes the scheduler decides.
    Kubernetes,
    /// The policy honours other kinds of requests.
    NotHonoured { asked: String, honoured: String },
    /// Nothing of that name is on this machine.
    NoSuchGpu { name: String },
    /// It is there, and the policy does not give it away.
    NotAllowed { name: String },
    /// A card of which the policy gives only some partitions away.
    PartlyAllowed { name: String },
    /// The policy gives it away, but the CDI spec does not have it: it is gone, or not usable now.
    Gone { gpu: String },
    /// More than there are.
    TooFew { asked: u32, have: usize },
    /// There are no GPUs to be had at all.
    NoGpus,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { asked } => write!(
                f,
                "the container asks for {asked}, and the policy honours no requests (requests: deny)"
            ),
            Self::Kubernetes => f.write_str(
                "the container asks for GPUs by its environment, which counts for nothing in Kubernetes: request \
                 amd.com/gpu in the pod's resources",
            ),
            Self::NotHonoured { asked, honoured } => {
                write!(f, "the container asks for {asked}, and the policy honours {honoured}")
            }
            Self::NoSuchGpu { name } => {
                write!(f, "there is no GPU {} on this machine; rocworker detect lists them", Quoted(name))
            }
            Self::NotAllowed { name } => write!(f, "the policy does not allow the GPU {}", Quoted(name)),
            Self::PartlyAllowed { name } => write!(
                f,
                "the policy allows only some partitions of the card {}: ask for those by index",
                Quoted(name)
            ),
            Self::Gone { gpu } => write!(
                f,
                "the GPU {gpu} of the policy is not in the CDI spec, so it is gone or not usable: see rocworker \
                 detect, then rocworker cdi generate"
            ),
            Self::TooFew { asked, have } => {
                write!(f, "the container asks for {asked} GPUs, and the policy and the CDI spec have {have}")
            }
            Self::NoGpus => f.write_str("the policy and the CDI spec have no GPU to give; see rocworker detect"),
        }
    }
}

impl std::error::Error for Refusal {}
