//! Files of proc about one process or one number: the kernel makes the whole text at the first read, and gives as
//! much of it as is asked for. So a read that comes short of that has come to the end, and three calls do where the
//! standard library makes ten.

use std::io;
use std::path::Path;

use crate::open::c_string;
use crate::sys::{self, flag};

/// Longer than nearly all of these files.
const PIECE: usize = 1024;

/// The whole text of a file.
///
/// # Errors
/// What the kernel said.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    read_into(path, &mut text)?;
    Ok(text)
}

/// The same, in place of what the buffer held.
///
/// # Errors
/// What the kernel said.
pub fn read_into(path: &Path, text: &mut Vec<u8>) -> io::Result<()> {
    let path = c_string(path)?;
    let file = sys::open(&path, flag::NONBLOCK, 0)?;
    text.clear();
    while sys::read(&file, text, PIECE)? == PIECE {}
    Ok(())
}

/// The numbers in a folder of proc: its processes.
///
/// # Errors
/// What the kernel said.
pub fn pids(proc: &Path) -> io::Result<Vec<u32>> {
    let path = c_string(proc)?;
    let names = sys::names(&sys::open(&path, flag::DIRECTORY | flag::NONBLOCK, 0)?)?;
    Ok(names.iter().filter_map(|name| std::str::from_utf8(name).ok()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_length_is_read_whole() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        for length in [0, 1, 1023, 1024, 1025, 5000] {
            std::fs::write(&file, vec![b'x'; length]).unwrap();
            assert_eq!(read(&file).unwrap().len(), length);
        }
        assert_eq!(read(&place.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        // The first is longer than a piece.
        for own in ["limits", "cgroup", "comm"].map(|name| Path::new("/proc/self").join(name)) {
            assert_eq!(read(&own).unwrap(), std::fs::read(&own).unwrap());
        }
    }

    #[test]
    fn the_processes_are_those_that_the_kernel_lists() {
        let pids = pids(Path::new("/proc")).unwrap();
        assert!(pids.contains(&std::process::id()) && pids.contains(&1));
    }
}
