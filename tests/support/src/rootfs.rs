//! A root file system for containers: busybox and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::real::program;

/// Lays it out in a folder; Debian's static busybox must be installed.
///
/// # Panics
/// Where it cannot be laid out.
pub fn lay_out(folder: &Path) {
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let busybox = program("busybox").unwrap();
    fs::copy(busybox, folder.join("bin/busybox")).unwrap();
    for applet in ["sh", "ls", "cat", "id", "stat", "dd", "head", "test", "sleep", "find", "sort", "true"] {
        symlink("busybox", folder.join("bin").join(applet)).unwrap();
    }
}
