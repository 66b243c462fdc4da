//! What a kernel can keep in its code object from launch to launch.

use crate::elf::segments;

const PT_LOAD: u32 = 1;
/// The part that a loader makes read-only: the linker's own tables.
const PT_GNU_RELRO: u32 = 0x6474_e552;
const PF_W: u32 = 2;

/// Whether a code object has variables that its kernels can write. One that cannot be read has none.
pub fn has_writable_data(code_object: &[u8]) -> bool {
    let Ok(segments) = segments(code_object) else { return false };
    let read_only = segments.clone().find(|segment| segment.kind == PT_GNU_RELRO).map(|part| part.address);
    let mut written = segments.filter(|segment| segment.kind == PT_LOAD && segment.flags & PF_W != 0);
    written.any(|segment| Some(segment.address) != read_only)
}
