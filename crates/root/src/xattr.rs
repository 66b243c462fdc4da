//! Extended attributes: access control lists, security labels, a user's own. A file that is replaced by rename would
//! lose them.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};

use crate::error::of_rustix;

/// The kernel's limit for the list of names and for a value (XATTR_LIST_MAX, XATTR_SIZE_MAX in
/// include/uapi/linux/limits.h).
const LIMIT: usize = 64 << 10;

/// The kernel works these out of a file's bytes and its inode (Documentation/ABI/testing/evm): another file's are wrong.
const OF_THE_BYTES: [&[u8]; 2] = [b"security.ima", b"security.evm"];

/// Removes the access control list that a new file has from its folder's default one (acl(5)): its mode, or the file
/// that it replaces, says who may open it.
pub(crate) fn drop_acl(file: &OwnedFd) -> Result<(), Errno> {
    match fremovexattr(file, "system.posix_acl_access") {
        Err(error) if error != rustix::io::Errno::NODATA && error != rustix::io::Errno::OPNOTSUPP => {
            Err(of_rustix(error))
        }
        _ => Ok(()),
    }
}

/// Gives a file the attributes of the one that it will replace. It omits those that this process may not set, or the file
/// system does not have. Those that decide who may open the file or what it may do are an error.
pub(crate) fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<(), Errno> {
    let mut names = vec![0_u8; LIMIT];
    let listed = match flistxattr(from, names.as_mut_slice()) {
        Ok(length) => length,
        Err(rustix::io::Errno::OPNOTSUPP) => return Ok(()),
        Err(error) => return Err(of_rustix(error)),
    };
    names.truncate(listed);
    let mut value = vec![0_u8; LIMIT];
    let is_meant = |name: &&[u8]| !name.is_empty() && !OF_THE_BYTES.contains(name);
    for name in names.split(|byte| *byte == 0).filter(is_meant) {
        let is_needed = name.starts_with(b"user.")
            || name.starts_with(b"system.posix_acl")
            || name == b"security.capability";
        let copied = fgetxattr(from, name, value.as_mut_slice()).and_then(|length| {
            fsetxattr(to, name, value.get(..length).unwrap_or_default(), XattrFlags::empty())
        });
        if let Err(error) = copied
            && is_needed
        {
            return Err(of_rustix(error));
        }
    }
    Ok(())
}
