//! Copying and comparing a few bytes.
//!
//! musl's functions for x86-64 are made for long texts: what is moved is moved by instructions that begin slowly
//! (`rep movs`), and what is compared is compared byte by byte. A create for 64 GPUs copies two thousand times, mostly less
//! than thirty bytes, and compares hundreds of paths; that alone took fifty microseconds. The program puts these in
//! musl's place (src/main.rs).
#![allow(unsafe_code, reason = "they stand for functions of C, which are told addresses and lengths")]

use std::arch::asm;

/// Copies so many bytes. There is no loop in it, of which the compiler would make a call of itself.
///
/// # Safety
/// As for memcpy(3): both places have so many bytes and do not overlap.
#[inline(always)]
pub unsafe fn copy(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: each place that is read and written begins at 0 or later and ends at `length` or before.
    unsafe {
        match length {
            0 => {}
            1..4 => {
                let (first, middle, last) = (*from, *from.add(length / 2), *from.add(length - 1));
                *to = first;
                *to.add(length / 2) = middle;
                *to.add(length - 1) = last;
            }
            4..8 => both_ends::<u32>(to, from, length),
            8..16 => both_ends::<u64>(to, from, length),
            16..=32 => both_ends::<u128>(to, from, length),
            33..=64 => both_ends::<[u128; 2]>(to, from, length),
            65..=128 => both_ends::<[u128; 4]>(to, from, length),
            // As long are what is read of a node and a device.
            129..=256 => both_ends::<[u128; 8]>(to, from, length),
            _ => {
                let last = from.add(length - 8).cast::<u64>().read_unaligned();
                let end = to.add(length - 8).cast::<u64>();
                asm!("rep movsq", inout("rcx") length / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
                     options(nostack, preserves_flags));
                end.write_unaligned(last);
            }
        }
    }
}

/// The same where the places may overlap.
///
/// # Safety
/// As for memmove(3): both places have so many bytes.
#[inline(always)]
pub unsafe fn shift(to: *mut u8, from: *const u8, length: usize) {
    // Up to 256 bytes all are read before any is written, and further ones are copied in order.
    if length <= 256 || to.addr().wrapping_sub(from.addr()) >= length {
        // SAFETY: no byte is read that was written.
        return unsafe { copy(to, from, length) };
    }
    // SAFETY: from the end on, in order; the first bytes were read before and are written last.
    unsafe {
        let first = from.cast::<u64>().read_unaligned();
        asm!("std", "rep movsq", "cld", inout("rcx") length / 8 => _, inout("rdi") to.add(length - 8) => _,
             inout("rsi") from.add(length - 8) => _, options(nostack));
        to.cast::<u64>().write_unaligned(first);
    }
}

/// What the first and the last bytes are, which may have some in common, as long as `T` is half of them or more.
///
/// # Safety
/// As for [`copy`], and `length` is that of `T` or more.
#[inline(always)]
unsafe fn both_ends<T>(to: *mut u8, from: *const u8, length: usize) {
    let rest = length - size_of::<T>();
    // SAFETY: by the contract.
    unsafe {
        let (first, last) = (from.cast::<T>().read_unaligned(), from.add(rest).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(first);
        to.add(rest).cast::<T>().write_unaligned(last);
    }
}

/// Compares so many bytes, the first of which that differ decide.
///
/// # Safety
/// As for memcmp(3): both places have so many bytes.
#[inline(always)]
pub unsafe fn compare(one: *const u8, other: *const u8, length: usize) -> i32 {
    // SAFETY: only what is less than `length` behind the places' begin is read.
    let byte = |at: usize| unsafe { (*one.add(at), *other.add(at)) };
    // SAFETY: the same of eight bytes.
    let word = |at: usize| unsafe {
        let [one, other] = [one, other].map(|place| place.add(at).cast::<u64>().read_unaligned());
        (u64::from_be(one), u64::from_be(other))
    };
    let mut at = 0;
    while at + 8 <= length {
        let (one, other) = word(at);
        if one != other {
            return if one < other { -1 } else { 1 };
        }
        at += 8;
    }
    if at < length && length >= 8 {
        // Some of these were equal before.
        let (one, other) = word(length - 8);
        return i32::from(one > other) - i32::from(one < other);
    }
    while at < length {
        let (one, other) = byte(at);
        if one != other {
            return i32::from(one) - i32::from(other);
        }
        at += 1;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_beside_it() {
        let from: Vec<u8> = (0..600).map(|n| u8::try_from(n % 251).unwrap()).collect();
        for length in 0..300 {
            for (at, to_at) in [(0, 0), (1, 3), (7, 16), (16, 5)] {
                let mut to = [0xee_u8; 400];
                // SAFETY: the places have as much, and are not the same.
                unsafe { copy(to.as_mut_ptr().add(to_at), from.as_ptr().add(at), length) };
                assert_eq!(&to[to_at..to_at + length], &from[at..at + length], "{length}");
                assert!(
                    to[..to_at].iter().chain(&to[to_at + length..]).all(|byte| *byte == 0xee),
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn what_overlaps_is_shifted_as_the_library_shifts_it() {
        for length in 0..300 {
            for (from, to) in [
                (0, 0),
                (0, 1),
                (1, 0),
                (0, 9),
                (9, 0),
                (0, 130),
                (130, 0),
                (0, 260),
                (260, 0),
                (3, 290),
                (64, 0),
                (0, 64),
            ] {
                let text: Vec<u8> = (0..600).map(|n| u8::try_from(n % 251).unwrap()).collect();
                let (mut ours, mut theirs) = (text.clone(), text);
                theirs.copy_within(from..from + length, to);
                let start = ours.as_mut_ptr();
                // SAFETY: both places are within the text.
                unsafe { shift(start.add(to), start.add(from), length) };
                assert_eq!(ours, theirs, "{length} from {from} to {to}");
            }
        }
    }

    #[test]
    fn the_first_byte_that_differs_decides() {
        for length in 0..40_usize {
            let one: Vec<u8> = (0..length).map(|n| u8::try_from(n).unwrap() | 0x40).collect();
            // SAFETY: both have as much.
            let compared = |other: &[u8]| unsafe { compare(one.as_ptr(), other.as_ptr(), length) }.signum();
            assert_eq!(compared(&one), 0, "{length}");
            for at in 0..length {
                for (byte, behind) in [(0, 0xff), (0xff, 0)] {
                    let mut other = one.clone();
                    other[at] = byte;
                    assert_eq!(compared(&other), if byte == 0 { 1 } else { -1 }, "{length} {at}");
                    other[at + 1..].fill(behind);
                    assert_eq!(compared(&other), if byte == 0 { 1 } else { -1 }, "{length} {at}");
                }
            }
        }
    }
}
