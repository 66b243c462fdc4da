//! The shared libraries that a program needs, so that it runs in another root file system.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::real;

use crate::archive::Archive;
use crate::kernel::Kernel;

/// Puts a program into the archive, and the libraries that it needs where it looks for them.
///
/// # Panics
/// Where the program cannot be read, or a library is missing on this machine.
pub fn copy_program(archive: &mut Archive, copied: &mut BTreeSet<PathBuf>, path: &str, program: &Path) {
    archive.copy(path, 0o755, program);
    // ldd(1) fails for a static program, which needs nothing.
    let output = Command::new("ldd").arg(program).output().unwrap();
    for library in needed(&String::from_utf8(output.stdout).unwrap()) {
        if copied.insert(library.clone()) {
            let inside = library.to_str().unwrap().trim_start_matches('/');
            archive.copy(inside, 0o755, &library);
        }
    }
}

/// An archive for a machine in which `init` runs rocworker, the wrapper and this very test, named `test`, with busybox and
/// these modules. The caller adds what is its own, and finishes it.
///
/// # Panics
/// As [`copy_program`] and [`Kernel::modules_into`], and where there is no busybox.
#[must_use]
pub fn archive_of_rocworker(
    init: &str,
    kernel: &Kernel,
    modules: &[&str],
    programs: [(&str, &Path); 2],
) -> Archive {
    let mut archive = Archive::default();
    let mut libraries = BTreeSet::new();
    archive.file("init", 0o755, init.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
    archive.copy("bin/busybox", 0o755, &real::program("busybox").unwrap());
    for (name, program) in programs {
        copy_program(&mut archive, &mut libraries, &format!("bin/{name}"), program);
    }
    let own = std::env::current_exe().unwrap();
    copy_program(&mut archive, &mut libraries, "test/it", &own);
    kernel.modules_into(&mut archive, modules);
    archive.file("etc/group", 0o644, b"root:x:0:\nvideo:x:44:\nrender:x:104:\n");
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/:/bin/sh\n");
    archive.file("etc/rocworker/config.yaml", 0o644, b"daemon: {interval-s: 86400}\n");
    archive.folder("var/lib");
    archive
}

/// The files in ldd's answer: `NAME => PATH (ADDRESS)`, and `PATH (ADDRESS)` for the loader.
fn needed(answer: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in answer.lines().map(str::trim) {
        assert!(!line.ends_with("not found"), "{line}");
        let file = line.split_once("=> ").map_or(line, |(_, file)| file);
        let file = file.split(' ').next().unwrap_or(file);
        if file.starts_with('/') {
            files.push(PathBuf::from(file));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_files_and_the_vdso_is_none() {
        let answer = "\tlinux-vdso.so.1 (0x00007fc0d48b9000)\n\
                      \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fc0d46a6000)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007fc0d48bb000)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(needed(answer), expected);
        assert!(needed("\tstatically linked\n").is_empty());
    }
}
