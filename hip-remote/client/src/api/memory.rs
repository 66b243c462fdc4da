//! Device memory and pinned memory.

use std::ffi::{c_int, c_uint, c_void};

use hip_abi::memory::{self as kinds, Kind, PointerAttributes};
use hip_protocol::calls::{MemoryInfo, Memset};

use super::given::{On, PitchedPtr, WAIT, WAIT_SPT, later, later_spt};
use crate::border::hip;
use crate::error::{HipError, Outcome};
use crate::host_memory;
use crate::memory;
use crate::program::{get, put};
use crate::release::release;
use crate::thread::seated;

/// Rows begin at multiples of it, as clr's do (hipDeviceProp_t::memPitch's granularity).
const PITCH: usize = 256;

/// `hipHostMallocMapped`, `hipHostRegisterMapped`: a GPU would read the program's memory.
const MAPPED: c_uint = 0x2;

/// `hipHostMallocCoherent` and `hipHostMallocNonCoherent`: no memory is both.
const COHERENCE: c_uint = 0x4000_0000 | 0x8000_0000;

/// `hipHostMallocPortable`, `WriteCombined`, `Uncached` (ROCm 6) and `NumaUser`, for which one host's memory is all alike.
const OF_THE_HOST: c_uint = 0x1 | 0x4 | 0x1000_0000 | 0x2000_0000;

/// `hipInvalidDeviceId`.
const NO_DEVICE: c_int = -2;

/// `hipHostRegisterIoMemory`.
const IO_MEMORY: c_uint = 0x4;

fn allocate(to: *mut usize, bytes: usize) -> Outcome {
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let pointer = if bytes == 0 { 0 } else { memory::allocate(seat, bytes as u64)? };
        // SAFETY: the program wants the pointer there.
        unsafe { put(to, pointer as usize) }
    })
}

fn allocate_pitched(to: *mut usize, pitch: *mut usize, width: usize, rows: usize) -> Outcome {
    let row = width.checked_next_multiple_of(PITCH).ok_or(HipError::OUT_OF_MEMORY)?;
    if pitch.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    allocate(to, row.checked_mul(rows).ok_or(HipError::OUT_OF_MEMORY)?)?;
    // SAFETY: the program wants the pitch there.
    unsafe { put(pitch, row) }
}

fn can_allocate_host(flags: c_uint) -> Outcome {
    match flags {
        _ if flags & !(MAPPED | COHERENCE | OF_THE_HOST) != 0 => Err(HipError::INVALID_VALUE),
        _ if flags & COHERENCE == COHERENCE => Err(HipError::INVALID_VALUE),
        _ if flags & MAPPED != 0 => Err(HipError::NOT_SUPPORTED),
        _ => Ok(()),
    }
}

fn allocate_host(to: *mut usize, bytes: usize, flags: c_uint) -> Outcome {
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    can_allocate_host(flags)?;
    // A machine without a worker has no HIP at all.
    seated(|_| Ok(()))?;
    let start = if bytes == 0 { 0 } else { host_memory::allocate(bytes, flags)? };
    // SAFETY: the program wants the pointer there.
    unsafe { put(to, start) }
}

fn free_host(start: usize) -> Outcome {
    if start == 0 {
        return Ok(());
    }
    settle(start)?;
    host_memory::free(start)
}

fn settle(start: usize) -> Outcome {
    match host_memory::find(start) {
        Some(memory) => seated(|seat| memory::settle(seat, memory.start, memory.bytes)),
        None => Ok(()),
    }
}

fn fill(to: usize, value: u32, element: u32, count: usize, on: On) -> Outcome {
    let bytes = count.checked_mul(element as usize).ok_or(HipError::INVALID_VALUE)?;
    fill_rows(to, bytes, value, element, count, 1, on)
}

fn fill_rows(
    to: usize,
    pitch: usize,
    value: u32,
    element: u32,
    width: usize,
    height: usize,
    on: On,
) -> Outcome {
    seated(|seat| {
        let stream = on.wire(seat)?;
        let [pointer, pitch, width, height] = [to, pitch, width, height].map(|number| number as u64);
        memory::fill(seat, Memset { pointer, pitch, value, element, width, height, stream })
    })
}

/// Fills bytes: `hipMemset` takes an int and uses its lowest byte.
fn fill_bytes(to: usize, value: c_int, bytes: usize, on: On) -> Outcome {
    fill(to, u32::from(value.to_le_bytes()[0]), 1, bytes, on)
}

fn fill_2d(to: usize, pitch: usize, value: c_int, width: usize, height: usize, on: On) -> Outcome {
    fill_rows(to, pitch, u32::from(value.to_le_bytes()[0]), 1, width, height, on)
}

/// `hipExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

fn fill_3d(to: PitchedPtr, value: c_int, extent: Extent, on: On) -> Outcome {
    for slice in 0..extent.depth {
        let offset = slice.checked_mul(to.height).and_then(|rows| rows.checked_mul(to.pitch));
        let address =
            offset.and_then(|offset| to.address.checked_add(offset)).ok_or(HipError::INVALID_VALUE)?;
        fill_2d(address, to.pitch, value, extent.width, extent.height, on)?;
    }
    Ok(())
}

/// Memory that a pointer is in.
struct Whose {
    kind: Kind,
    device: c_int,
    start: usize,
    bytes: usize,
    flags: c_uint,
}

fn whose(pointer: usize) -> Outcome<Option<Whose>> {
    if let Some(found) = host_memory::find(pointer) {
        return Ok(Some(Whose {
            kind: Kind::Host,
            device: 0,
            start: found.start,
            bytes: found.bytes,
            flags: found.flags,
        }));
    }
    seated(|seat| {
        let found = seat.session().tables().allocations.find(pointer as u64);
        Ok(found.map(|found| Whose {
            kind: Kind::Device,
            device: found.device,
            start: found.start as usize,
            bytes: found.bytes as usize,
            flags: 0,
        }))
    })
}

fn pointer_attributes(pointer: usize) -> Outcome<PointerAttributes> {
    let number = |kind| kinds::number(release(), kind).ok_or(HipError::INVALID_VALUE);
    let Some(whose) = whose(pointer)? else {
        let (kind, device) = (number(Kind::Unregistered)?, NO_DEVICE);
        return Ok(PointerAttributes {
            kind,
            device,
            device_pointer: 0,
            host_pointer: 0,
            managed: 0,
            flags: 0,
        });
    };
    let (device_pointer, host_pointer) = if whose.kind == Kind::Device { (pointer, 0) } else { (0, pointer) };
    let (kind, device, flags) = (number(whose.kind)?, whose.device, whose.flags);
    Ok(PointerAttributes { kind, device, device_pointer, host_pointer, managed: 0, flags })
}

/// One attribute of a pointer, by `HIP_POINTER_ATTRIBUTE_*`.
///
/// # Safety
/// The program may write a value of the attribute's type there.
unsafe fn pointer_attribute(to: *mut c_void, attribute: c_uint, pointer: usize) -> Outcome {
    let whose = whose(pointer)?;
    let known = || whose.as_ref().ok_or(HipError::INVALID_VALUE);
    // SAFETY: as the caller promises, in each arm.
    unsafe {
        match attribute {
            2 => put(to.cast(), pointer_attributes(pointer)?.kind),
            3 if known()?.kind == Kind::Device => put(to.cast(), pointer),
            4 if known()?.kind == Kind::Host => put(to.cast(), pointer),
            3 | 4 => Err(HipError::INVALID_VALUE),
            8 => put(to.cast(), false),
            9 => put(to.cast(), known()?.device),
            11 => put(to.cast(), known()?.start),
            12 => put(to.cast(), known()?.bytes),
            13 => put(to.cast(), whose.is_some_and(|whose| whose.kind == Kind::Device)),
            1 | 5..=7 | 10 | 14..=17 => Err(HipError::NOT_SUPPORTED),
            _ => Err(HipError::INVALID_VALUE),
        }
    }
}

hip! {
    fn hipMalloc(to: *mut usize, bytes: usize) { allocate(to, bytes) }

    fn hipExtMallocWithFlags(to: *mut usize, bytes: usize, flags: c_uint) {
        // Fine-grained and signal memory is for a host that shares the GPU's bus.
        if flags == 0 { allocate(to, bytes) } else { Err(HipError::NOT_SUPPORTED) }
    }

    fn hipMallocPitch(to: *mut usize, pitch: *mut usize, width: usize, height: usize) {
        allocate_pitched(to, pitch, width, height)
    }

    fn hipMemAllocPitch(to: *mut usize, pitch: *mut usize, width: usize, height: usize, _element: c_uint) {
        allocate_pitched(to, pitch, width, height)
    }

    fn hipMalloc3D(to: *mut PitchedPtr, extent: Extent) {
        let rows = extent.height.checked_mul(extent.depth).ok_or(HipError::OUT_OF_MEMORY)?;
        let (mut address, mut pitch) = (0, 0);
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        allocate_pitched(&raw mut address, &raw mut pitch, extent.width, rows)?;
        // SAFETY: the program wants the result there.
        unsafe { put(to, PitchedPtr { address, pitch, width: extent.width, height: extent.height }) }
    }

    fn hipFree(pointer: usize) {
        if pointer == 0 {
            return Ok(());
        }
        seated(|seat| memory::free(seat, pointer as u64))
    }

    fn hipHostMalloc(to: *mut usize, bytes: usize, flags: c_uint) { allocate_host(to, bytes, flags) }

    fn hipHostAlloc(to: *mut usize, bytes: usize, flags: c_uint) { allocate_host(to, bytes, flags) }

    fn hipMallocHost(to: *mut usize, bytes: usize) { allocate_host(to, bytes, 0) }

    fn hipMemAllocHost(to: *mut usize, bytes: usize) { allocate_host(to, bytes, 0) }

    fn hipHostFree(start: usize) { free_host(start) }

    fn hipFreeHost(start: usize) { free_host(start) }

    fn hipHostRegister(start: usize, bytes: usize, flags: c_uint) {
        if start == 0 || bytes == 0 {
            return Err(HipError::INVALID_VALUE);
        }
        if flags & (MAPPED | IO_MEMORY) != 0 {
            return Err(HipError::NOT_SUPPORTED);
        }
        seated(|_| Ok(()))?;
        host_memory::register(start, bytes, flags)
    }

    fn hipHostUnregister(start: usize) {
        settle(start)?;
        host_memory::unregister(start)
    }

    fn hipHostGetFlags(to: *mut c_uint, pointer: usize) {
        let found = host_memory::find(pointer).ok_or(HipError::INVALID_VALUE)?;
        // SAFETY: the program wants the flags there.
        unsafe { put(to, found.flags) }
    }

    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        seated(|seat| {
            let (memory, _) = seat.session().connection.call(&seat.desk, &MemoryInfo {}, &[])?;
            for (to, bytes) in [(free, memory.free), (total, memory.total)] {
                if !to.is_null() {
                    // SAFETY: the program wants the number there.
                    unsafe { put(to, bytes as usize) }?;
                }
            }
            Ok(())
        })
    }

    fn hipMemPtrGetInfo(pointer: usize, to: *mut usize) {
        let whose = whose(pointer)?.ok_or(HipError::INVALID_VALUE)?;
        // SAFETY: the program wants the size there.
        unsafe { put(to, whose.bytes) }
    }

    fn hipMemGetAddressRange(start: *mut usize, bytes: *mut usize, pointer: usize) {
        let whose = whose(pointer)?.ok_or(HipError::INVALID_VALUE)?;
        // SAFETY: the program wants the start and the size there.
        unsafe {
            put(start, whose.start)?;
            put(bytes, whose.bytes)
        }
    }

    fn hipPointerGetAttributes(to: *mut PointerAttributes, pointer: usize) {
        if to.is_null() || pointer == 0 {
            return Err(HipError::INVALID_VALUE);
        }
        // SAFETY: the program wants the attributes there.
        unsafe { put(to, pointer_attributes(pointer)?) }
    }

    fn hipPointerGetAttribute(to: *mut c_void, attribute: c_uint, pointer: usize) {
        // SAFETY: the program passes a place for this attribute.
        unsafe { pointer_attribute(to, attribute, pointer) }
    }

    fn hipDrvPointerGetAttributes(count: c_uint, attributes: *const c_uint, to: *const *mut c_void, pointer: usize) {
        if attributes.is_null() || to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        for number in 0..count as usize {
            // SAFETY: the program passes that many attributes and places for them.
            unsafe { pointer_attribute(get(to.add(number))?, get(attributes.add(number))?, pointer) }?;
        }
        Ok(())
    }

    fn hipMemset(to: usize, value: c_int, bytes: usize) { fill_bytes(to, value, bytes, WAIT) }

    fn hipMemset_spt(to: usize, value: c_int, bytes: usize) { fill_bytes(to, value, bytes, WAIT_SPT) }

    fn hipMemsetAsync(to: usize, value: c_int, bytes: usize, stream: usize) { fill_bytes(to, value, bytes, later(stream)) }

    fn hipMemsetAsync_spt(to: usize, value: c_int, bytes: usize, stream: usize) {
        fill_bytes(to, value, bytes, later_spt(stream))
    }

    fn hipMemsetD8(to: usize, value: u8, count: usize) { fill(to, u32::from(value), 1, count, WAIT) }

    fn hipMemsetD8Async(to: usize, value: u8, count: usize, stream: usize) {
        fill(to, u32::from(value), 1, count, later(stream))
    }

    fn hipMemsetD16(to: usize, value: u16, count: usize) { fill(to, u32::from(value), 2, count, WAIT) }

    fn hipMemsetD16Async(to: usize, value: u16, count: usize, stream: usize) {
        fill(to, u32::from(value), 2, count, later(stream))
    }

    fn hipMemsetD32(to: usize, value: u32, count: usize) { fill(to, value, 4, count, WAIT) }

    fn hipMemsetD32Async(to: usize, value: u32, count: usize, stream: usize) { fill(to, value, 4, count, later(stream)) }

    fn hipMemset2D(to: usize, pitch: usize, value: c_int, width: usize, height: usize) {
        fill_2d(to, pitch, value, width, height, WAIT)
    }

    fn hipMemset2D_spt(to: usize, pitch: usize, value: c_int, width: usize, height: usize) {
        fill_2d(to, pitch, value, width, height, WAIT_SPT)
    }

    fn hipMemset2DAsync(to: usize, pitch: usize, value: c_int, width: usize, height: usize, stream: usize) {
        fill_2d(to, pitch, value, width, height, later(stream))
    }

    fn hipMemset2DAsync_spt(to: usize, pitch: usize, value: c_int, width: usize, height: usize, stream: usize) {
        fill_2d(to, pitch, value, width, height, later_spt(stream))
    }

    fn hipMemset3D(to: PitchedPtr, value: c_int, extent: Extent) { fill_3d(to, value, extent, WAIT) }

    fn hipMemset3D_spt(to: PitchedPtr, value: c_int, extent: Extent) { fill_3d(to, value, extent, WAIT_SPT) }

    fn hipMemset3DAsync(to: PitchedPtr, value: c_int, extent: Extent, stream: usize) {
        fill_3d(to, value, extent, later(stream))
    }

    fn hipMemset3DAsync_spt(to: PitchedPtr, value: c_int, extent: Extent, stream: usize) {
        fill_3d(to, value, extent, later_spt(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::tests::each;

    #[test]
    fn flags_of_pinned_memory_that_hip_does_not_have_are_refused() {
        for (flags, allowed) in [
            (0, Ok(())),
            (0x4000_0005, Ok(())),
            (0xa000_0000, Ok(())),
            (0x2, Err(HipError::NOT_SUPPORTED)),
            (0x8, Err(HipError::INVALID_VALUE)),
            (0xc000_0000, Err(HipError::INVALID_VALUE)),
            (0xffff_ff00, Err(HipError::INVALID_VALUE)),
        ] {
            assert_eq!(can_allocate_host(flags), allowed, "{flags:#x}");
        }
    }

    #[test]
    fn pinned_memory_has_each_releases_own_number() {
        let memory = [0u8; 64];
        let start = memory.as_ptr() as usize;
        host_memory::register(start, memory.len(), 0).unwrap();
        each(|release| {
            let found = pointer_attributes(start + 1).unwrap();
            assert_eq!(found.kind, if release == 5 { 0 } else { 1 });
            assert_eq!((found.host_pointer, found.device_pointer), (start + 1, 0));
        });
        host_memory::unregister(start).unwrap();
    }
}
