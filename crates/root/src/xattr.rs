//! Extended attributes: access control lists, security labels, a user's own. A file that is replaced by rename would
//! lose them.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};

/// Both limits are the kernel's (XATTR_LIST_MAX, XATTR_SIZE_MAX in include/uapi/linux/limits.h).
const LIMIT: usize = 64 << 10;

/// Gives a file the attributes of the one that it will replace. Those that this process may not set, or the file system
/// does not have, stay behind unless they decide who may open the file.
pub(crate) fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut names = vec![0_u8; LIMIT];
    let listed = match flistxattr(from, names.as_mut_slice()) {
        Ok(length) => length,
        Err(rustix::io::Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
    };
    names.truncate(listed);
    let mut value = vec![0_u8; LIMIT];
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let is_needed = name.starts_with(b"user.") || name.starts_with(b"system.posix_acl");
        let copied = fgetxattr(from, name, value.as_mut_slice()).and_then(|length| {
            fsetxattr(to, name, value.get(..length).unwrap_or_default(), XattrFlags::empty())
        });
        if let Err(error) = copied
            && is_needed
        {
            return Err(Errno::from_raw(error.raw_os_error()));
        }
    }
    Ok(())
}
