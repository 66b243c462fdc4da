//! Keeps what containers were given, from create until delete: one file each below `/run/rocworker`, which
//! only root can read.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use allocation::bundle::ProcessEdits;
use allocation::gpu::Gpu;
use allocation::policy::Sharing;
use allocation::record::{self, Creator, Record, RecordedGpu};

use crate::alive::{self, Process};
use crate::lock::Lock;
use crate::paths::{Paths, RECORDS};
use crate::run_folder::{Kind, RunFolder};

/// The folder of records, in which each has its [`Key::file_name`].
pub fn records(paths: &Paths, lock: Option<&Lock>) -> RunFolder {
    let kind = Kind { folder: RECORDS, what: "the record", limit: 256 * 1024 };
    RunFolder::of(paths, kind, lock)
}

/// Names a container: runc's state folder, absolute and without `.` and `..`, and the id in it.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub root: &'a Path,
    pub id: &'a str,
}

impl<'a> Key<'a> {
    /// The container of a record.
    pub fn of(record: &'a Record) -> Self {
        Self { root: Path::new(&record.root), id: &record.id }
    }

    /// Whether the record is about this container.
    pub fn is_of(&self, record: &Record) -> bool {
        record.id == self.id && Path::new(&record.root) == self.root
    }

    /// The record's file name: the root with all but plain letters percent-encoded, `@`, the id. An id
    /// has only characters that a file name may have: see [`valid_id`].
    pub fn file_name(&self) -> String {
        let mut name = String::new();
        for byte in self.root.as_os_str().as_bytes() {
            match byte {
                b'.' | b'_' | b'-' => name.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => name.push(char::from(*byte)),
                byte => name += &format!("%{byte:02X}"),
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

/// This process, in whose place the wrapper executes runc.
///
/// # Errors
/// A sentence that names what proc lacks.
pub fn creator(sharing: Sharing, proc: &Path) -> Result<Creator, String> {
    let this = match sharing {
        Sharing::Shared => Some(Process::this()),
        // A lease's liveness depends on this process's entry: proc must show this process itself.
        Sharing::Exclusive => Process::now(proc, std::process::id()),
    };
    let this = this.ok_or_else(|| unrecorded("/proc does not show this process: mount it"))?;
    let boot_id = alive::boot_id(proc)
        .map_err(|error| unrecorded(&format!("/proc/sys/kernel/random/boot_id cannot be read: {error}")))?;
    Ok(Creator { pid: this.pid, start_time: this.start_time, boot_id })
}

/// The record of a container's grant.
///
/// # Errors
/// A sentence on why the grant cannot be recorded.
pub fn record(
    key: Key<'_>,
    creator: Creator,
    gpus: &[&Gpu],
    process: &ProcessEdits<'_>,
) -> Result<Record, String> {
    let root = key.root.to_str().ok_or_else(|| unrecorded("runc's --root is not UTF-8"))?;
    Ok(Record {
        schema_version: record::version_of(process),
        id: key.id.to_owned(),
        root: root.to_owned(),
        gpus: gpus.iter().map(|gpu| RecordedGpu::from(*gpu)).collect(),
        env: process.env.iter().map(|entry| (*entry).to_owned()).collect(),
        env_unless_set: None,
        memlock_bytes: process.memlock_bytes,
        gids: process.gids.clone(),
        creator,
    })
}

fn unrecorded(what: &str) -> String {
    format!("what the container is given cannot be recorded: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
