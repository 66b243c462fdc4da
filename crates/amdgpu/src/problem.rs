//! Every reason why a container cannot use a GPU. `machine.rs` finds them and adds them to [`crate::Gpu::problems`]; a
//! GPU without one is usable.

use crate::Address;
use crate::attribute::Unknown;
use crate::generation::{NeverComputes, SeaIslands};
use crate::kfd::UnreadNode;
use crate::kfd_parameter::KfdParameter;
use crate::node::NodeFault;

/// Why a container cannot use a GPU, in words that a person can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("not an AMD GPU: listed, and never touched")]
    NotAmd,
    #[error("{0}: it never computes")]
    NeverComputes(NeverComputes),
    #[error(
        "radeon is bound to it, which has no KFD: boot with {} on the kernel's command line, and amdgpu takes it",
        .0.parameters()
    )]
    LeftToRadeon(SeaIslands),
    #[error("no driver is bound to it: modprobe amdgpu, and read dmesg when it stays so")]
    Unbound,
    #[error("{0} is bound to it, not amdgpu: it is not for containers of this machine")]
    OtherDriver(String),
    #[error("sysfs names no render node for it: the driver did not finish, read dmesg")]
    NoRenderNode,
    #[error("{0}")]
    Node(NodeFault),
    #[error("/dev/kfd cannot be used: {0}")]
    Kfd(NodeFault),
    #[error("{}", no_kfd(.0))]
    NoKfd(Unknown),
    #[error("KFD did not start: {0}")]
    KfdParameter(KfdParameter),
    /// With the cards of the same PCI ids that KFD has.
    #[error("{}", left_out(*minor, equals))]
    UnknownToKfd { minor: u32, equals: Vec<Address> },
    #[error("whether KFD knows it cannot be seen: {0}")]
    UnreadInKfd(UnreadNode),
    #[error("KFD hides it here: the device cgroup of this container does not let it through")]
    HiddenByKfd,
    #[error("KFD nodes {nodes:?} all name render minor {minor}: rocworker cannot tell which one it is")]
    SharedMinor { minor: u32, nodes: Vec<u32> },
    #[error("sysfs does not say which card it is a partition of")]
    CardUnknown,
}

impl Problem {
    /// Whether amdgpu drives the GPU, and its KFD left it out or did not start: no right to a node changes that.
    #[must_use]
    pub fn is_of_kfd_alone(&self) -> bool {
        match self {
            Self::KfdParameter(_) | Self::UnknownToKfd { .. } => true,
            Self::NoKfd(reason) => reason.is_absent(),
            _ => false,
        }
    }
}

fn no_kfd(reason: &Unknown) -> String {
    if reason.is_absent() {
        format!(
            "there is no KFD on this machine ({reason}): its kernel lacks CONFIG_HSA_AMD, or KFD did not start"
        )
    } else {
        format!("whether KFD knows it cannot be seen: {reason}")
    }
}

fn left_out(minor: u32, equals: &[Address]) -> String {
    let equals: Vec<String> = equals.iter().map(ToString::to_string).collect();
    match &*equals {
        [] => format!("KFD does not know render minor {minor}, so no program can compute on this GPU"),
        equals => format!(
            "KFD does not know render minor {minor}, and knows {}, of the same PCI ids: look at this GPU's slot",
            equals.join(", ")
        ),
    }
}
