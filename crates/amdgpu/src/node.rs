use std::path::{Path, PathBuf};

use root::{Kind, Meta, Root};

use crate::attribute::{Reading, Unknown};

/// A node in /dev that sysfs promises, and what really stands there.
#[derive(Debug, Clone)]
pub struct DeviceNode {
    /// `/dev/dri/renderD128`.
    pub path: PathBuf,
    /// Type, rights and owner when the right device stands there.
    pub state: Result<Meta, NodeFault>,
}

/// Why a node in /dev cannot be given to anybody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeFault {
    #[error("{} is not there: in a container it was not passed in, on a host udev did not make it", .0.display())]
    Missing(PathBuf),
    #[error("{} is {found}, not a character device: remove it and run udevadm trigger", path.display())]
    NotADevice { path: PathBuf, found: &'static str },
    #[error(
        "{} is device {}:{}, and sysfs says {}:{}: it is stale, remove it and run udevadm trigger",
        path.display(), found.0, found.1, expected.0, expected.1
    )]
    OtherDevice { path: PathBuf, found: (u64, u64), expected: (u64, u64) },
    #[error("the number of {} is not known: {why}", path.display())]
    NumberUnknown { path: PathBuf, why: Unknown },
    #[error("{0}")]
    Unreadable(Unknown),
}

impl DeviceNode {
    /// Compares what stands at `path` with the number that sysfs gives.
    pub(crate) fn examine(root: &Root, path: PathBuf, number: &Reading<(u64, u64)>) -> Self {
        let state = examine(root, &path, number);
        Self { path, state }
    }

    /// The device's number when the right one stands there.
    #[must_use]
    pub fn number(&self) -> Option<(u64, u64)> {
        match self.state.as_ref().ok()?.kind {
            Kind::Character { major, minor } => Some((major, minor)),
            _ => None,
        }
    }
}

fn examine(root: &Root, path: &Path, number: &Reading<(u64, u64)>) -> Result<Meta, NodeFault> {
    let shown = || root.shown(path);
    let meta = match root.stat(path) {
        Ok(meta) => meta,
        Err(error) if error.is_not_found() => return Err(NodeFault::Missing(shown())),
        Err(error) => return Err(NodeFault::Unreadable(Unknown::from_error(&error))),
    };
    let Kind::Character { major, minor } = meta.kind else {
        return Err(NodeFault::NotADevice { path: shown(), found: meta.kind.described() });
    };
    match number {
        Ok(expected) if (major, minor) == *expected && (major, minor) != (0, 0) => Ok(meta),
        Ok(expected) => {
            Err(NodeFault::OtherDevice { path: shown(), found: (major, minor), expected: *expected })
        }
        Err(why) => Err(NodeFault::NumberUnknown { path: shown(), why: why.clone() }),
    }
}
