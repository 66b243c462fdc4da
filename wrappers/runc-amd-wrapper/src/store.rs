//! What containers were given, from create until delete: one file each below `/run/rocworker`, which
//! only root can read.
//!
//! Paths beneath are safe to use by name since both folders are root's alone, which is checked each time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::open;
use crate::paths::Paths;

/// The longest record that is read.
const LIMIT: u64 = 256 * 1024;

/// Which container: runc's state folder, absolute and without `.` and `..`, and the id in it.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub root: &'a Path,
    pub id: &'a str,
}

impl Key<'_> {
    /// The record's file name: the root with all but plain letters percent-encoded, `@`, the id. An id
    /// has only characters that a file name may have: see [`valid_id`].
    pub fn file_name(&self) -> String {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut name = String::with_capacity(128);
        for byte in self.root.as_os_str().as_bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
                name.push(char::from(*byte));
            } else {
                name.push('%');
                name.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
            }
        }
        name.push('@');
        name.push_str(self.id);
        name
    }
}

/// The id as text, where runc would take it as a container's (libcontainer, `validateID`).
pub fn valid_id(id: &[u8]) -> Option<&str> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b'-' | b'.' | b',');
    let id = std::str::from_utf8(id).ok()?;
    (!id.is_empty() && id.bytes().all(|b| plain(&b)) && id != "." && id != "..").then_some(id)
}

/// Why a record was not read or written.
#[derive(Debug)]
pub enum Error {
    File { what: &'static str, path: PathBuf, error: open::Error },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::File { what, path, error } = self;
        write!(f, "{what} {} {error}", path.display())
    }
}

impl Error {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::File { what, path: path.to_owned(), error: open::Error::Io(error) }
    }
}

/// The folder of records.
#[derive(Debug)]
pub struct Store {
    run: PathBuf,
    records: PathBuf,
    owner: u32,
}

/// While it is held, no other wrapper decides who gets which GPU.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "the lock goes with the file")] File);

impl Store {
    /// The folder under `paths.run`, whether it is there or not.
    pub fn of(paths: &Paths) -> Self {
        Self { run: paths.run.clone(), records: paths.run.join("records"), owner: paths.owner }
    }

    /// Makes the folders, mode 0700, where they are missing, checks that they are root's alone, and waits
    /// for the lock. It is let go when this process execs or ends.
    pub fn lock(&self) -> Result<Lock, Error> {
        for folder in [&self.run, &self.records] {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("the folder", folder)(error));
                }
                _ => self.trusted(folder)?,
            }
        }
        let path = self.run.join("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(Error::io("the lock", &path))?;
        file.lock().map_err(Error::io("the lock", &path))?;
        Ok(Lock(file))
    }

    /// The text of a container's record; `None` where it has none.
    pub fn read(&self, key: Key<'_>) -> Result<Option<String>, Error> {
        let path = self.records.join(key.file_name());
        let record = |error| Error::File { what: "the record", path: path.clone(), error };
        match open::trusted_text(&path, LIMIT, self.owner) {
            Err(error) if error.is_absent() => Ok(None),
            read => {
                self.trusted(&self.run)?;
                self.trusted(&self.records)?;
                read.map(Some).map_err(record)
            }
        }
    }

    /// Writes a container's record whole, in place of an older one.
    pub fn write(&self, _lock: &Lock, key: Key<'_>, text: &str) -> Result<(), Error> {
        let path = self.records.join(key.file_name());
        // No id has a tilde, so that no record has this name; and the lock is held.
        let temporary = self.records.join("record~");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(Error::io("the record", &temporary))?;
        std::fs::rename(&temporary, &path).map_err(Error::io("the record", &path))
    }

    /// Removes a container's record, if it has one.
    pub fn remove(&self, key: Key<'_>) -> Result<(), Error> {
        let path = self.records.join(key.file_name());
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("the record", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The text of every record that can be read, with its path.
    pub fn all(&self, _lock: &Lock) -> Result<Vec<(PathBuf, String)>, Error> {
        let entries = std::fs::read_dir(&self.records).map_err(Error::io("the folder", &self.records))?;
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let records = paths.filter(|path| !path.as_os_str().as_bytes().ends_with(b"~"));
        Ok(records
            .filter_map(|path| open::trusted_text(&path, LIMIT, self.owner).ok().map(|text| (path, text)))
            .collect())
    }

    /// A folder, no link, that is root's and that nobody else may write.
    fn trusted(&self, folder: &Path) -> Result<(), Error> {
        let error = |error| Error::File { what: "the folder", path: folder.to_owned(), error };
        let metadata =
            open::folder(folder).and_then(|file| file.metadata()).map_err(|e| error(open::Error::Io(e)))?;
        open::check_owner(&metadata, self.owner).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn store_in(place: &Path, run: &Path) -> Store {
        let owner = place.metadata().unwrap().uid();
        Store::of(&Paths { run: run.to_owned(), owner, ..Paths::system() })
    }

    fn key(id: &str) -> Key<'_> {
        Key { root: Path::new("/run/containerd/runc/k8s.io"), id }
    }

    #[test]
    fn an_id_that_runc_refuses_is_no_file_name() {
        for id in ["c1", "a.b", "..a", "-x", "x,y", "A_+9"] {
            assert_eq!(valid_id(id.as_bytes()), Some(id));
        }
        for id in [&b""[..], b".", b"..", b"a/b", b"../c1", b"a b", b"a@b", b"a~", b"\xff", b"a\0"] {
            assert_eq!(valid_id(id), None, "{id:?}");
        }
    }

    #[test]
    fn a_root_and_an_id_make_one_name_that_no_others_make() {
        assert_eq!(key("c1").file_name(), "%2Frun%2Fcontainerd%2Frunc%2Fk8s.io@c1");
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/a@b%\xff"));
        assert_eq!(Key { root: odd, id: "c" }.file_name(), "%2Fa%40b%25%FF@c");
    }

    #[test]
    fn a_record_is_kept_until_it_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let store = store_in(place.path(), &place.path().join("run"));
        assert!(store.read(key("c1")).unwrap().is_none());
        let lock = store.lock().unwrap();
        store.write(&lock, key("c1"), "old").unwrap();
        store.write(&lock, key("c1"), "new").unwrap();
        assert_eq!(store.read(key("c1")).unwrap().as_deref(), Some("new"));
        assert_eq!(store.all(&lock).unwrap().len(), 1);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&store.run), mode(&store.records)), (0o700, 0o700));
        store.remove(key("c1")).unwrap();
        store.remove(key("c1")).unwrap();
        assert!(store.read(key("c1")).unwrap().is_none());
    }

    #[test]
    fn a_folder_that_somebody_else_may_have_made_holds_no_records() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = place.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let link = place.path().join("link");
        symlink(&elsewhere, &link).unwrap();
        let open = place.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        let missing = place.path().join("missing/run");
        for folder in [&link, &open, &missing] {
            let said = store_in(place.path(), folder).lock().unwrap_err().to_string();
            assert!(said.contains(folder.to_str().unwrap()), "{said}");
        }
        let mut strangers = store_in(place.path(), &elsewhere);
        strangers.owner += 1;
        assert!(strangers.lock().unwrap_err().to_string().contains("its owner is user"));
        assert!(!elsewhere.join("records").exists());
    }
}
