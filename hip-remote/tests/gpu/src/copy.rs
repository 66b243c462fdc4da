//! Copies and fills of rows, whose ranges are checked before they are done.

use std::sync::Arc;

use crate::device::Device;
use crate::memory::{Kind, memory};
use crate::status::{INVALID_VALUE, Status};
use crate::stream::Stream;

/// gpu.h has its twin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub to: u64,
    pub to_pitch: u64,
    pub from: u64,
    pub from_pitch: u64,
    /// In bytes.
    pub width: u64,
    pub height: u64,
    /// hipMemcpyKind: 0 to 3, or 4 for whatever the pointers are.
    pub kind: i32,
}

#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub to: u64,
    pub pitch: u64,
    pub value: u32,
    pub element: u64,
    /// In elements.
    pub width: u64,
    pub height: u64,
}

/// From the first byte of rows to behind their last one.
fn span(pitch: u64, width: u64, height: u64) -> Result<u64, Status> {
    if height > 1 && pitch < width {
        return Err(INVALID_VALUE);
    }
    (height - 1).checked_mul(pitch).and_then(|rows| rows.checked_add(width)).ok_or(INVALID_VALUE)
}

/// Where a side of a copy is: on a device, in pinned memory, or pageable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Device,
    Pinned,
    Pageable,
}

fn side(address: u64, bytes: u64) -> Result<Side, Status> {
    Ok(match memory().holding(address, bytes)?.map(|allocation| allocation.kind) {
        Some(Kind::Device | Kind::Code) => Side::Device,
        Some(Kind::Pinned | Kind::Registered) => Side::Pinned,
        None => Side::Pageable,
    })
}

/// # Safety
/// What is of the host must be valid for the rows, and stay so until the copy is done.
pub unsafe fn copy(
    device: &'static Device,
    stream: &Arc<Stream>,
    rows: Rows,
    wait: bool,
) -> Result<(), Status> {
    if rows.width == 0 || rows.height == 0 {
        return Ok(());
    }
    if rows.to == 0 || rows.from == 0 {
        return Err(INVALID_VALUE);
    }
    let to = side(rows.to, span(rows.to_pitch, rows.width, rows.height)?)?;
    let from = side(rows.from, span(rows.from_pitch, rows.width, rows.height)?)?;
    let (to_device, from_device) = match rows.kind {
        0 => (false, false),
        1 => (true, false),
        2 => (false, true),
        3 => (true, true),
        4 => (to == Side::Device, from == Side::Device),
        _ => return Err(INVALID_VALUE),
    };
    // Pinned memory is the devices' as well, and device memory never the host's.
    let fits =
        |is_device: bool, side: Side| if is_device { side != Side::Pageable } else { side != Side::Device };
    if !fits(to_device, to) || !fits(from_device, from) {
        return Err(INVALID_VALUE);
    }
    let null = Arc::ptr_eq(stream, &device.null);
    if wait && null {
        device.drain_null()?;
        unsafe { rows.run() };
        return Ok(());
    }
    let ticket = if from == Side::Pageable && !wait {
        // The program may overwrite a pageable source when the call returns.
        let mut staging = vec![0u8; (rows.width * rows.height) as usize];
        unsafe { Rows { to: staging.as_mut_ptr() as u64, to_pitch: rows.width, ..rows }.run() };
        device.submit(stream, None, false, move || {
            unsafe { Rows { from: staging.as_ptr() as u64, from_pitch: rows.width, ..rows }.run() };
            Ok(())
        })
    } else {
        device.submit(stream, None, false, move || {
            unsafe { rows.run() };
            Ok(())
        })
    };
    if wait {
        ticket.wait();
        device.healthy()?;
    }
    Ok(())
}

impl Rows {
    /// # Safety
    /// The rows must be valid.
    unsafe fn run(&self) {
        for row in 0..self.height {
            let [to, from] = [self.to + row * self.to_pitch, self.from + row * self.from_pitch];
            // Copies within a buffer may overlap.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, self.width as usize) };
        }
    }
}

pub fn fill(device: &'static Device, stream: &Arc<Stream>, fill: Fill, wait: bool) -> Result<(), Status> {
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    let width = fill.width.checked_mul(fill.element).ok_or(INVALID_VALUE)?;
    if side(fill.to, span(fill.pitch, width, fill.height)?)? == Side::Pageable {
        return Err(INVALID_VALUE);
    }
    let ticket = device.submit(stream, None, false, move || {
        for row in 0..fill.height {
            let to = fill.to + row * fill.pitch;
            // `side` has said that the rows are in an allocation.
            match fill.element {
                1 => unsafe { (to as *mut u8).write_bytes(fill.value as u8, width as usize) },
                2 => (0..fill.width).for_each(|i| unsafe {
                    (to as *mut u16).add(i as usize).write_unaligned(fill.value as u16)
                }),
                _ => (0..fill.width)
                    .for_each(|i| unsafe { (to as *mut u32).add(i as usize).write_unaligned(fill.value) }),
            }
        }
        Ok(())
    });
    if wait {
        ticket.wait();
        device.healthy()?;
    }
    Ok(())
}
