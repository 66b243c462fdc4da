//! Allocating on a device, and filling.

use hip_protocol::calls::{DeviceSync, Free, Malloc, Memset, StreamSync};

use crate::allocations::{Allocation, Kind};
use crate::error::{HipError, Outcome};
use crate::host_memory;
use crate::process;
use crate::program;
use crate::reservation::Refused;
use crate::thread::Seat;

/// So often the worker is asked for memory elsewhere, when the program has memory of its own at the address.
const ATTEMPTS: usize = 64;

/// # Errors
/// The device has no such memory, or the program has memory of its own wherever the device does.
pub fn allocate(seat: &Seat, bytes: u64) -> Outcome<u64> {
    let connection = &seat.session().connection;
    // They are kept until one fits, so that the worker does not return one again.
    let mut collisions = Vec::new();
    let mut got = Err(HipError::OUT_OF_MEMORY);
    while collisions.len() < ATTEMPTS {
        let pointer = match connection.call(&seat.desk, &Malloc { bytes }, &[]) {
            Ok((reply, _)) => reply.pointer,
            Err(error) => {
                if error == HipError::OUT_OF_MEMORY && !collisions.is_empty() {
                    process::say(&format!(
                        "the program has memory of its own where the GPU has {bytes} free bytes, and the GPU has no others"
                    ));
                }
                got = Err(error);
                break;
            }
        };
        let allocation = Allocation { start: pointer, bytes, device: seat.device(), kind: Kind::Allocated };
        let added = seat.session().tables().allocations.add(allocation);
        match added {
            Ok(()) => {
                got = Ok(pointer);
                break;
            }
            Err(Refused::Taken) => collisions.push(pointer),
            Err(Refused::Full) => {
                collisions.push(pointer);
                break;
            }
        }
    }
    for pointer in collisions {
        connection.send(&seat.desk, &Free { pointer }, &[])?;
    }
    got
}

/// # Errors
/// No allocation begins at the pointer.
pub fn free(seat: &Seat, pointer: u64) -> Outcome {
    let connection = &seat.session().connection;
    let removed = seat.session().tables().allocations.remove(pointer);
    let allocation = removed.ok_or(HipError::INVALID_VALUE)?;
    connection.send(&seat.desk, &Free { pointer }, &[])?;
    if connection.has_copies_under_way() {
        // hipFree waits for the device, and a program may read its copies' targets after that.
        seat.on_device(allocation.device, || connection.call(&seat.desk, &DeviceSync {}, &[]))?;
    }
    Ok(())
}

/// Waits for the copies that write to memory of the program, which it is about to give back.
///
/// # Errors
/// A device failed, or the connection is lost.
pub fn settle(seat: &Seat, start: usize, bytes: usize) -> Outcome {
    let connection = &seat.session().connection;
    for device in 0..seat.session().welcome.devices {
        if connection.writes_to(start, bytes) {
            seat.on_device(device, || connection.call(&seat.desk, &DeviceSync {}, &[]))?;
        }
    }
    Ok(())
}

/// Fills rows of elements.
///
/// # Errors
/// The memory is no device's, or the rows reach beyond it.
pub fn fill(seat: &Seat, memset: Memset) -> Outcome {
    if memset.width == 0 || memset.height == 0 {
        return Ok(());
    }
    let bytes = memset.width.checked_mul(u64::from(memset.element)).ok_or(HipError::INVALID_VALUE)?;
    if memset.height > 1 && memset.pitch < bytes {
        return Err(HipError::INVALID_VALUE);
    }
    let there =
        seat.session().tables().allocations.rows(memset.pointer, memset.pitch, bytes, memset.height)?;
    if there.is_some() {
        return seat.session().connection.send(&seat.desk, &memset, &[]);
    }
    fill_host(seat, &memset, bytes)
}

/// Fills pinned memory, in the stream's order.
fn fill_host(seat: &Seat, memset: &Memset, bytes: u64) -> Outcome {
    let all = (memset.height - 1).checked_mul(memset.pitch).and_then(|rows| rows.checked_add(bytes));
    let [address, pitch, bytes, all] = [Some(memset.pointer), Some(memset.pitch), Some(bytes), all]
        .map(|number| number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX));
    if !host_memory::has(address, all) {
        return Err(HipError::INVALID_VALUE);
    }
    seat.session().connection.call(&seat.desk, &StreamSync { stream: memset.stream }, &[])?;
    let element = memset.value.to_le_bytes();
    for row in 0..memset.height {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        // SAFETY: the row is in memory that the program has as pinned, and that it gave to this call.
        let row = unsafe { program::bytes_mut(address + row * pitch, bytes) };
        for (byte, value) in row.iter_mut().zip(element.iter().take(memset.element as usize).cycle()) {
            *byte = *value;
        }
    }
    Ok(())
}
