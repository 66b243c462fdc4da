//! A root file system for containers: busybox and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

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
    for applet in
        ["sh", "ls", "cat", "id", "stat", "dd", "head", "test", "sleep", "find", "sort", "true", "readlink"]
    {
        symlink("busybox", folder.join("bin").join(applet)).unwrap();
    }
}

/// The program that Concourse runs as a container's first process, while the work comes and goes by `exec`.
pub const WAITING: &str = "/tmp/gdn-init";

/// Puts a stand-in for it into a root file system, which only waits as the real one does; needs cc.
///
/// # Panics
/// Where it cannot be built.
pub fn put_waiting(folder: &Path) {
    let program = folder.join(WAITING.trim_start_matches('/'));
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let source = program.with_extension("c");
    fs::write(&source, "int pause(void); int main(void) { for (;;) pause(); }\n").unwrap();
    let built = Command::new("cc").arg("-static").arg("-o").args([&program, &source]).status();
    assert!(built.unwrap().success());
    fs::remove_file(source).unwrap();
}
