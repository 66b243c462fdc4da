//! Where the program begins: before the C library, whose start-up most calls do not need.
//!
//! build.rs makes `rocworker_begin` the program's entry. It calls [`early`], which either executes the runtime
//! or comes back having changed nothing but the program's own memory; then the C library's `_start` begins
//! with the stack as the kernel made it, and everything is done from the beginning.
//!
//! Until then there is no thread-local storage: nothing here may set errno, print or panic. musl's functions
//! on memory and strings need neither; glibc's are chosen by its start-up, so that there this is left out.

use std::arch::global_asm;
use std::cell::UnsafeCell;
use std::ffi::{CStr, OsStr, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;

use runc_amd_wrapper::environment::Environment;
use runc_amd_wrapper::glance::{Seen, glance};
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::wrap::Verdict;

use crate::{AT_EXECFN, Call, MEMORY};

// The stack at the entry: argc, argv[0] … NULL, envp[0] … NULL (System V ABI for x86-64 and for Arm, "Process
// Initialization"). `_start` takes the register that is cleared for a function to be called at the end.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".section .text.rocworker_begin, \"ax\"",
    ".globl rocworker_begin",
    "rocworker_begin:",
    "xor ebp, ebp",
    "mov rbx, rsp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {early}",
    "mov rsp, rbx",
    "xor edx, edx",
    "jmp _start",
    ".text",
    early = sym early,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".section .text.rocworker_begin, \"ax\"",
    ".globl rocworker_begin",
    "rocworker_begin:",
    "mov x29, #0",
    "mov x30, #0",
    "mov x0, sp",
    "bl {early}",
    "mov x0, #0",
    "b _start",
    ".text",
    early = sym early,
);

/// What was read on the way, for the program proper. All zeros at first, so that it stands with other zeroed data
/// (layout.ld).
pub(crate) static SEEN: Slot = Slot(UnsafeCell::new((false, MaybeUninit::zeroed())));

/// Whether it is filled, and with what.
pub(crate) struct Slot(UnsafeCell<(bool, MaybeUninit<Seen<'static>>)>);

// SAFETY: it is filled before the program has threads, and emptied by its first one, before there are others.
unsafe impl Sync for Slot {}

impl Slot {
    /// # Safety
    /// There is one thread.
    unsafe fn put(&self, seen: Seen<'static>) {
        // SAFETY: by the contract nobody else looks at it.
        unsafe { *self.0.get() = (true, MaybeUninit::new(seen)) };
    }

    /// # Safety
    /// There is one thread.
    pub(crate) unsafe fn take(&self) -> Seen<'static> {
        // SAFETY: by the contract nobody else looks at it, and what is filled is initialized.
        unsafe {
            let (is_filled, seen) = &mut *self.0.get();
            if std::mem::take(is_filled) { seen.assume_init_read() } else { Seen::default() }
        }
    }
}

/// Executes the runtime if that is all that the call needs.
///
/// # Safety
/// `stack` is the stack as the kernel made it for the program.
unsafe extern "C" fn early(stack: *const usize) {
    MEMORY.begin();
    // SAFETY: behind argc stand that many pointers and a null one, then those of the environment.
    let (call, own) = unsafe {
        let argv = stack.add(1).cast::<*const c_char>();
        let variables = argv.add(*stack + 1);
        let call = Call::new(argv, variables);
        let own = executed(variables.add(call.variables.len() + 1).cast());
        (call, own)
    };
    // `/proc/self/exe` says it for certain, and makes the kernel build this process's folder in /proc, which
    // costs more than all the rest.
    let Some(own) = own else { return };
    let entries = call.entries();
    let environment = Environment { entries: &entries, effective_user: 0 };
    let paths = Paths { own: OsStr::from_bytes(own.to_bytes()).into(), ..Paths::system() };
    let mut seen = Seen::default();
    if let Some(Verdict::Run { runtime, depth }) = glance(&call.arguments(), &environment, &paths, &mut seen)
    {
        // What did not work is said by the second try.
        let _ = call.run(&runtime, depth);
        return;
    }
    // SAFETY: nothing else runs yet.
    unsafe { SEEN.put(seen) };
}

/// The path that was executed, as it was given to execve.
///
/// # Safety
/// `auxiliary` is the auxiliary vector of the process.
unsafe fn executed(mut auxiliary: *const [usize; 2]) -> Option<&'static CStr> {
    const AT_NULL: usize = 0;
    loop {
        // SAFETY: the vector's end is the pair that begins with AT_NULL, and a path's value is a string's address.
        unsafe {
            match *auxiliary {
                [AT_NULL, _] => return None,
                [AT_EXECFN, path] => {
                    return Some(CStr::from_ptr(std::ptr::with_exposed_provenance(path)));
                }
                _ => auxiliary = auxiliary.add(1),
            }
        }
    }
}
