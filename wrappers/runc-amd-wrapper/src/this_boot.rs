//! The boot's id for a record, without a look into proc at each create.
//!
//! That look takes 3 µs, and 8 where caches are cold. What stands in memory is of this boot: where `/run` is a tmpfs, as
//! nearly everywhere, the first create of a boot puts the id into the lock's file, and the later ones read it there.
//! Whoever judges whether a container lives asks proc all the same.

use std::io;
use std::path::Path;

use crate::alive;
use crate::lock::Lock;
use crate::sys;

/// Of `/proc/sys/kernel/random/boot_id`: 32 hexadecimal digits in lower case and four hyphens (lib/vsprintf.c, `%pU`).
const LENGTH: usize = 36;

/// The kernel's name for this boot, as [`alive::boot_id`] says it.
///
/// # Errors
/// proc had to be asked, and does not say it.
pub(crate) fn id(lock: &Lock, proc: &Path) -> io::Result<String> {
    let file = lock.file();
    if !sys::is_in_memory(file) {
        return alive::boot_id(proc);
    }
    let mut kept = Vec::new();
    // One byte more shows that there is none.
    if sys::read_from_start(file, &mut kept, LENGTH + 1).is_ok()
        && let Some(kept) = allocation::into_text(kept).filter(|kept| is_id(kept))
    {
        return Ok(kept);
    }
    let id = alive::boot_id(proc)?;
    if is_id(&id) {
        // What cannot be kept is asked for again by the next.
        let _ = sys::write(file, id.as_bytes());
    }
    Ok(id)
}

fn is_id(text: &str) -> bool {
    let is_hyphen = |at| matches!(at, 8 | 13 | 18 | 23);
    text.len() == LENGTH
        && text.bytes().enumerate().all(|(at, byte)| match byte {
            b'-' => is_hyphen(at),
            b'0'..=b'9' | b'a'..=b'f' => !is_hyphen(at),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::BRIEFLY;
    use crate::paths::Paths;
    use std::os::unix::fs::MetadataExt as _;

    const EARLIER: &str = "2c1f7a5e-7c0f-4b5a-9b61-0d5b8a1d3f11";

    /// A run folder, by its lock's file, and the id that it is said to be.
    fn asked(folder: &Path, kept: &str) -> (String, String) {
        let paths =
            Paths { run: folder.join("run"), owner: folder.metadata().unwrap().uid(), ..Paths::system() };
        drop(Lock::take(&paths, BRIEFLY).unwrap());
        let file = paths.run.join("lock");
        std::fs::write(&file, kept).unwrap();
        let id = id(&Lock::take(&paths, BRIEFLY).unwrap(), Path::new("/proc")).unwrap();
        (id, std::fs::read_to_string(file).unwrap())
    }

    #[test]
    fn what_stands_in_memory_is_believed_if_it_is_an_id() {
        let now = alive::boot_id(Path::new("/proc")).unwrap();
        assert!(is_id(&now), "{now}");
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        assert_eq!(asked(place.path(), ""), (now.clone(), now.clone()));
        assert_eq!(asked(place.path(), EARLIER), (EARLIER.to_owned(), EARLIER.to_owned()));
        // A writer that was killed, and what nobody wrote who knows of this.
        let upper = EARLIER.to_uppercase();
        for other in [&EARLIER[..20], upper.as_str(), "2c1f7a5e7c0f4b5a9b610d5b8a1d3f11----"] {
            assert_eq!(asked(place.path(), other), (now.clone(), now.clone()), "{other}");
        }
        let longer = format!("{EARLIER}\n");
        assert_eq!(asked(place.path(), &longer), (now.clone(), format!("{now}\n")));
    }

    #[test]
    fn what_outlives_a_boot_is_neither_believed_nor_written() {
        let now = alive::boot_id(Path::new("/proc")).unwrap();
        // The build's own folder: on a disk, where tests of a release are built, or in memory after all.
        let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let folder =
            sys::open(&crate::open::c_string(place.path()).unwrap(), sys::flag::DIRECTORY, 0).unwrap();
        if sys::is_in_memory(&folder) {
            return;
        }
        assert_eq!(asked(place.path(), EARLIER), (now, EARLIER.to_owned()));
    }
}
