use std::path::Path;

use nix::fcntl::AtFlags;
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat, fstatat};
use nix::unistd::{Gid, Uid, fchownat};

use crate::{Error, Kind, Meta, Root};

impl Root {
    /// Gives a device node that is there its owner and permission bits.
    ///
    /// # Errors
    /// When the node is not there, is no character device, or the kernel refuses.
    pub fn set_node(
        &self,
        path: impl AsRef<Path>,
        mode: u32,
        uid: Option<u32>,
        gid: u32,
    ) -> Result<(), Error> {
        let path = path.as_ref();
        let failed = |action, errno| Error::io(action, self.shown(path), errno);
        let (parent, name) = self.split(path, "change")?;
        let folder = self.folder(parent)?;
        let stat =
            fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(|errno| failed("stat", errno))?;
        let meta = Meta::from_stat(&stat);
        if !matches!(meta.kind, Kind::Character { .. }) {
            let problem = "it is no character device; remove it and run udevadm trigger";
            return Err(Error::Folder { path: self.shown(path), problem });
        }
        let (uid, gid) = (uid.map(Uid::from_raw), Some(Gid::from_raw(gid)));
        self.crash_point("fchownat", path);
        fchownat(&folder, name, uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW)
            .map_err(|errno| failed("change the group of", errno))?;
        // Only root can put a link into /dev in between, and chmod has no way of not following one before Linux 6.6.
        self.crash_point("fchmodat", path);
        fchmodat(&folder, name, Mode::from_bits_truncate(mode), FchmodatFlags::FollowSymlink)
            .map_err(|errno| failed("change the mode of", errno))
    }
}
