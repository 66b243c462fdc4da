//! Copies.

use std::ffi::{c_int, c_uint, c_void};

use hip_abi::memory;

use super::given::{On, PitchedPtr, WAIT, WAIT_SPT, later, later_spt, wait};
use crate::border::hip;
use crate::copies::{self, Copy, DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, Side};
use crate::error::{HipError, Outcome};
use crate::modules;
use crate::program::{get, put};
use crate::release::release;
use crate::thread::{Seat, seated};

fn flat(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint, on: On) -> Outcome {
    seated(|seat| {
        let wire = on.wire(seat)?;
        Copy::flat(to as usize, from as usize, bytes, kind, wire, on.wait).make(seat)
    })
}

/// Pointers say their device themselves: the numbers need only be devices.
fn peers(
    to: *mut c_void,
    to_device: c_int,
    from: *const c_void,
    from_device: c_int,
    bytes: usize,
    on: On,
) -> Outcome {
    seated(|seat| seat.session().device(to_device).and(seat.session().device(from_device)))?;
    flat(to, from, bytes, DEVICE_TO_DEVICE, on)
}

fn rows(to: Side, from: Side, width: usize, height: usize, kind: c_uint, on: On) -> Outcome {
    seated(|seat| make_rows(seat, to, from, width, height, kind, on))
}

fn make_rows(
    seat: &Seat,
    to: Side,
    from: Side,
    width: usize,
    height: usize,
    kind: c_uint,
    on: On,
) -> Outcome {
    let stream = on.wire(seat)?;
    Copy { to, from, width, height, kind, stream, wait: on.wait }.make(seat)
}

fn pitched(address: *const c_void, pitch: usize) -> Side {
    Side { address: address as usize, pitch }
}

/// `hip_Memcpy2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memcpy2D {
    from_x: usize,
    from_y: usize,
    from_type: c_uint,
    from_host: usize,
    from_device: usize,
    from_array: usize,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_type: c_uint,
    to_host: usize,
    to_device: usize,
    to_array: usize,
    to_pitch: usize,
    width: usize,
    height: usize,
}

fn parameters(copy: *const c_void, on: On) -> Outcome {
    // SAFETY: the program passes its parameters.
    let copy = unsafe { get(copy.cast::<Memcpy2D>()) }?;
    let side = |kind, host, device, x: usize, y: usize, pitch: usize| {
        let is = |memory| i32::try_from(kind).ok() == memory::number(release(), memory);
        let base: usize = match () {
            () if is(memory::Kind::Host) => host,
            () if is(memory::Kind::Device) => device,
            // Arrays and managed memory.
            () => return Err(HipError::NOT_SUPPORTED),
        };
        let offset =
            y.checked_mul(pitch).and_then(|rows| rows.checked_add(x)).ok_or(HipError::INVALID_VALUE)?;
        // A pitch of 0 is that of rows without gaps.
        let pitch = if pitch == 0 { copy.width } else { pitch };
        Ok(Side { address: base.checked_add(offset).ok_or(HipError::INVALID_VALUE)?, pitch })
    };
    let from =
        side(copy.from_type, copy.from_host, copy.from_device, copy.from_x, copy.from_y, copy.from_pitch)?;
    let to = side(copy.to_type, copy.to_host, copy.to_device, copy.to_x, copy.to_y, copy.to_pitch)?;
    rows(to, from, copy.width, copy.height, copies::DEFAULT, on)
}

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memcpy3D {
    from_array: usize,
    from_position: [usize; 3],
    from: PitchedPtr,
    to_array: usize,
    to_position: [usize; 3],
    to: PitchedPtr,
    extent: [usize; 3],
    kind: c_uint,
}

fn volume(copy: *const c_void, on: On) -> Outcome {
    // SAFETY: the program passes its parameters.
    let copy = unsafe { get(copy.cast::<Memcpy3D>()) }?;
    if copy.from_array != 0 || copy.to_array != 0 {
        return Err(HipError::NOT_SUPPORTED);
    }
    let [width, mut height, mut depth] = copy.extent;
    // Slices without rows between them are one: a copy of each would wait a round trip for memory that is not pinned.
    if [&copy.from, &copy.to].iter().all(|side| side.height == height) {
        height = height.checked_mul(depth).ok_or(HipError::INVALID_VALUE)?;
        depth = depth.min(1);
    }
    let slice = |side: &PitchedPtr, [x, y, z]: [usize; 3], slice: usize| {
        let row = z.checked_add(slice)?.checked_mul(side.height)?.checked_add(y)?;
        let offset = row.checked_mul(side.pitch)?.checked_add(x)?;
        Some(Side { address: side.address.checked_add(offset)?, pitch: side.pitch })
    };
    seated(|seat| {
        for number in 0..depth {
            let from = slice(&copy.from, copy.from_position, number).ok_or(HipError::INVALID_VALUE)?;
            let to = slice(&copy.to, copy.to_position, number).ok_or(HipError::INVALID_VALUE)?;
            let wait = on.wait && number + 1 == depth;
            make_rows(seat, to, from, width, height, copy.kind, On { wait, ..on })?;
        }
        Ok(())
    })
}

/// Where in a variable a copy begins.
fn within(seat: &Seat, symbol: *const c_void, offset: usize, bytes: usize) -> Outcome<usize> {
    let variable = modules::variable_of_host(seat, symbol as usize)?;
    match offset.checked_add(bytes) {
        Some(end) if end as u64 <= variable.bytes => Ok(variable.pointer as usize + offset),
        _ => Err(HipError::INVALID_VALUE),
    }
}

fn to_symbol(
    symbol: *const c_void,
    from: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_uint,
    on: On,
) -> Outcome {
    seated(|seat| {
        let to = within(seat, symbol, offset, bytes)?;
        let wire = on.wire(seat)?;
        Copy::flat(to, from as usize, bytes, kind, wire, on.wait).make(seat)
    })
}

fn from_symbol(
    to: *mut c_void,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_uint,
    on: On,
) -> Outcome {
    seated(|seat| {
        let from = within(seat, symbol, offset, bytes)?;
        let wire = on.wire(seat)?;
        Copy::flat(to as usize, from, bytes, kind, wire, on.wait).make(seat)
    })
}

hip! {
    fn hipMemcpy(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint) { flat(to, from, bytes, kind, WAIT) }

    fn hipMemcpy_spt(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint) {
        flat(to, from, bytes, kind, WAIT_SPT)
    }

    fn hipMemcpyAsync(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint, stream: usize) {
        flat(to, from, bytes, kind, later(stream))
    }

    fn hipMemcpyAsync_spt(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint, stream: usize) {
        flat(to, from, bytes, kind, later_spt(stream))
    }

    fn hipMemcpyWithStream(to: *mut c_void, from: *const c_void, bytes: usize, kind: c_uint, stream: usize) {
        flat(to, from, bytes, kind, wait(stream))
    }

    fn hipMemcpyHtoD(to: *mut c_void, from: *const c_void, bytes: usize) { flat(to, from, bytes, HOST_TO_DEVICE, WAIT) }

    fn hipMemcpyDtoH(to: *mut c_void, from: *const c_void, bytes: usize) { flat(to, from, bytes, DEVICE_TO_HOST, WAIT) }

    fn hipMemcpyDtoD(to: *mut c_void, from: *const c_void, bytes: usize) { flat(to, from, bytes, DEVICE_TO_DEVICE, WAIT) }

    fn hipMemcpyHtoDAsync(to: *mut c_void, from: *const c_void, bytes: usize, stream: usize) {
        flat(to, from, bytes, HOST_TO_DEVICE, later(stream))
    }

    fn hipMemcpyDtoHAsync(to: *mut c_void, from: *const c_void, bytes: usize, stream: usize) {
        flat(to, from, bytes, DEVICE_TO_HOST, later(stream))
    }

    fn hipMemcpyDtoDAsync(to: *mut c_void, from: *const c_void, bytes: usize, stream: usize) {
        flat(to, from, bytes, DEVICE_TO_DEVICE, later(stream))
    }

    fn hipMemcpyPeer(to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize) {
        peers(to, to_device, from, from_device, bytes, WAIT)
    }

    fn hipMemcpyPeerAsync(
        to: *mut c_void, to_device: c_int, from: *const c_void, from_device: c_int, bytes: usize, stream: usize,
    ) {
        peers(to, to_device, from, from_device, bytes, later(stream))
    }

    fn hipMemcpyToSymbol(symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_uint) {
        to_symbol(symbol, from, bytes, offset, kind, WAIT)
    }

    fn hipMemcpyToSymbol_spt(symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_uint) {
        to_symbol(symbol, from, bytes, offset, kind, WAIT_SPT)
    }

    fn hipMemcpyToSymbolAsync(
        symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_uint, stream: usize,
    ) {
        to_symbol(symbol, from, bytes, offset, kind, later(stream))
    }

    fn hipMemcpyToSymbolAsync_spt(
        symbol: *const c_void, from: *const c_void, bytes: usize, offset: usize, kind: c_uint, stream: usize,
    ) {
        to_symbol(symbol, from, bytes, offset, kind, later_spt(stream))
    }

    fn hipMemcpyFromSymbol(to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_uint) {
        from_symbol(to, symbol, bytes, offset, kind, WAIT)
    }

    fn hipMemcpyFromSymbol_spt(to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_uint) {
        from_symbol(to, symbol, bytes, offset, kind, WAIT_SPT)
    }

    fn hipMemcpyFromSymbolAsync(
        to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_uint, stream: usize,
    ) {
        from_symbol(to, symbol, bytes, offset, kind, later(stream))
    }

    fn hipMemcpyFromSymbolAsync_spt(
        to: *mut c_void, symbol: *const c_void, bytes: usize, offset: usize, kind: c_uint, stream: usize,
    ) {
        from_symbol(to, symbol, bytes, offset, kind, later_spt(stream))
    }

    fn hipGetSymbolAddress(to: *mut usize, symbol: *const c_void) {
        // SAFETY: the program wants the address there.
        seated(|seat| unsafe { put(to, modules::variable_of_host(seat, symbol as usize)?.pointer as usize) })
    }

    fn hipGetSymbolSize(to: *mut usize, symbol: *const c_void) {
        // SAFETY: the program wants the size there.
        seated(|seat| unsafe { put(to, modules::variable_of_host(seat, symbol as usize)?.bytes as usize) })
    }

    fn hipMemcpy2D(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_uint,
    ) {
        rows(pitched(to, to_pitch), pitched(from, from_pitch), width, height, kind, WAIT)
    }

    fn hipMemcpy2D_spt(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_uint,
    ) {
        rows(pitched(to, to_pitch), pitched(from, from_pitch), width, height, kind, WAIT_SPT)
    }

    fn hipMemcpy2DAsync(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_uint,
        stream: usize,
    ) {
        rows(pitched(to, to_pitch), pitched(from, from_pitch), width, height, kind, later(stream))
    }

    fn hipMemcpy2DAsync_spt(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: c_uint,
        stream: usize,
    ) {
        rows(pitched(to, to_pitch), pitched(from, from_pitch), width, height, kind, later_spt(stream))
    }

    fn hipMemcpyParam2D(copy: *const c_void) { parameters(copy, WAIT) }

    fn hipMemcpyParam2DAsync(copy: *const c_void, stream: usize) { parameters(copy, later(stream)) }

    fn hipDrvMemcpy2DUnaligned(copy: *const c_void) { parameters(copy, WAIT) }

    fn hipMemcpy3D(copy: *const c_void) { volume(copy, WAIT) }

    fn hipMemcpy3D_spt(copy: *const c_void) { volume(copy, WAIT_SPT) }

    fn hipMemcpy3DAsync(copy: *const c_void, stream: usize) { volume(copy, later(stream)) }

    fn hipMemcpy3DAsync_spt(copy: *const c_void, stream: usize) { volume(copy, later_spt(stream)) }
}
