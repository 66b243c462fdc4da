//! The kernel's calls that the wrapper makes without the C library: no errno, no thread, no start-up needed,
//! so that they work before the C library's own start-up, and no call more than the one that is named.
//!
//! Numbers, structures and flags: Linux, include/uapi/asm-generic/unistd.h, linux/stat.h and linux/fcntl.h, and
//! for x86-64 arch/x86/entry/syscalls/syscall_64.tbl.
#![allow(unsafe_code, reason = "system calls are made by an instruction of their own")]

use std::arch::asm;
use std::ffi::{CStr, c_char};
use std::io;

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const READ: usize = 0;
    pub(super) const WRITE: usize = 1;
    pub(super) const CLOSE: usize = 3;
    pub(super) const LSEEK: usize = 8;
    pub(super) const PREAD64: usize = 17;
    pub(super) const WRITEV: usize = 20;
    pub(super) const MADVISE: usize = 28;
    pub(super) const EXECVE: usize = 59;
    pub(super) const FLOCK: usize = 73;
    pub(super) const FCHMOD: usize = 91;
    pub(super) const FCHOWN: usize = 93;
    pub(super) const STATFS: usize = 137;
    pub(super) const FSTATFS: usize = 138;
    pub(super) const CLOCK_GETTIME: usize = 228;
    pub(super) const GETDENTS64: usize = 217;
    pub(super) const OPENAT: usize = 257;
    pub(super) const MKDIRAT: usize = 258;
    pub(super) const UNLINKAT: usize = 263;
    pub(super) const RENAMEAT: usize = 264;
    pub(super) const READLINKAT: usize = 267;
    pub(super) const PRLIMIT64: usize = 302;
    pub(super) const STATX: usize = 332;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const FLOCK: usize = 32;
    pub(super) const MKDIRAT: usize = 34;
    pub(super) const UNLINKAT: usize = 35;
    pub(super) const RENAMEAT: usize = 38;
    pub(super) const STATFS: usize = 43;
    pub(super) const FSTATFS: usize = 44;
    pub(super) const FCHMOD: usize = 52;
    pub(super) const FCHOWN: usize = 55;
    pub(super) const LSEEK: usize = 62;
    pub(super) const READ: usize = 63;
    pub(super) const WRITE: usize = 64;
    pub(super) const WRITEV: usize = 66;
    pub(super) const PREAD64: usize = 67;
    pub(super) const CLOSE: usize = 57;
    pub(super) const MADVISE: usize = 233;
    pub(super) const EXECVE: usize = 221;
    pub(super) const CLOCK_GETTIME: usize = 113;
    pub(super) const GETDENTS64: usize = 61;
    pub(super) const OPENAT: usize = 56;
    pub(super) const READLINKAT: usize = 78;
    pub(super) const PRLIMIT64: usize = 261;
    pub(super) const STATX: usize = 291;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("sys.rs needs the system calls' numbers of this architecture");

/// For [`open`] (asm-generic/fcntl.h; Arm has two of them elsewhere).
pub mod flag {
    pub const WRITE: u32 = 0o1;
    pub const READ_WRITE: u32 = 0o2;
    pub const CREATE: u32 = 0o100;
    pub const EXCLUSIVE: u32 = 0o200;
    pub const TRUNCATE: u32 = 0o1000;
    pub const NONBLOCK: u32 = 0o4000;
    pub const CLOSE_ON_EXEC: u32 = 0o200_0000;
    /// Only to begin a path at.
    pub const PATH: u32 = 0o1000_0000;
    #[cfg(target_arch = "x86_64")]
    pub const NOFOLLOW: u32 = 0o40_0000;
    #[cfg(target_arch = "aarch64")]
    pub const NOFOLLOW: u32 = 0o10_0000;
    #[cfg(target_arch = "x86_64")]
    pub const DIRECTORY: u32 = 0o20_0000;
    #[cfg(target_arch = "aarch64")]
    pub const DIRECTORY: u32 = 0o4_0000;
}

const AT_FDCWD: usize = (-100_isize).cast_unsigned();
const AT_SYMLINK_NOFOLLOW: usize = 0x100;
const AT_EMPTY_PATH: usize = 0x1000;
const STATX_BASIC_STATS: usize = 0x7ff;
const STATX_ATTR_IMMUTABLE: u64 = 0x10;

/// What the kernel answered instead: its error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    pub const NOT_FOUND: Self = Self(2);
    pub const INTERRUPTED: Self = Self(4);
    pub const IO: Self = Self(5);
    pub const WOULD_BLOCK: Self = Self(11);
    pub const EXISTS: Self = Self(17);
    pub const NOT_A_FOLDER: Self = Self(20);
    pub const INVALID: Self = Self(22);
    pub const LOOP: Self = Self(40);
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.0)
    }
}

/// An open file, closed with this value.
#[derive(Debug)]
pub struct Fd(usize);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: nobody else has this descriptor.
        let _ = unsafe { call(number::CLOSE, [self.0, 0, 0, 0, 0]) };
    }
}

/// What a file is, of `struct statx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Type and permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub inode: u64,
    /// Major and minor of the file system's device.
    pub device: (u32, u32),
    /// Major and minor of the device that a node stands for.
    pub node: (u32, u32),
    /// Whether nothing can be made in it or changed (chattr(1)), as far as its file system tells.
    pub is_immutable: bool,
}

impl Stat {
    fn is(&self, kind: u32) -> bool {
        self.mode & 0o17_0000 == kind
    }

    pub fn is_regular(&self) -> bool {
        self.is(0o10_0000)
    }

    pub fn is_character_device(&self) -> bool {
        self.is(0o2_0000)
    }

    pub fn is_link(&self) -> bool {
        self.is(0o12_0000)
    }

    pub fn is_folder(&self) -> bool {
        self.is(0o4_0000)
    }

    /// Whether both are one file, under whatever names.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// `struct statx` up to what is read of it, in its full size (linux/stat.h).
#[repr(C)]
struct Statx {
    mask: u32,
    block_size: u32,
    attributes: u64,
    links: u32,
    uid: u32,
    gid: u32,
    mode: u16,
    spare: u16,
    inode: u64,
    size: u64,
    blocks: u64,
    attributes_mask: u64,
    times: [u64; 8],
    node: [u32; 2],
    device: [u32; 2],
    rest: [u64; 14],
}

/// Opens a file, always close-on-exec. `flags` are of [`flag`]; without them for reading.
pub fn open(path: &CStr, flags: u32, mode: u32) -> Result<Fd, Errno> {
    open_from(Begin::WorkingFolder, path, flags, mode)
}

/// The same of a path that begins in a folder.
pub fn open_from(from: Begin<'_>, path: &CStr, flags: u32, mode: u32) -> Result<Fd, Errno> {
    let flags = (flags | flag::CLOSE_ON_EXEC) as usize;
    let path = path.as_ptr().expose_provenance();
    // SAFETY: the path is a C string, and the kernel only reads it.
    unsafe { call(number::OPENAT, [from.number(), path, flags, mode as usize, 0]) }.map(Fd)
}

/// Where a path begins that is not absolute.
#[derive(Clone, Copy, Debug)]
pub enum Begin<'a> {
    WorkingFolder,
    Folder(&'a Fd),
}

impl Begin<'_> {
    fn number(self) -> usize {
        match self {
            Self::WorkingFolder => AT_FDCWD,
            Self::Folder(folder) => folder.0,
        }
    }
}

/// What stands at a path.
pub fn stat(path: &CStr) -> Result<Stat, Errno> {
    statx(AT_FDCWD, path, 0)
}

/// The same of a link itself, if one stands there.
pub fn stat_no_follow(path: &CStr) -> Result<Stat, Errno> {
    stat_no_follow_from(Begin::WorkingFolder, path)
}

/// The same of a path that begins in a folder.
pub fn stat_no_follow_from(from: Begin<'_>, path: &CStr) -> Result<Stat, Errno> {
    statx(from.number(), path, AT_SYMLINK_NOFOLLOW)
}

/// What an open file is.
pub fn stat_of(file: &Fd) -> Result<Stat, Errno> {
    // Not a constant: it would stand on a page that nothing else needs.
    let empty = std::hint::black_box([0]);
    statx(file.0, CStr::from_bytes_with_nul(&empty).unwrap_or_default(), AT_EMPTY_PATH)
}

fn statx(at: usize, path: &CStr, flags: usize) -> Result<Stat, Errno> {
    let mut found = std::mem::MaybeUninit::<Statx>::uninit();
    let place = found.as_mut_ptr().expose_provenance();
    // SAFETY: the path is a C string, and the kernel writes a whole structure to the place if it succeeds.
    let found = unsafe {
        call(number::STATX, [at, path.as_ptr().expose_provenance(), flags, STATX_BASIC_STATS, place])?;
        found.assume_init()
    };
    Ok(Stat {
        mode: found.mode.into(),
        uid: found.uid,
        gid: found.gid,
        size: found.size,
        inode: found.inode,
        device: found.device.into(),
        node: found.node.into(),
        is_immutable: found.attributes & STATX_ATTR_IMMUTABLE != 0,
    })
}

/// Reads once, up to `most` bytes, behind what the buffer holds; answers how many came.
pub fn read(file: &Fd, buffer: &mut Vec<u8>, most: usize) -> Result<usize, Errno> {
    read_by(number::READ, file, buffer, most)
}

/// The same from the file's first byte on, wherever others have read it to.
pub fn read_from_start(file: &Fd, buffer: &mut Vec<u8>, most: usize) -> Result<usize, Errno> {
    read_by(number::PREAD64, file, buffer, most)
}

fn read_by(number: usize, file: &Fd, buffer: &mut Vec<u8>, most: usize) -> Result<usize, Errno> {
    buffer.reserve(most);
    let spare = buffer.spare_capacity_mut();
    let most = most.min(spare.len());
    let place = spare.as_mut_ptr().expose_provenance();
    // SAFETY: the place has that many bytes; those that the kernel says it has written are initialized. The place to
    // read at, which only one of the two calls has, is 0.
    unsafe {
        let length = call(number, [file.0, place, most, 0, 0])?;
        buffer.set_len(buffer.len() + length);
        Ok(length)
    }
}

/// The names in an open folder, as the kernel lists them, without `.` and `..`. The C library would allocate for
/// that by calls of its own.
pub fn names(folder: &Fd) -> Result<Vec<Vec<u8>>, Errno> {
    // struct linux_dirent64: inode and offset of eight bytes each, the entry's length, its type, its name.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut names = Vec::new();
    // Of memory that is provided, and not a page of the stack that nothing else needs.
    let mut buffer = vec![0_u8; 2048];
    // It may have been listed before.
    const FROM_THE_START: usize = 0;
    // SAFETY: no memory is named.
    unsafe { call(number::LSEEK, [folder.0, 0, FROM_THE_START, 0, 0])? };
    loop {
        let place = buffer.as_mut_ptr().expose_provenance();
        // SAFETY: the kernel writes whole entries into the buffer, no more than it holds.
        let listed = unsafe { call(number::GETDENTS64, [folder.0, place, buffer.len(), 0, 0])? };
        let mut entries = buffer.get(..listed).unwrap_or_default();
        if entries.is_empty() {
            return Ok(names);
        }
        while let Some([low, high]) = entries.get(LENGTH..LENGTH + 2) {
            let length = usize::from(u16::from_ne_bytes([*low, *high])).max(NAME);
            let name = entries.get(NAME..length).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
            entries = entries.get(length..).unwrap_or_default();
        }
    }
}

/// Where a link leads, as it is written; put into the buffer in place of what it held. One that leads further than
/// a buffer of 512 bytes can say, as none of sysfs does, is cut.
pub fn read_link(from: Begin<'_>, path: &CStr, buffer: &mut Vec<u8>) -> Result<(), Errno> {
    const LONGEST: usize = 512;
    buffer.clear();
    buffer.reserve(LONGEST);
    let place = buffer.spare_capacity_mut().as_mut_ptr().expose_provenance();
    // SAFETY: as in `read`.
    unsafe {
        let length =
            call(number::READLINKAT, [from.number(), path.as_ptr().expose_provenance(), place, LONGEST, 0])?;
        buffer.set_len(length);
    }
    Ok(())
}

/// Of [`mount_flags`] (linux/statfs.h).
pub const READ_ONLY: u64 = 1;
pub const NO_SUID: u64 = 2;
pub const NO_DEVICES: u64 = 4;
pub const NO_EXECUTION: u64 = 8;

/// What the file system at a path is mounted with.
pub fn mount_flags(path: &CStr) -> Result<u64, Errno> {
    // struct statfs, all of whose members are words or pairs of half ones (asm-generic/statfs.h).
    const FLAGS: usize = 10;
    let mut found = [0_u64; 15];
    let place = found.as_mut_ptr().expose_provenance();
    // SAFETY: the path is a C string, and the kernel writes a whole structure to the place.
    unsafe { call(number::STATFS, [path.as_ptr().expose_provenance(), place, 0, 0, 0]) }?;
    Ok(found[FLAGS])
}

/// Whether an open file is on a tmpfs, of which nothing outlives the boot.
pub fn is_in_memory(file: &Fd) -> bool {
    // linux/magic.h.
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    let mut found = [0_u64; 15];
    let place = found.as_mut_ptr().expose_provenance();
    // SAFETY: the kernel writes a whole structure to the place, which begins with the file system's type.
    unsafe { call(number::FSTATFS, [file.0, place, 0, 0, 0]) }.is_ok() && found[0] == TMPFS_MAGIC
}

/// Has the kernel provide the pages of the memory that is allocated next at once, instead of one at each first touch: this
/// many bytes of it, and no more than the program has at hand. Before Linux 5.14 nothing happens.
pub fn provide(bytes: usize) {
    const MADV_POPULATE_WRITE: usize = 23;
    const PAGE: usize = 4096;
    const MOST: usize = 256 * 1024;
    let mut next: Vec<u8> = Vec::with_capacity(bytes.min(MOST));
    let memory = next.spare_capacity_mut();
    let address = memory.as_mut_ptr().expose_provenance();
    let start = address.next_multiple_of(PAGE);
    let length = memory.len().saturating_sub(start - address);
    // SAFETY: pages are provided for addresses within the memory and in front of the end of its last page. What is in
    // them stays.
    let _ = unsafe { call(number::MADVISE, [start, length, MADV_POPULATE_WRITE, 0, 0]) };
}

/// The time since the boot, suspensions included, in nanoseconds.
pub fn since_boot_ns() -> u64 {
    const CLOCK_BOOTTIME: usize = 7;
    // struct timespec: seconds and nanoseconds (linux/time.h).
    let mut time = [0_u64; 2];
    // SAFETY: the kernel writes a timespec to the place. It cannot fail for a clock that every Linux since 2.6.39 has.
    let _ = unsafe {
        call(number::CLOCK_GETTIME, [CLOCK_BOOTTIME, time.as_mut_ptr().expose_provenance(), 0, 0, 0])
    };
    time[0].saturating_mul(1_000_000_000).saturating_add(time[1])
}

/// Runs a program in this process's place; comes back only with the reason why not.
///
/// # Safety
/// `arguments` and `variables` are null-terminated arrays of C strings.
pub unsafe fn execute(
    program: &CStr,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> Errno {
    let three = [
        program.as_ptr().expose_provenance(),
        arguments.expose_provenance(),
        variables.expose_provenance(),
        0,
        0,
    ];
    // SAFETY: the contract is the kernel's own.
    match unsafe { call(number::EXECVE, three) } {
        Err(error) => error,
        Ok(_) => Errno(0),
    }
}

/// One system call of at most five arguments; the sixth is 0.
///
/// # Safety
/// What the call wants of its arguments. It may read and write any memory that they name: addresses are given
/// with their provenance exposed.
unsafe fn call(number: usize, arguments: [usize; 5]) -> Result<usize, Errno> {
    let [a, b, c, d, e] = arguments;
    let answer: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's calling convention; it keeps all registers but these.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d,
             in("r8") e, in("r9") 0_usize, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel's calling convention; it keeps all registers but the first.
    unsafe {
        asm!("svc #0", in("x8") number, inlateout("x0") a => answer, in("x1") b, in("x2") c, in("x3") d,
             in("x4") e, in("x5") 0_usize, options(nostack));
    }
    // The kernel answers with the negative of an error number, which is at most 4095.
    if (-4095..0).contains(&answer) {
        return Err(Errno(i32::try_from(-answer).unwrap_or(i32::MAX)));
    }
    Ok(answer.cast_unsigned())
}

mod change;
mod short_path;
mod standard;
pub use change::{can_lock, give_to, lock, make_folder, remove, rename, set_mode, write, write_pieces};

pub use short_path::ShortPath;
pub use standard::open_standard_descriptors;

#[cfg(test)]
mod tests;
