//! The calls that change files, and one that tries to change a limit.
#![allow(unsafe_code, reason = "system calls are made by an instruction of their own")]

use std::ffi::CStr;
use std::io::IoSlice;

use super::{Begin, Errno, Fd, call, number};

/// Writes all of the bytes.
pub fn write(file: &Fd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        // SAFETY: the kernel only reads the bytes.
        match unsafe { call(number::WRITE, [file.0, bytes.as_ptr().expose_provenance(), bytes.len(), 0, 0]) }
        {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTERRUPTED) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of the pieces, one behind the other.
pub fn write_pieces(file: &Fd, mut pieces: &mut [IoSlice<'_>]) -> Result<(), Errno> {
    // IOV_MAX (linux/uio.h).
    const MOST: usize = 1024;
    while !pieces.is_empty() {
        let number = pieces.len().min(MOST);
        // SAFETY: an IoSlice is the kernel's `struct iovec`, as std promises, and the kernel only reads the bytes.
        match unsafe { call(number::WRITEV, [file.0, pieces.as_ptr().expose_provenance(), number, 0, 0]) } {
            // Nothing more goes in, and there is no error that says so.
            Ok(0) if pieces.iter().any(|piece| !piece.is_empty()) => return Err(Errno::IO),
            Ok(written) => IoSlice::advance_slices(&mut pieces, written),
            Err(Errno::INTERRUPTED) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a folder.
pub fn make_folder(path: &CStr, mode: u32) -> Result<(), Errno> {
    let path = path.as_ptr().expose_provenance();
    // SAFETY: the path is a C string, and the kernel only reads it.
    unsafe { call(number::MKDIRAT, [Begin::WorkingFolder.number(), path, mode as usize, 0, 0]) }.map(drop)
}

/// Removes a file, or a link itself.
pub fn remove(from: Begin<'_>, path: &CStr) -> Result<(), Errno> {
    let path = path.as_ptr().expose_provenance();
    // SAFETY: as in `make_folder`.
    unsafe { call(number::UNLINKAT, [from.number(), path, 0, 0, 0]) }.map(drop)
}

/// Gives a file another name, in place of what has it; both begin in the same folder.
pub fn rename(within: Begin<'_>, old: &CStr, new: &CStr) -> Result<(), Errno> {
    let (old, new) = (old.as_ptr().expose_provenance(), new.as_ptr().expose_provenance());
    // SAFETY: as in `make_folder`.
    unsafe { call(number::RENAMEAT, [within.number(), old, within.number(), new, 0]) }.map(drop)
}

/// Sets the permission bits.
pub fn set_mode(file: &Fd, mode: u32) -> Result<(), Errno> {
    // SAFETY: no memory is named.
    unsafe { call(number::FCHMOD, [file.0, mode as usize, 0, 0, 0]) }.map(drop)
}

/// Sets owner and group.
pub fn give_to(file: &Fd, uid: u32, gid: u32) -> Result<(), Errno> {
    // SAFETY: no memory is named.
    unsafe { call(number::FCHOWN, [file.0, uid as usize, gid as usize, 0, 0]) }.map(drop)
}

/// Takes an exclusive flock(2) on a file, without waiting; false where somebody else has one.
pub fn lock(file: &Fd) -> Result<bool, Errno> {
    const EXCLUSIVE: usize = 2;
    const WITHOUT_WAITING: usize = 4;
    // SAFETY: no memory is named.
    match unsafe { call(number::FLOCK, [file.0, EXCLUSIVE | WITHOUT_WAITING, 0, 0, 0]) } {
        Err(Errno::WOULD_BLOCK) => Ok(false),
        locked => locked.map(|_| true),
    }
}

/// Whether a process can be let lock so much memory, in bytes: answered by the kernel, which is asked to raise this
/// process's own limit, and then to lower it again. A capability that is one only in a user namespace is not enough.
///
/// # Errors
/// The most that it can be let lock.
pub fn can_lock(bytes: u64) -> Result<(), u64> {
    const OWN: usize = 0;
    const RLIMIT_MEMLOCK: usize = 8;
    // struct rlimit64: soft and hard.
    let mut limits = [0_u64; 2];
    let set = |limits: &[u64; 2]| {
        let new = limits.as_ptr().expose_provenance();
        // SAFETY: the kernel only reads the structure.
        unsafe { call(number::PRLIMIT64, [OWN, RLIMIT_MEMLOCK, new, 0, 0]) }
    };
    let place = limits.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel writes a structure to the place. It cannot fail for a process's own limits.
    let _ = unsafe { call(number::PRLIMIT64, [OWN, RLIMIT_MEMLOCK, 0, place, 0]) };
    let [soft, hard] = limits;
    if bytes <= hard {
        return Ok(());
    }
    set(&[soft, bytes]).map_err(|_| hard)?;
    // It may always be lowered.
    let _ = set(&limits);
    Ok(())
}
