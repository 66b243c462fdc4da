use std::fmt;
use std::path::PathBuf;

use crate::Unknown;

/// A file that gave nothing, which may leave open which GPUs there are, which nodes and which index each has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub of: UnreadOf,
    pub reason: Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadOf {
    /// A PCI function of which it is not known whether it is a GPU, by its file; or the bus.
    Function(PathBuf),
    /// The number that a node in /dev should have, what is there, or the NUMA node of a card.
    Device,
    /// A node of KFD's topology, by its number: its properties cannot be read, or say nothing of a GPU or CPU.
    KfdNode(u32),
}

impl Unread {
    /// The file that gave nothing, where one says whether there is a GPU.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        match &self.of {
            UnreadOf::Function(file) => Some(file.clone()),
            UnreadOf::Device => None,
            UnreadOf::KfdNode(id) => {
                Some(format!("/sys/class/kfd/kfd/topology/nodes/{id}/properties").into())
            }
        }
    }

    /// Whether the file is there but did not answer or cannot be read, so that its content stays open.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        matches!(self.of, UnreadOf::KfdNode(_)) || self.reason.is_failed()
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            UnreadOf::KfdNode(id) => write!(f, "KFD node {id}: {}", self.reason),
            UnreadOf::Function(_) | UnreadOf::Device => self.reason.fmt(f),
        }
    }
}
