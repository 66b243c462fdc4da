use std::fmt;
use std::path::PathBuf;

use crate::Unknown;

/// A node in /dev that sysfs promises, and what is really there.
#[derive(Debug, Clone)]
pub struct DeviceNode {
    /// `/dev/dri/renderD128`.
    pub path: PathBuf,
    /// The right device, when it is there.
    pub state: Result<Device, NodeFault>,
}

/// The character device at a path, and who may open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    pub major: u64,
    pub minor: u64,
    /// Permission bits, 07777 at the most.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// Why no container can be given a node in /dev. Paths are as a person sees them, with the `--root` directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeFault {
    Missing(PathBuf),
    NotADevice {
        path: PathBuf,
        found: &'static str,
    },
    OtherDevice {
        path: PathBuf,
        found: (u64, u64),
        expected: (u64, u64),
    },
    /// Device 0:0.
    Nothing(PathBuf),
    NumberUnknown {
        path: PathBuf,
        why: Unknown,
    },
    Unreadable(Unknown),
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "{} is not there: in a container it was not passed in, on a host udev did not make it",
                path.display()
            ),
            Self::NotADevice { path, found } => {
                write!(f, "{} is {found}, not a character device", path.display())
            }
            Self::OtherDevice { path, found, expected } => write!(
                f,
                "{} is device {}:{}, and the kernel says {}:{}: it is stale",
                path.display(),
                found.0,
                found.1,
                expected.0,
                expected.1
            ),
            Self::Nothing(path) => write!(f, "{} is device 0:0, which is none", path.display()),
            Self::NumberUnknown { path, why } => {
                write!(f, "the number of {} is not known: {why}", path.display())
            }
            Self::Unreadable(why) => why.fmt(f),
        }
    }
}

impl DeviceNode {
    /// Why it is not known whether the right device is there, where that is so.
    #[must_use]
    pub fn unread(&self) -> Option<&Unknown> {
        match self.state.as_ref().err()? {
            NodeFault::NumberUnknown { why, .. } | NodeFault::Unreadable(why) => Some(why),
            _ => None,
        }
    }

    /// The device's number when the right device is there.
    #[must_use]
    pub fn number(&self) -> Option<(u64, u64)> {
        self.state.as_ref().ok().map(|device| (device.major, device.minor))
    }
}
