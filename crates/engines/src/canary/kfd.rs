//! The one call to KFD: which version of its interface it has.
#![expect(unsafe_code, reason = "an ioctl hands the kernel a pointer; nix has a safe call for none of KFD's")]

use std::fs::File;
use std::os::fd::AsRawFd as _;

use nix::errno::Errno;

/// `struct kfd_ioctl_get_version_args`: include/uapi/linux/kfd_ioctl.h.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Version {
    major: u32,
    minor: u32,
}

nix::ioctl_read!(get_version, b'K', 0x01, Version);

/// What AMDKFD_IOC_GET_VERSION answers, as `1.11`.
pub fn version(kfd: &File) -> Result<String, Errno> {
    let mut version = Version::default();
    // SAFETY: the request's number names a structure of this layout, which lives until the call has ended.
    unsafe { get_version(kfd.as_raw_fd(), &raw mut version) }?;
    Ok(format!("{}.{}", version.major, version.minor))
}
