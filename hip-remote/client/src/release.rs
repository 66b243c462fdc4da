//! The ROCm release whose library this one stands for: the linker builds one library for each from equal code.

use std::ffi::c_int;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    Rocm5,
    Rocm6,
    Rocm7,
}

#[cfg(not(test))]
unsafe extern "C" {
    static rocworker_hip_release: c_int;
}

#[cfg(test)]
#[allow(non_upper_case_globals)]
static rocworker_hip_release: c_int = 6;

pub fn release() -> Release {
    // SAFETY: a constant of the library, which the link step defines.
    #[allow(unused_unsafe)]
    match unsafe { rocworker_hip_release } {
        5 => Release::Rocm5,
        6 => Release::Rocm6,
        _ => Release::Rocm7,
    }
}

/// `hipMemoryType`, whose numbers changed with ROCm 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryType {
    /// ROCm 6 and later.
    Unregistered,
    Host,
    Device,
    /// ROCm 6 and later.
    Managed,
    Array,
    Unified,
}

const ROCM_5: &[(u32, MemoryType)] =
    &[(0, MemoryType::Host), (1, MemoryType::Device), (2, MemoryType::Array), (3, MemoryType::Unified)];

const SINCE_ROCM_6: &[(u32, MemoryType)] = &[
    (0, MemoryType::Unregistered),
    (1, MemoryType::Host),
    (2, MemoryType::Device),
    (3, MemoryType::Managed),
    (10, MemoryType::Array),
    (11, MemoryType::Unified),
];

fn memory_types() -> &'static [(u32, MemoryType)] {
    if release() == Release::Rocm5 { ROCM_5 } else { SINCE_ROCM_6 }
}

pub fn memory_type(number: u32) -> Option<MemoryType> {
    memory_types().iter().find(|(known, _)| *known == number).map(|(_, memory)| *memory)
}

/// None where the release has no number for it.
pub fn memory_type_number(memory: MemoryType) -> Option<u32> {
    memory_types().iter().find(|(_, known)| *known == memory).map(|(number, _)| *number)
}
