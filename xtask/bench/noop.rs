//! The runtime that does nothing: it ends with status 42, so that a shim which ends with 0 by itself is not
//! taken for one that ran it.
#![no_std]
#![no_main]

use core::arch::global_asm;
use core::panic::PanicInfo;

#[cfg(target_arch = "x86_64")]
global_asm!(".globl _start", "_start:", "mov edi, 42", "mov eax, 231", "syscall");

#[cfg(target_arch = "aarch64")]
global_asm!(".globl _start", "_start:", "mov x0, #42", "mov x8, #94", "svc #0");

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {}
}
