use std::path::{Path, PathBuf};

use root::{Kind, Meta, Root};

use crate::attribute::{self, Reading, Unknown};
use crate::kfd;

/// A node in /dev that sysfs promises, and what is really there.
#[derive(Debug, Clone)]
pub struct DeviceNode {
    /// `/dev/dri/renderD128`.
    pub path: PathBuf,
    /// Type, rights and owner when the right device is there.
    pub state: Result<Meta, NodeFault>,
}

/// Why no container can be given a node in /dev.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeFault {
    #[error("{} is not there: in a container it was not passed in, on a host udev did not make it", .0.display())]
    Missing(PathBuf),
    #[error("{} is {found}, not a character device", path.display())]
    NotADevice { path: PathBuf, found: &'static str },
    #[error(
        "{} is device {}:{}, and the kernel says {}:{}: it is stale",
        path.display(), found.0, found.1, expected.0, expected.1
    )]
    OtherDevice { path: PathBuf, found: (u64, u64), expected: (u64, u64) },
    #[error("{} is device 0:0, which is none", .0.display())]
    Nothing(PathBuf),
    #[error("the number of {} is not known: {why}", path.display())]
    NumberUnknown { path: PathBuf, why: Unknown },
    #[error("{0}")]
    Unreadable(Unknown),
}

impl DeviceNode {
    /// Compares what is at `path` with the number that sysfs gives.
    pub(crate) fn examine(root: &Root, path: PathBuf, number: &Reading<(u64, u64)>) -> Self {
        let state = real_device(root, &path).and_then(|(meta, found)| match number {
            Ok(expected) if found != *expected => {
                Err(NodeFault::OtherDevice { path: root.shown(&path), found, expected: *expected })
            }
            Ok(_) => Ok(meta),
            Err(why) => Err(NodeFault::NumberUnknown { path: root.shown(&path), why: why.clone() }),
        });
        Self { path, state }
    }

    /// /dev/kfd, by the number that sysfs gives, else by KFD's major in /proc/devices (its only minor is 0,
    /// kfd_chardev.c). A capture may have neither; then a real device there is all that can be asked.
    pub(crate) fn examine_kfd(root: &Root) -> Self {
        let path = PathBuf::from("/dev/kfd");
        let number = Path::new(kfd::CLASS).join("dev");
        if root.is_there(&number) {
            return Self::examine(root, path, &attribute::device_number(root, &number));
        }
        match kfd::registered_major(root) {
            Ok(Some(major)) => Self::examine(root, path, &Ok((major, 0))),
            Ok(None) | Err(_) => Self { state: real_device(root, &path).map(|(meta, _)| meta), path },
        }
    }

    /// Why it is not known whether the right device is there, where that is so.
    pub(crate) fn unread(&self) -> Option<&Unknown> {
        match self.state.as_ref().err()? {
            NodeFault::NumberUnknown { why, .. } | NodeFault::Unreadable(why) => Some(why),
            _ => None,
        }
    }

    /// The device's number when the right device is there.
    #[must_use]
    pub fn number(&self) -> Option<(u64, u64)> {
        match self.state.as_ref().ok()?.kind {
            Kind::Character { major, minor } => Some((major, minor)),
            _ => None,
        }
    }
}

/// What is at the path when it is a character device, with its number; 0:0 is no device's.
fn real_device(root: &Root, path: &Path) -> Result<(Meta, (u64, u64)), NodeFault> {
    let shown = || root.shown(path);
    let meta = match root.stat(path) {
        Ok(meta) => meta,
        Err(error) if error.is_not_found() => return Err(NodeFault::Missing(shown())),
        Err(error) => return Err(NodeFault::Unreadable(Unknown::from_error(&error))),
    };
    match meta.kind {
        Kind::Character { major: 0, minor: 0 } => Err(NodeFault::Nothing(shown())),
        Kind::Character { major, minor } => Ok((meta, (major, minor))),
        other => Err(NodeFault::NotADevice { path: shown(), found: other.described() }),
    }
}
