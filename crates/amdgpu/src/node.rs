//! Nodes in /dev, compared with what sysfs says of them.

use std::path::{Path, PathBuf};

use inventory::{Device, DeviceNode, NodeFault, Reading};
use root::{Kind, Root};

use crate::{attribute, kfd};

/// Compares what is at `path` with the number that sysfs gives.
pub(crate) fn examine(root: &Root, path: PathBuf, number: &Reading<(u64, u64)>) -> DeviceNode {
    let state = real_device(root, &path).and_then(|device| match number {
        Ok(expected) if (device.major, device.minor) != *expected => Err(NodeFault::OtherDevice {
            path: root.shown(&path),
            found: (device.major, device.minor),
            expected: *expected,
        }),
        Ok(_) => Ok(device),
        Err(why) => Err(NodeFault::NumberUnknown { path: root.shown(&path), why: why.clone() }),
    });
    DeviceNode { path, state }
}

/// /dev/kfd, by the number that sysfs gives, else by KFD's major in /proc/devices (its only minor is 0,
/// kfd_chardev.c). A capture may have neither; then a real device there is all that can be asked.
pub(crate) fn examine_kfd(root: &Root) -> DeviceNode {
    let path = PathBuf::from("/dev/kfd");
    let number = Path::new(kfd::CLASS).join("dev");
    if root.is_there(&number) {
        return examine(root, path, &attribute::device_number(root, &number));
    }
    match kfd::registered_major(root) {
        Ok(Some(major)) => examine(root, path, &Ok((major, 0))),
        Ok(None) | Err(_) => DeviceNode { state: real_device(root, &path), path },
    }
}

/// The character device at `path`; no device has the number 0:0.
fn real_device(root: &Root, path: &Path) -> Result<Device, NodeFault> {
    let shown = || root.shown(path);
    let meta = match root.stat(path) {
        Ok(meta) => meta,
        Err(error) if error.is_not_found() => return Err(NodeFault::Missing(shown())),
        Err(error) => return Err(NodeFault::Unreadable(attribute::failed(&error))),
    };
    match meta.kind {
        Kind::Character { major: 0, minor: 0 } => Err(NodeFault::Nothing(shown())),
        Kind::Character { major, minor } => {
            Ok(Device { major, minor, mode: meta.mode, uid: meta.uid, gid: meta.gid })
        }
        other => Err(NodeFault::NotADevice { path: shown(), found: other.described() }),
    }
}
