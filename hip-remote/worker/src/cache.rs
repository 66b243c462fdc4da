//! Code objects by their SHA-256, in a folder that all clients of the worker share.
//!
//! A file's name is its digest, and the digest is computed on each read: no client can put other code into it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use hip_transport::sha256;

#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The most bytes of all code objects together.
    limit: u64,
}

impl Cache {
    pub fn new(folder: &Path, limit: u64) -> Self {
        Self { folder: folder.to_owned(), limit }
    }

    /// Makes the folder, and clears away what writers left there that were killed. No writer may be at work.
    ///
    /// # Errors
    /// A sentence: nothing can be kept there.
    pub fn prepare(&self) -> Result<(), String> {
        let folder = &self.folder;
        let made = fs::create_dir_all(folder).and_then(|()| fs::write(self.part(&[0; 32]), ""));
        let parts = made.and_then(|()| self.entries(|rest| rest.ends_with(PART))).map_err(|error| {
            format!(
                "the folder {} keeps no code objects, so that each program sends its own: {error}; name another one by \
                 --cache",
                folder.display()
            )
        })?;
        for part in parts {
            let _ = fs::remove_file(part.path);
        }
        Ok(())
    }

    /// A code object, where the folder has it whole.
    pub fn read(&self, digest: &[u8; 32], bytes: u64) -> Option<Vec<u8>> {
        let path = self.path(digest);
        if fs::metadata(&path).ok()?.len() != bytes {
            return None;
        }
        let image = fs::read(&path).ok()?;
        if sha256(&image) != *digest {
            let _ = fs::remove_file(&path);
            return None;
        }
        // The oldest files go first when the folder is full.
        let _ = fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(image)
    }

    /// Keeps a code object whose digest the caller has computed.
    ///
    /// # Errors
    /// The file cannot be written; the code object can be used all the same.
    pub fn keep(&self, digest: &[u8; 32], image: &[u8]) -> io::Result<()> {
        let bytes = image.len() as u64;
        if bytes > self.limit {
            return Ok(());
        }
        self.make_room(bytes)?;
        let path = self.path(digest);
        let part = self.part(digest);
        let written = fs::File::create(&part).and_then(|mut file| file.write_all(image));
        let kept = written.and_then(|()| fs::rename(&part, &path));
        if kept.is_err() {
            let _ = fs::remove_file(&part);
        }
        kept
    }

    fn make_room(&self, bytes: u64) -> io::Result<()> {
        let mut entries = self.entries(str::is_empty)?;
        entries.sort_by_key(|entry| entry.used);
        let mut all: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if all.saturating_add(bytes) <= self.limit {
                break;
            }
            // Another client may have removed it.
            let _ = fs::remove_file(entry.path);
            all -= entry.bytes;
        }
        Ok(())
    }

    /// The files that begin with a digest, and go on as wanted. The folder's others are no business of the worker's.
    fn entries(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !entry.file_name().to_str().and_then(after_digest).is_some_and(&wanted) {
                continue;
            }
            // Another client may remove it between the two looks.
            let Ok(metadata) = entry.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            entries.push(Entry { path: entry.path(), bytes: metadata.len(), used });
        }
        Ok(entries)
    }

    fn path(&self, digest: &[u8; 32]) -> PathBuf {
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name)
    }

    /// An unfinished file. Two lanes may keep one code object at the same time.
    fn part(&self, digest: &[u8; 32]) -> PathBuf {
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let writer = WRITERS.fetch_add(1, Ordering::Relaxed);
        self.path(digest).with_extension(format!("{}.{writer}{PART}", std::process::id()))
    }
}

/// What follows a digest in a name that begins with one.
fn after_digest(name: &str) -> Option<&str> {
    let (digest, rest) = name.split_at_checked(64)?;
    digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(rest)
}

/// How the name of an unfinished file ends.
const PART: &str = ".part";

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_no_code_object() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(place.path(), 1000);
        let image = b"an image".as_slice();
        assert_eq!(cache.read(&sha256(image), 8), None);
        cache.keep(&sha256(image), image).unwrap();
        assert_eq!(cache.read(&sha256(image), 8).as_deref(), Some(image));
        assert_eq!(cache.read(&sha256(image), 9), None);
        fs::write(cache.path(&sha256(image)), b"An image").unwrap();
        assert_eq!(cache.read(&sha256(image), 8), None);
        assert!(!cache.path(&sha256(image)).exists());
    }

    #[test]
    fn the_code_objects_that_were_used_least_lately_make_room() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(place.path(), 100);
        let images: Vec<Vec<u8>> = (0..4_u8).map(|value| vec![value; 40]).collect();
        for (image, second) in images.iter().zip([1, 2]) {
            cache.keep(&sha256(image), image).unwrap();
            let file = fs::File::options().append(true).open(cache.path(&sha256(image))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second)).unwrap();
        }
        assert!(cache.read(&sha256(&images[0]), 40).is_some());
        cache.keep(&sha256(&images[2]), &images[2]).unwrap();
        let kept = |image: &Vec<u8>| cache.path(&sha256(image)).exists();
        assert_eq!(images.iter().map(kept).collect::<Vec<_>>(), [true, false, true, false]);
        cache.keep(&[0; 32], &[0; 101]).unwrap();
        assert!(kept(&images[0]), "what is larger than the folder displaces nothing");
    }

    #[test]
    fn what_a_killed_writer_left_is_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join(format!("{}.17.0.part", "0f".repeat(32))), b"half").unwrap();
        Cache::new(place.path(), 100).prepare().unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn another_programs_files_stay_where_code_objects_are_kept() {
        let place = tempfile::tempdir().unwrap();
        for name in ["thesis", "film.part", ".part"] {
            fs::write(place.path().join(name), [1; 90]).unwrap();
        }
        let cache = Cache::new(place.path(), 100);
        cache.prepare().unwrap();
        cache.keep(&sha256(&[2; 20]), &[2; 20]).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4);
        assert_eq!(fs::read(place.path().join(".part")).unwrap(), [1; 90]);
    }
}
