//! Where a machine that is not the running one has the kernel's log.

use root::{Kind, Root};

use crate::kmsg;

/// The messages that a report keeps of the kernel's log, a line each.
pub const OF_REPORT: &str = "/logs/kernel.log";

/// The log of a machine in a folder: the records of a capture, or the lines of a report.
#[must_use]
pub fn path(root: &Root) -> Option<&'static str> {
    let is_file = |path: &&str| root.lstat(path).is_ok_and(|meta| meta.kind == Kind::Regular);
    [kmsg::PATH, OF_REPORT].into_iter().find(is_file)
}
