//! The program's own memory, which it names by pointers.

use std::ffi::{CStr, c_char};

use crate::error::{HipError, Outcome};

/// Writes a result where the program wants it.
///
/// # Safety
/// The pointer is null, or the program may write a `T` there.
pub unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: as the caller promises. C's structs need not be aligned as Rust wants them.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads a value.
///
/// # Safety
/// The pointer is null, or a `T` is there.
pub unsafe fn get<T: Copy>(from: *const T) -> Outcome<T> {
    if from.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { from.read_unaligned() })
}

/// Writes a text with its final 0, cut to the program's buffer.
///
/// # Safety
/// The program may write `length` bytes there.
pub unsafe fn put_text(to: *mut c_char, length: i32, text: &[u8]) -> Outcome {
    let Ok(length @ 1..) = usize::try_from(length) else { return Err(HipError::INVALID_VALUE) };
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    let to = unsafe { bytes_mut(to as usize, length) };
    let written = text.len().min(length - 1);
    for (to, from) in to.iter_mut().zip(text.iter().take(written).chain([&0])) {
        *to = *from;
    }
    Ok(())
}

/// A name.
///
/// # Safety
/// The pointer is null, or a text with its final 0 is there.
pub unsafe fn text<'a>(from: *const c_char) -> Outcome<&'a [u8]> {
    if from.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { CStr::from_ptr(from) }.to_bytes())
}

/// # Safety
/// The program has that many bytes there, and does not write them meanwhile.
pub unsafe fn bytes<'a>(address: usize, length: usize) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(address as *const u8, length) }
}

/// # Safety
/// The program has that many bytes there, and does not use them meanwhile.
pub unsafe fn bytes_mut<'a>(address: usize, length: usize) -> &'a mut [u8] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) }
}
