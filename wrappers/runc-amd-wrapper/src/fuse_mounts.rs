//! FUSE file systems: where they are mounted, and whether their programs answer.
//!
//! Once such a program has taken a request, nothing but its answer ends the wait (fs/fuse/dev.c, `request_wait_answer`), and
//! execve waits for every thread (fs/exec.c, `de_thread`). So a process of its own asks first (crate::ask), which execve does
//! not wait for.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use crate::ask::{self, PAUSE, Question};
use crate::paths::Paths;

/// The FUSE file systems of this process' mount namespace.
#[derive(Debug, Default)]
pub(crate) struct Fuse {
    /// The number of each connection, by mount point. `None` for another file system, which can be mounted in a FUSE one.
    mounts: BTreeMap<PathBuf, Option<u32>>,
    /// fusectl's folder of each connection, while it is mounted; virtiofs has none (fs/fuse/virtio_fs.c,
    /// `no_control`).
    connections: PathBuf,
    /// The wrapper's program.
    own: PathBuf,
}

impl Fuse {
    /// # Errors
    /// The sentence that names the file which cannot be read.
    pub(crate) fn read(paths: &Paths) -> Result<Self, String> {
        let path = paths.lease.proc.join("self/mountinfo");
        let text =
            std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        Ok(Self {
            mounts: fuse_in(&text),
            connections: paths.lease.sys.join("fs/fuse/connections"),
            own: paths.own.clone(),
        })
    }

    /// Checks that the file system of this path answers, if it is FUSE. The path must have no links.
    ///
    /// # Errors
    /// There was no answer in time.
    pub(crate) fn check(&self, path: &Path, question: Question, until: Instant) -> io::Result<()> {
        let Some(connection) = self.connection(path) else { return Ok(()) };
        // A process that waits already is enough: each create would leave one more.
        if self.is_stuck(connection, until) {
            return Err(ask::no_answer());
        }
        ask::in_a_process(&self.own, path, question, until)
    }

    /// The connection of the file system that is mounted at the path, or nearest above it.
    fn connection(&self, path: &Path) -> Option<u32> {
        if self.mounts.is_empty() {
            return None;
        }
        path.ancestors().find_map(|folder| self.mounts.get(folder).copied()).flatten()
    }

    /// Requests wait, and until then none has had its answer.
    fn is_stuck(&self, connection: u32, until: Instant) -> bool {
        let path = self.connections.join(connection.to_string()).join("waiting");
        let waiting = || std::fs::read_to_string(&path).ok()?.trim().parse::<u64>().ok();
        let mut before = 0;
        while let Some(now) = waiting() {
            if now == 0 || now < before {
                return false;
            }
            if Instant::now() >= until {
                return true;
            }
            before = now;
            thread::sleep(PAUSE);
        }
        false
    }
}

/// proc_pid_mountinfo(5): the third field is the file system's device number, by which the kernel names the connection
/// (fs/fuse/control.c, `fuse_ctl_add_conn`). The fifth is the mount point. The type follows a field that is a dash. Where
/// several file systems are mounted at one path, the last one counts. What is mounted in a FUSE file system has a later
/// line.
fn fuse_in(mountinfo: &[u8]) -> BTreeMap<PathBuf, Option<u32>> {
    let mut fuse = BTreeMap::new();
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ');
        let connection = fields.nth(2).and_then(connection);
        let Some(point) = fields.nth(1).map(unescaped) else { continue };
        let kind = fields.skip_while(|field| *field != b"-").nth(1).unwrap_or_default();
        let is_fuse = [&b"fuse"[..], b"fuseblk", b"virtiofs"].contains(&kind) || kind.starts_with(b"fuse.");
        if is_fuse || !fuse.is_empty() {
            fuse.insert(point, connection.filter(|_| is_fuse));
        }
    }
    fuse
}

/// The kernel's own form of a device number: the minor has 20 bits (linux/kdev_t.h).
fn connection(device: &[u8]) -> Option<u32> {
    let (major, minor) = std::str::from_utf8(device).ok()?.split_once(':')?;
    Some((major.parse::<u32>().ok()? << 20) | minor.parse::<u32>().ok()?)
}

/// Space, tab, line feed and backslash are octal numbers of three digits behind a backslash.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let number =
            behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The first four lines are from a Debian 12 machine; the others were made.
    const LINES: &str = r"22 27 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard,errors=remount-ro
35 22 0:31 / /sys/fs/fuse/connections rw,nosuid,nodev,noexec,relatime shared:17 - fusectl fusectl rw
98 27 0:47 / /srv/s3 rw,nosuid,nodev,relatime shared:51 - fuse.s3fs s3fs rw,user_id=0,group_id=0,allow_other
99 27 0:48 / /srv/with\040space\134 rw master:1 propagate_from:2 - fuse x rw
100 27 8:1 / /srv/ntfs rw - fuseblk /dev/sda1 rw
101 27 0:49 / /srv/nfs rw - nfs4 server:/ rw
104 27 0:53 / /srv/host rw - virtiofs tag rw
102 27 0:50 / /srv/covered rw - fuse x rw
103 102 0:51 / /srv/covered rw - tmpfs fuse rw
105 27 0:52 / /srv/fuse rw - tmpfs - fuse
";

    #[test]
    fn a_mount_point_is_fuses_by_the_type_of_its_last_file_system() {
        let expected =
            [("/srv/host", 53), ("/srv/ntfs", (8 << 20) | 1), ("/srv/s3", 47), (r"/srv/with space\", 48)];
        let found = fuse_in(LINES.as_bytes());
        let found = found.iter().filter_map(|(path, number)| Some((path.to_str().unwrap(), (*number)?)));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert!(fuse_in(b"").is_empty() && fuse_in(b"1 2\nmud\n").is_empty());
    }

    #[test]
    fn a_path_is_in_the_file_system_that_is_mounted_nearest_above_it() {
        let lines = r"1 0 0:40 / / rw - fuse x rw
2 1 0:41 / /srv rw - tmpfs x rw
3 2 0:42 / /srv/s3 rw - fuse.s3fs x rw
";
        let fuse = Fuse { mounts: fuse_in(lines.as_bytes()), ..Fuse::default() };
        for (path, expected) in [
            ("/", Some(40)),
            ("/srv2", Some(40)),
            ("/srv", None),
            ("/srv/a", None),
            ("/srv/s3", Some(42)),
            ("/srv/s3/model", Some(42)),
        ] {
            assert_eq!(fuse.connection(Path::new(path)), expected, "{path}");
        }
        assert_eq!(Fuse::default().connection(Path::new("/srv")), None);
    }

    #[test]
    fn a_program_is_stuck_if_requests_wait_and_none_is_answered() {
        let dir = tempfile::tempdir().unwrap();
        let fuse = Fuse { connections: dir.path().to_owned(), ..Fuse::default() };
        std::fs::create_dir(dir.path().join("47")).unwrap();
        let stuck = || fuse.is_stuck(47, Instant::now() + Duration::from_millis(100));
        let waiting = dir.path().join("47/waiting");
        assert!(!stuck(), "fusectl is not mounted");
        for (text, expected) in [("0\n", false), ("1\n", true), ("12\n", true), ("mud", false)] {
            std::fs::write(&waiting, text).unwrap();
            assert_eq!(stuck(), expected, "{text}");
        }
        std::fs::write(&waiting, "5\n").unwrap();
        let answers = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            let fewer = waiting.with_file_name("fewer");
            std::fs::write(&fewer, "4\n").unwrap();
            std::fs::rename(fewer, waiting).unwrap();
        });
        assert!(!fuse.is_stuck(47, Instant::now() + Duration::from_secs(20)), "it works, and has much to do");
        answers.join().unwrap();
    }
}
