//! Finds the mounted file system of a path, and the path without links.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, ResolveFlag};
use nix::sys::stat::Mode;
use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

use crate::Root;

impl Root {
    /// Where the path's file system begins: the nearest mount at the path or on the way to it (statx(2),
    /// `STATX_ATTR_MOUNT_ROOT`). A folder that is mounted onto itself does not count: it hides nothing, and
    /// exists only in a unit's sandbox (systemd.exec(5), `ReadWritePaths=`). `/` also where the kernel does
    /// not tell.
    #[must_use]
    pub fn mount_of(&self, path: impl AsRef<Path>) -> PathBuf {
        let beneath = |place: &&Path| place.parent().is_some();
        let path = path.as_ref();
        let behind_links = self.behind_roots_links(path);
        let path = behind_links.as_deref().unwrap_or(path);
        let mut listed = None;
        let is_mount = |place: &&Path| {
            let Some(id) = self.mount_at(place) else { return false };
            !shows_itself(listed.get_or_insert_with(|| self.mounts()), id)
        };
        let mount = path.ancestors().filter(beneath).find(is_mount);
        mount.unwrap_or(Path::new("/")).to_owned()
    }

    /// The number of the mount that begins at a path which is reached without any link.
    pub(crate) fn mount_at(&self, path: &Path) -> Option<u64> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
        let opened = self.open_with(path, flags, Mode::empty(), ResolveFlag::RESOLVE_NO_SYMLINKS).ok()?;
        let asked = StatxFlags::TYPE | StatxFlags::MNT_ID;
        let found = statx(&opened, "", AtFlags::EMPTY_PATH, asked).ok()?;
        found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT).then_some(found.stx_mnt_id)
    }

    /// A folder at or beneath a path at which something is mounted, by what the kernel lists. `None` where nothing is, or
    /// beneath a Root that shows no such list.
    #[must_use]
    pub fn mount_beneath(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        self.mounts().into_iter().map(|mount| mount.place).find(|place| place.starts_with(&path))
    }

    /// Whether a path and all that is mounted beneath it are on disks or in memory of this machine, by the
    /// kernel's list. A network's file system, or autofs, may never answer.
    #[must_use]
    pub fn is_local(&self, path: impl AsRef<Path>) -> bool {
        let mut beneath = self.mounts().into_iter().filter(|mount| mount.place.starts_with(&path));
        beneath.all(|mount| LOCAL.contains(&&*mount.kind))
    }

    /// The mounts in the kernel's list; none beneath a Root that has no such list.
    fn mounts(&self) -> Vec<Mount> {
        let list = self.read_text("/proc/self/mountinfo", 4 << 20).unwrap_or_default();
        list.lines().filter_map(Mount::parse).collect()
    }

    /// The path beneath the Root that leads to the file without any link. `None` where nothing is at `path`,
    /// or /proc is not mounted.
    #[must_use]
    pub fn without_links(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let path_of = |fd: BorrowedFd<'_>| {
            nix::fcntl::readlink(&*format!("/proc/self/fd/{}", fd.as_raw_fd())).map(PathBuf::from).ok()
        };
        let opened = self.open_at(path.as_ref(), OFlag::O_PATH).ok()?;
        let beneath = path_of(opened.as_fd())?.strip_prefix(path_of(self.dir.as_fd())?).ok()?.to_owned();
        Some(Path::new("/").join(beneath))
    }

    /// Under how many names a file is in its file system: more than one where it has hard links. `None` where nothing
    /// is, or the kernel does not say.
    #[must_use]
    pub fn hard_links(&self, path: impl AsRef<Path>) -> Option<u32> {
        let path = path.as_ref();
        let folder = self.open_folder(path.parent()?).ok()?;
        let found = statx(&folder, path.file_name()?, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::NLINK).ok()?;
        Some(found.stx_nlink)
    }
}

/// File systems that answer without another machine or program.
const LOCAL: [&str; 10] =
    ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"];

/// A line of proc_pid_mountinfo(5).
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    parent: u64,
    /// `8:1`
    device: String,
    /// The folder of the file system that the mount shows.
    shown: PathBuf,
    place: PathBuf,
    /// `ext4`
    kind: String,
    /// The file system's options: `rw,lowerdir=/a:/b`.
    options: String,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let [id, parent, device, shown, place] = std::array::from_fn(|_| words.next());
        // mountinfo writes characters that would end a word in octal.
        let path = |word: &str| PathBuf::from(word.replace("\\040", " ").replace("\\134", "\\"));
        // Behind as many optional fields as there are.
        let mut behind = words.skip_while(|word| *word != "-").skip(1);
        Some(Self {
            id: id?.parse().ok()?,
            parent: parent?.parse().ok()?,
            device: device?.to_owned(),
            shown: path(shown?),
            place: path(place?),
            kind: behind.next()?.to_owned(),
            options: behind.nth(1).unwrap_or_default().to_owned(),
        })
    }

    /// Whether the mount is an overlay that shows the folder that it covers, as systemd-sysext(8) puts one
    /// over /usr.
    fn is_over_itself(&self) -> bool {
        let mut options = self.options.split(',');
        let lower = options.clone().find_map(|option| option.strip_prefix("lowerdir="));
        let shows = |lower: &str| lower.split(':').any(|folder| Path::new(folder) == self.place);
        self.kind == "overlay" && lower.is_some_and(shows) && !options.any(|it| it.starts_with("upperdir="))
    }
}

/// Whether the mount shows what would be there without it.
fn shows_itself(mounts: &[Mount], id: u64) -> bool {
    let of = |id: u64| mounts.iter().find(|mount| mount.id == id);
    let mut this = of(id);
    if this.is_some_and(Mount::is_over_itself) {
        return true;
    }
    while let Some((mount, below)) = this.and_then(|mount| Some((mount, of(mount.parent)?))) {
        let would_be = mount.place.strip_prefix(&below.place).map(|way| below.shown.join(way));
        if mount.device != below.device || would_be.as_ref() != Ok(&mount.shown) {
            return false;
        }
        if mount.place != below.place {
            return true;
        }
        // Of two mounts at one place, what the lower one shows counts.
        this = Some(below);
    }
    false
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out its files"
)]
mod tests {
    use super::*;

    /// A machine whose /usr is a file system of its own, in a sandbox that may write /etc and /usr/local/lib.
    /// At /opt another folder of the machine is mounted, at /srv a tmpfs, at `/mnt/a b\` the folder itself.
    const SANDBOX: &str = "\
1 0 8:1 / / ro - ext4 /dev/sda1 ro
2 1 8:2 / /usr ro - ext4 /dev/sda2 ro
3 1 8:1 /etc /etc rw - ext4 /dev/sda1 rw
4 2 8:2 /local/lib /usr/local/lib rw - ext4 /dev/sda2 rw
5 1 8:1 /home/opt /opt rw - ext4 /dev/sda1 rw
6 1 0:40 / /srv rw - tmpfs none rw
7 6 0:40 / /srv rw - tmpfs none rw
8 3 8:1 /etc /etc rw - ext4 /dev/sda1 rw
9 1 8:1 /mnt/a\\040b\\134 /mnt/a\\040b\\134 rw - ext4 /dev/sda1 rw
";

    #[test]
    fn a_folder_that_is_mounted_onto_itself_hides_nothing() {
        let mounts: Vec<Mount> = SANDBOX.lines().map(|line| Mount::parse(line).unwrap()).collect();
        let itself: Vec<u64> = (0..12).filter(|id| shows_itself(&mounts, *id)).collect();
        assert_eq!(itself, [3, 4, 8, 9]);
        assert_eq!(mounts.last().unwrap().place, Path::new("/mnt/a b\\"));
        assert_eq!(Mount::parse("36 35 98:0 /mnt1"), None);
    }

    #[test]
    fn a_path_is_local_where_nothing_at_or_beneath_it_may_wait_for_another_machine() {
        let root = "1 0 8:1 / / rw - nfs4 boot:/ rw\n";
        for (mounts, is_local) in [
            ("", true),
            ("2 1 8:2 / /home rw,relatime shared:7 master:1 - ext4 /dev/sda2 rw\n", true),
            ("2 1 0:50 / /home rw shared:7 - autofs systemd-1 rw\n", false),
            ("2 1 0:51 / /home rw - nfs4 files:/home rw\n", false),
            ("2 1 8:2 / /home rw - xfs /dev/sda2 rw\n3 2 0:52 / /home/ann rw - fuse.sshfs ann rw\n", false),
            ("2 1 0:51 / /homes rw - nfs4 files:/home rw\n", true),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("proc/self/mountinfo");
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, format!("{root}{mounts}")).unwrap();
            assert_eq!(Root::open(dir.path()).unwrap().is_local("/home"), is_local, "{mounts}");
        }
    }
}
