//! Every reason for which a GPU is not usable, worded here and in the types that a reason holds. crates/amdgpu finds the
//! reasons and adds them to [`crate::Gpu::problems`]; a GPU without one is usable. Quarantine, leases and the configured
//! selection keep usable GPUs from containers: they are decided in crates/allocation and crates/config.

use std::fmt;

use crate::{KfdParameter, NeverComputes, NodeFault, PciAddress, SeaIslands, Unknown, Unread};

/// Why a container cannot use a GPU, in words that a person can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    NotAmd,
    NeverComputes(NeverComputes),
    LeftToRadeon(SeaIslands),
    Unbound,
    OtherDriver(String),
    NoRenderNode,
    Node(NodeFault),
    Kfd(NodeFault),
    NoKfd(Unknown),
    KfdParameter(KfdParameter),
    /// `equals`: the cards with the GPU's PCI ids that KFD knows.
    UnknownToKfd {
        minor: u32,
        equals: Vec<PciAddress>,
    },
    UnreadInKfd(Unread),
    HiddenByKfd,
    SharedMinor {
        minor: u32,
        nodes: Vec<u32>,
    },
    CardUnknown,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAmd => f.write_str("not an AMD GPU: listed, and never touched"),
            Self::NeverComputes(never) => write!(f, "{never}: it never computes"),
            Self::LeftToRadeon(chip) => write!(
                f,
                "radeon is bound to it, which has no KFD: boot with {} on the kernel's command line, and amdgpu takes it",
                chip.parameters()
            ),
            Self::Unbound => {
                f.write_str("no driver is bound to it: modprobe amdgpu, and read dmesg when it stays so")
            }
            Self::OtherDriver(driver) => {
                write!(f, "{driver} is bound to it, not amdgpu: it is not for containers of this machine")
            }
            Self::NoRenderNode => {
                f.write_str("sysfs names no render node for it: the driver did not finish, read dmesg")
            }
            Self::Node(fault) => fault.fmt(f),
            Self::Kfd(fault) => write!(f, "/dev/kfd cannot be used: {fault}"),
            Self::NoKfd(reason) if reason.is_absent() => write!(
                f,
                "there is no KFD on this machine ({reason}): its kernel lacks CONFIG_HSA_AMD, or KFD did not start"
            ),
            Self::NoKfd(reason) => write!(f, "whether KFD knows it cannot be seen: {reason}"),
            Self::KfdParameter(parameter) => write!(f, "KFD did not start: {parameter}"),
            Self::UnknownToKfd { minor, equals } if equals.is_empty() => {
                write!(f, "KFD does not know render minor {minor}, so no program can compute on this GPU")
            }
            Self::UnknownToKfd { minor, equals } => {
                let equals: Vec<String> = equals.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "KFD does not know render minor {minor}, and knows {}, of the same PCI ids: look at this GPU's slot",
                    equals.join(", ")
                )
            }
            Self::UnreadInKfd(node) => write!(f, "whether KFD knows it cannot be seen: {node}"),
            Self::HiddenByKfd => {
                f.write_str("KFD hides it here: the device cgroup of this container does not let it through")
            }
            Self::SharedMinor { minor, nodes } => write!(
                f,
                "KFD nodes {nodes:?} all name render minor {minor}: rocworker cannot tell which one it is"
            ),
            Self::CardUnknown => f.write_str("sysfs does not say which card it is a partition of"),
        }
    }
}

impl Problem {
    /// Whether amdgpu drives the GPU, but KFD left it out or did not start. Access to a node would not change
    /// that.
    #[must_use]
    pub fn is_of_kfd_alone(&self) -> bool {
        match self {
            Self::KfdParameter(_) | Self::UnknownToKfd { .. } => true,
            Self::NoKfd(reason) => reason.is_absent(),
            _ => false,
        }
    }
}
