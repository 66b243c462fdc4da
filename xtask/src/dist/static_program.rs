//! rocworker without a library, as a file of its own: `task-check` runs by it in a task's image, whatever that has.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::VERSION;
use super::files::read;

/// The type of the program header that names a loader (elf(5)).
const PT_INTERP: u32 = 3;

pub(super) fn write(program: &Path, out: &Path) -> Result<PathBuf> {
    let bytes = read(program)?;
    let has_loader = has_loader(&bytes).with_context(|| format!("{} is no 64-bit ELF", program.display()))?;
    ensure!(!has_loader, "{} is linked dynamically: build it for a musl target", program.display());
    let path = out.join(format!("rocworker-{VERSION}-{}-linux-static", std::env::consts::ARCH));
    fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", path.display()))?;
    Ok(path)
}

/// Whether a program needs a loader; `None` where it is no little-endian 64-bit ELF. Offsets are those of
/// Elf64_Ehdr and Elf64_Phdr in elf(5).
fn has_loader(bytes: &[u8]) -> Option<bool> {
    bytes.strip_prefix(b"\x7fELF\x02\x01")?;
    let number = |at: usize, length: usize| {
        let bytes = bytes.get(at..at.checked_add(length)?)?;
        bytes.iter().rev().try_fold(0_usize, |number, byte| Some((number << 8) | usize::from(*byte)))
    };
    let (first, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for index in 0..count {
        if number(first.checked_add(index * size)?, 4)? == PT_INTERP as usize {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_a_loader_and_what_is_no_program_are_refused() {
        let out = tempfile::tempdir().unwrap();
        // Linked as a distribution links its programs.
        let dynamic = Path::new("/bin/sh");
        let error = write(dynamic, out.path()).unwrap_err().to_string();
        assert!(error.ends_with("is linked dynamically: build it for a musl target"), "{error}");
        let cut = out.path().join("cut");
        fs::write(&cut, &fs::read(dynamic).unwrap()[..0x40]).unwrap();
        let error = write(&cut, out.path()).unwrap_err().to_string();
        assert!(error.ends_with("cut is no 64-bit ELF"), "{error}");
        fs::write(&cut, "#!/bin/sh\n").unwrap();
        assert!(write(&cut, out.path()).is_err());
    }
}
