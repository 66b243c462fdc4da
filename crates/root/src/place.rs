//! Where a path stands: on which mounted file system, and under how many names.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

use crate::Root;

impl Root {
    /// The nearest folder on the way to a path at which a file system is mounted, one folder onto another among them
    /// (statx(2), `STATX_ATTR_MOUNT_ROOT`). `None`: it is the Root's own, or the kernel does not tell.
    #[must_use]
    pub fn mount_of(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let beneath = |folder: &&Path| folder.parent().is_some();
        let is_mount = |folder: &&Path| {
            let Ok(opened) = self.open_folder(folder) else { return false };
            let found = statx(&opened, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
            found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
        };
        path.as_ref().ancestors().skip(1).filter(beneath).find(is_mount).map(Path::to_owned)
    }

    /// A folder at or beneath a path at which something is mounted, by what the kernel lists (proc_pid_mountinfo(5)).
    /// `None` where nothing is, or beneath a Root that shows no such list.
    #[must_use]
    pub fn mount_beneath(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let list = self.read_text("/proc/self/mountinfo", 4 << 20).ok()?;
        let place = |line: &str| Some(PathBuf::from(line.split(' ').nth(4)?.replace("\\040", " ")));
        list.lines().filter_map(place).find(|place| place.starts_with(&path))
    }

    /// Under how many names a file is in its file system: more than one where it has hard links. `None` where nothing
    /// is, or it cannot be told.
    #[must_use]
    pub fn hard_links(&self, path: impl AsRef<Path>) -> Option<u32> {
        let path = path.as_ref();
        let folder = self.open_folder(path.parent()?).ok()?;
        let found = statx(&folder, path.file_name()?, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::NLINK).ok()?;
        Some(found.stx_nlink)
    }
}
