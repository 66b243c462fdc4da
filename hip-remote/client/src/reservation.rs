//! Address ranges that the client keeps free of its own memory, because the worker's pointers name them.

use std::ffi::c_void;
use std::ops::Range;

/// Why a range was not reserved.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// The program has memory there.
    Taken,
    /// The kernel gives the process no more address space.
    Full,
}

/// Keeps a range of whole pages, which nobody can read or write.
pub fn reserve(pages: &Range<u64>) -> Result<(), Refused> {
    let Some((start, length)) = parts(pages) else { return Ok(()) };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE maps nothing over memory that is in use.
    let got = unsafe { libc::mmap(start, length, libc::PROT_NONE, flags, -1, 0) };
    if got == start {
        // A forked child has pointers of its own, which may be equal ones.
        // SAFETY: the range is the one that mmap gave just now.
        unsafe { libc::madvise(start, length, libc::MADV_DONTFORK) };
        return Ok(());
    }
    if got != libc::MAP_FAILED {
        // A kernel before 4.17 takes the address as a hint.
        // SAFETY: the range came from mmap just now.
        unsafe { libc::munmap(got, length) };
        return Err(Refused::Taken);
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EEXIST | libc::EINVAL) => Err(Refused::Taken),
        _ => Err(Refused::Full),
    }
}

/// Gives a range back, which [`reserve`] kept.
pub fn release(pages: &Range<u64>) {
    if let Some((start, length)) = parts(pages) {
        // SAFETY: the range is one that reserve() mapped.
        unsafe { libc::munmap(start, length) };
    }
}

fn parts(pages: &Range<u64>) -> Option<(*mut c_void, usize)> {
    let length = pages.end.checked_sub(pages.start).filter(|length| *length > 0)?;
    Some((usize::try_from(pages.start).ok()? as *mut c_void, usize::try_from(length).ok()?))
}
