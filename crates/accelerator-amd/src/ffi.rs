//! Results and texts as C has them, and calls that no panic leaves.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::Once;

use crate::log;

/// The result of a call, in either ABI. The hypervisor takes `NotFound` and `NotSupported` of the mounts as an answer; of the
/// devices, any code but `Success` ends it at its start. Later such a call costs its answer alone, and devices stay listed:
/// so a machine that cannot be read is `NotFound`, and not a success with no device.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccelResult {
    Success = 0,
    InvalidParam = 1,
    NotFound = 2,
    NotSupported = 3,
    ResourceExhausted = 4,
    OperationFailed = 5,
    Internal = 6,
}

impl AccelResult {
    /// The result of a call that reads the machine, by whether it could be read.
    pub(crate) fn of_read(is_known: bool) -> Self {
        if is_known { Self::Success } else { Self::NotFound }
    }
}

/// Runs a call so that no panic leaves it, and nothing of one is printed.
pub(crate) fn call(run: impl FnOnce() -> AccelResult) -> AccelResult {
    static SILENT: Once = Once::new();
    // This library has a standard library of its own: the hook is not the hypervisor's.
    SILENT.call_once(|| set_hook(Box::new(|_| {})));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        log::warn("a call failed by a defect of libaccelerator_amd: report it");
        AccelResult::NotFound
    })
}

/// A text as C keeps it in a field of a fixed size: cut at a character where it is too long, with zeros behind it.
pub(crate) fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    let printable = text.replace(char::is_control, "?");
    let end = printable.floor_char_boundary(N.saturating_sub(1));
    for (to, byte) in field.iter_mut().zip(printable.bytes().take(end)) {
        *to = c_char::from_ne_bytes([byte]);
    }
    field
}

/// A caller's uuid, read up to its NUL; `None` where 64 bytes hold none or it is no UTF-8: no GPU is called so.
///
/// # Safety
/// `from` is readable up to its NUL, or for 64 bytes.
pub(crate) unsafe fn uuid(from: *const c_char) -> Option<String> {
    let mut bytes = Vec::new();
    for place in 0..64 {
        // SAFETY: no byte before this one was the NUL.
        match unsafe { from.add(place).read() } {
            0 => return String::from_utf8(bytes).ok(),
            byte => bytes.extend(byte.to_ne_bytes()),
        }
    }
    None
}

/// Writes the first of `values`, at most `most`, to an array of C's that may be unaligned, and returns how many.
///
/// # Safety
/// `to` has room for `most` values.
pub(crate) unsafe fn fill<T>(to: *mut T, most: usize, values: impl Iterator<Item = T>) -> usize {
    let mut count = 0;
    for value in values.take(most) {
        // SAFETY: `count` is less than `most`.
        unsafe { to.add(count).write_unaligned(value) };
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<const N: usize>(from: &str) -> Vec<u8> {
        text::<N>(from).iter().map(|c| c.to_ne_bytes()[0]).collect()
    }

    #[test]
    fn a_text_is_cut_at_a_character_and_ends_with_zeros() {
        assert_eq!(shown::<4>("ab"), b"ab\0\0");
        assert_eq!(shown::<4>("abcdef"), b"abc\0");
        assert_eq!(shown::<4>("abé"), b"ab\0\0");
        assert_eq!(shown::<4>("a\n\0"), b"a??\0");
    }

    #[test]
    fn a_panic_is_a_result() {
        assert_eq!(call(|| std::panic::panic_any(1)), AccelResult::NotFound);
        assert_eq!(call(|| AccelResult::Success), AccelResult::Success);
    }

    #[test]
    fn a_uuid_ends_at_its_nul_within_64_bytes() {
        let read = |bytes: &[u8]| {
            let bytes: Vec<c_char> = bytes.iter().map(|byte| c_char::from_ne_bytes([*byte])).collect();
            // SAFETY: each array has a NUL or 64 bytes.
            unsafe { uuid(bytes.as_ptr()) }
        };
        assert_eq!(read(b"gpu-1\0more").as_deref(), Some("gpu-1"));
        assert_eq!(read(b"\0").as_deref(), Some(""));
        assert_eq!(read(b"\xff\0"), None);
        assert_eq!(read(&[b'a'; 64]), None);
    }
}
