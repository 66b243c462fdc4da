//! The lock of decisions: while one wrapper holds it, no other decides who gets which GPU.
//!
//! A decision takes milliseconds. But a signal, a debugger or a frozen cgroup can stop its process in the middle
//! of one. A process that then waited without end would stop every later create. So no
//! process waits without end, and one that gives up names the process that has the lock.
//!
//! The lock is one on the file `lock`, as in every version, and then one on the folder of records: a file can be removed
//! while a process has it, and a later one would lock another file beside. Only root can open either of them: whoever can
//! open a file can hold a lock on it, and `/run/rocworker` itself is readable for all.

use std::fs::{File, Metadata, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, major, minor};

use crate::folder;
use crate::open::{self, failed};
use crate::paths::{Paths, RECORDS};

/// How long one waits that wants no GPU, and only tidies up behind an earlier container of its id.
pub const BRIEFLY: Duration = Duration::from_millis(250);
/// How often a waiting process tries again: half a decision's time.
const POLL: Duration = Duration::from_millis(2);

/// Held until this process execs or ends, or drops it.
#[derive(Debug)]
pub struct Lock {
    file: File,
    /// `/run/rocworker/records`.
    records: File,
}

impl Lock {
    /// Makes the folders where they are missing, checks that no other user may write in them, and waits for the lock.
    ///
    /// # Errors
    /// The folder or the lock's file is not as it must be, or another process held the lock all the time.
    pub fn take(paths: &Paths, patience: Duration) -> Result<Self, String> {
        let path = paths.run.join("lock");
        let (mut lock, mut opened) = Self::open(paths, &path)?;
        let mut began = None;
        loop {
            let is_free = |file: &File| match file.try_lock() {
                Err(TryLockError::WouldBlock) => Ok(false),
                Err(TryLockError::Error(error)) => Err(failed("the lock", &path, "locked", error)),
                Ok(()) => Ok(true),
            };
            // Every process takes the two locks in this order, so that no two wait for each other.
            let held = if !is_free(&lock.file)? {
                &lock.file
            } else if !is_free(&lock.records)? {
                &lock.records
            } else if stands_at(&path, &opened) {
                return Ok(lock);
            } else {
                // Another program removed it while this process waited: a later process locks another file first.
                (lock, opened) = Self::open(paths, &path)?;
                continue;
            };
            if began.get_or_insert_with(Instant::now).elapsed() < patience {
                std::thread::sleep(POLL);
                continue;
            }
            let who = held.metadata().map(|held| who_has_it(&held, &paths.proc));
            return Err(format!(
                "the lock {} could not be taken within {} s: {}",
                path.display(),
                patience.as_secs_f32(),
                who.unwrap_or_else(|error| error.to_string())
            ));
        }
    }

    /// Opens the lock's file and the folder of records, without the lock. The file must be a regular one of
    /// root's, and no link; with a fifo the open does not wait for the other end.
    fn open(paths: &Paths, path: &Path) -> Result<(Self, Metadata), String> {
        folder::ensure(&paths.run, folder::READABLE, paths.owner)?;
        let refused = |error: open::Error| failed("the lock", path, "opened", error);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path)
            .map_err(|error| refused(error.into()))?;
        let opened = file.metadata().map_err(|error| refused(error.into()))?;
        if !opened.is_file() {
            return Err(refused(open::Error::NotRegular));
        }
        open::check_who_may_write(opened.uid(), opened.mode(), paths.owner).map_err(refused)?;
        if opened.mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))
                .map_err(|error| failed("the lock", path, "closed to others", error))?;
        }
        let records = folder::ensure(&paths.run.join(RECORDS), folder::ROOTS_ALONE, paths.owner)?;
        Ok((Self { file, records }, opened))
    }
}

/// Whether `path` still leads to the opened file, which is what another wrapper would open now.
fn stands_at(path: &Path, opened: &Metadata) -> bool {
    path.symlink_metadata().is_ok_and(|now| open::is_same_file(&now, opened))
}

/// A sentence that names the process with the lock, if proc shows it, and says what to do.
fn who_has_it(lock: &Metadata, proc: &Path) -> String {
    let of_process =
        |pid: u32, file: &str| std::fs::read_to_string(proc.join(pid.to_string()).join(file)).ok();
    let find = || {
        let locks = std::fs::read_to_string(proc.join("locks")).ok()?;
        let pid = holder(&locks, (major(lock.dev()), minor(lock.dev())), lock.ino())?;
        Some((pid, of_process(pid, "comm")?))
    };
    // The kernel's list misses a lock where one before it goes while it is read (fs/seq_file.c, `seq_read_iter`).
    let Some((pid, name)) = (0..10).find_map(|_| find()) else {
        return "no process that is seen from here has it, so that it is one of another pid namespace, perhaps \
                stopped: end it, or let it go on"
            .to_owned();
    };
    let stat = of_process(pid, "stat").unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    let name = allocation::Quoted(name.trim_end());
    match state {
        Some('T' | 't') => {
            format!(
                "the process {pid} ({name}) has it and is stopped: `kill -CONT {pid}` lets it go on, or end it"
            )
        }
        _ => format!("the process {pid} ({name}) has it: end it where it does not get on"),
    }
}

/// The process that has an flock on this file, by the kernel's list (proc_locks(5); fs/locks.c, `lock_get_status`).
/// The list names the file system's own device, and `stat` may name another one (overlayfs, btrfs): then the
/// inode's number decides, where it is one file's alone.
fn holder(locks: &str, (major, minor): (u32, u32), inode: u64) -> Option<u32> {
    let device = format!("{major:02x}:{minor:02x}");
    let mut same_inode = Vec::new();
    for line in locks.lines() {
        // "7: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF"; one that waits has "->" behind its number.
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields[..] else { continue };
        let (Ok(pid), Some((its_device, its_inode))) = (pid.parse::<u32>(), file.rsplit_once(':')) else {
            continue;
        };
        if its_inode.parse() != Ok(inode) {
            continue;
        }
        if its_device == device {
            return Some(pid);
        }
        same_inode.push(pid);
    }
    if let [pid] = same_inode[..] { Some(pid) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const LOCKS: &str = "1: POSIX  ADVISORY  WRITE 11 00:19:77 0 EOF\n\
                         2: FLOCK  ADVISORY  WRITE 12 fe:10:77 0 EOF\n\
                         2: -> FLOCK  ADVISORY  WRITE 13 fe:10:77 0 EOF\n\
                         3: FLOCK  ADVISORY  READ  14 00:19:77 0 EOF\n\
                         4: FLOCK  ADVISORY  WRITE 15 00:19:78 0 EOF\n\
                         5: FLOCK  ADVISORY  WRITE 16 00:1a:78 0 EOF\n";

    fn paths_in(place: &Path) -> Paths {
        let owner = place.metadata().unwrap().uid();
        Paths { run: place.to_owned(), owner, ..Paths::system() }
    }

    #[test]
    fn the_holder_is_the_one_that_has_an_flock_on_this_very_file() {
        for (device, inode, expected) in [
            ((0xfe, 0x10), 77, Some(12)),
            ((0, 0x19), 78, Some(15)),
            // Another device's number, as with overlayfs: one file alone has that inode, or two have.
            ((0, 0x33), 77, Some(12)),
            ((0, 0x33), 78, None),
            ((0, 0x19), 79, None),
        ] {
            assert_eq!(holder(LOCKS, device, inode), expected, "{device:x?}:{inode}");
        }
    }

    #[test]
    fn a_lock_that_is_no_file_is_named_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        let paths = paths_in(place.path());
        let path = place.path().join("lock");
        std::fs::create_dir(&path).unwrap();
        let of_a_folder = Lock::take(&paths, Duration::ZERO).unwrap_err();
        std::fs::remove_dir(&path).unwrap();
        std::os::unix::net::UnixListener::bind(&path).unwrap();
        let of_a_socket = Lock::take(&paths, Duration::ZERO).unwrap_err();
        for refusal in [of_a_folder, of_a_socket] {
            assert!(refusal.contains("/lock ") && refusal.ends_with(": remove it"), "{refusal}");
        }
    }

    /// The first process has the lock, the second waits for its file, the file is removed, and a third one
    /// comes.
    #[test]
    fn a_file_that_is_removed_while_locked_lets_no_process_in_beside() {
        let place = tempfile::tempdir().unwrap();
        let paths = paths_in(place.path());
        let patience = Duration::from_secs(120);
        let first = Lock::take(&paths, patience).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let has_it = std::sync::atomic::AtomicBool::new(false);
        let waits = || {
            let lock = Lock::take(&paths, patience).unwrap();
            assert!(!has_it.swap(true, std::sync::atomic::Ordering::SeqCst), "two have a lock");
            send.send(()).unwrap();
            std::thread::yield_now();
            has_it.store(false, std::sync::atomic::Ordering::SeqCst);
            drop(lock);
        };
        std::thread::scope(|scope| {
            scope.spawn(waits);
            let path = place.path().join("lock");
            let are_open = |count: usize| {
                let is_opened =
                    |fd: &std::fs::DirEntry| std::fs::read_link(fd.path()).is_ok_and(|to| to == path);
                let began = Instant::now();
                while std::fs::read_dir("/proc/self/fd").unwrap().flatten().filter(is_opened).count() < count
                {
                    assert!(began.elapsed() < patience, "no process waits");
                    std::thread::sleep(POLL);
                }
            };
            are_open(2);
            std::fs::remove_file(&path).unwrap();
            scope.spawn(waits);
            are_open(1);
            let early = receive.recv_timeout(20 * POLL);
            assert!(early.is_err(), "two have a lock");
            let refusal = Lock::take(&paths, Duration::ZERO).unwrap_err();
            assert!(refusal.contains("/lock could not be taken within 0 s: the process "), "{refusal}");
            drop(first);
            for _ in 0..2 {
                receive.recv_timeout(patience).unwrap();
            }
        });
    }

    #[test]
    fn who_waited_in_vain_names_the_process_that_has_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let paths = paths_in(place.path());
        let brief = Duration::from_millis(20);
        let lock = Lock::take(&paths, brief).unwrap();
        let refusal = Lock::take(&paths, brief).unwrap_err();
        let own = std::process::id();
        assert!(
            refusal.contains("lock could not be taken within 0.02 s: the process ")
                && refusal.contains(&own.to_string()),
            "{refusal}"
        );
        assert!(refusal.ends_with("has it: end it where it does not get on"), "{refusal}");
        drop(lock);
        Lock::take(&paths, brief).unwrap();

        // `flock --no-fork` executes the shell in its own place, with the lock.
        let mut holder = Command::new("flock")
            .arg("--no-fork")
            .arg(place.path().join("lock"))
            .args(["sh", "-c", "echo held; kill -STOP $$; exit 0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 5];
        std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
        let stopped = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", holder.id())).unwrap();
            stat.contains(") T ")
        };
        while !stopped() {
            std::thread::sleep(POLL);
        }
        let refusal = Lock::take(&paths, brief).unwrap_err();
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!(refusal.contains("is stopped: `kill -CONT "), "{refusal}");
        Lock::take(&paths, brief).unwrap();
    }
}
