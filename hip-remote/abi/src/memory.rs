//! Kinds of memory, as `hipPointerGetAttributes` says them: ROCm 6 numbered them anew (driver_types.h of 5.2.3 and 6.4.3).

use crate::release::Release;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Host,
    Device,
    /// Memory of the program that HIP knows nothing of. ROCm 5 has no number for it and answers `hipErrorInvalidValue`.
    Unregistered,
}

/// `hipMemoryType`.
pub fn number(release: Release, kind: Kind) -> Option<i32> {
    match (release, kind) {
        (Release::Rocm5, Kind::Host) => Some(0),
        (Release::Rocm5, Kind::Device) => Some(1),
        (Release::Rocm5, Kind::Unregistered) => None,
        (_, Kind::Unregistered) => Some(0),
        (_, Kind::Host) => Some(1),
        (_, Kind::Device) => Some(2),
    }
}

/// `hipPointerAttribute_t`, equal in each release.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PointerAttributes {
    pub kind: i32,
    pub device: i32,
    pub device_pointer: usize,
    pub host_pointer: usize,
    pub managed: i32,
    pub flags: u32,
}
