//! The shared libraries that a program needs, so that it runs in another root file system.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive::Archive;

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
