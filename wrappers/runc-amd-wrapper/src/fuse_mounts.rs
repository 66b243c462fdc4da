//! Where FUSE file systems are mounted, as the kernel lists it: no file system is asked for that.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The mount points of this process' mount namespace. Where several file systems are mounted at one path, the last one counts.
///
/// # Errors
/// The sentence that names the file which cannot be read.
pub(crate) fn fuse_mounts(proc: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let path = proc.join("self/mountinfo");
    let text = std::fs::read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(fuse_in(&text))
}

/// proc_pid_mountinfo(5): the fifth field is the mount point. The file system's type follows a field that is a dash.
fn fuse_in(mountinfo: &[u8]) -> BTreeSet<PathBuf> {
    let mut fuse = BTreeSet::new();
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ');
        let Some(point) = fields.nth(4).map(unescaped) else { continue };
        let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
        let is_fuse = behind
            .next()
            .is_some_and(|kind| kind == b"fuse" || kind == b"fuseblk" || kind.starts_with(b"fuse."));
        if is_fuse {
            fuse.insert(point);
        } else {
            fuse.remove(&point);
        }
    }
    fuse
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
    use super::*;

    /// The first four lines are from a Debian 12 machine; the others were made.
    const LINES: &str = r"22 27 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard,errors=remount-ro
35 22 0:31 / /sys/fs/fuse/connections rw,nosuid,nodev,noexec,relatime shared:17 - fusectl fusectl rw
98 27 0:47 / /srv/s3 rw,nosuid,nodev,relatime shared:51 - fuse.s3fs s3fs rw,user_id=0,group_id=0,allow_other
99 27 0:48 / /srv/with\040space\134 rw master:1 propagate_from:2 - fuse x rw
100 27 8:1 / /srv/ntfs rw - fuseblk /dev/sda1 rw
101 27 0:49 / /srv/nfs rw - nfs4 server:/ rw
102 27 0:50 / /srv/covered rw - fuse x rw
103 102 0:51 / /srv/covered rw - tmpfs fuse rw
104 27 0:52 / /srv/fuse rw - tmpfs - fuse
";

    #[test]
    fn a_mount_point_is_fuses_by_the_type_of_its_last_file_system() {
        let expected = ["/srv/ntfs", "/srv/s3", r"/srv/with space\"];
        let found = fuse_in(LINES.as_bytes());
        assert_eq!(found.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(), expected);
        assert!(fuse_in(b"").is_empty() && fuse_in(b"1 2\nmud\n").is_empty());
    }
}
