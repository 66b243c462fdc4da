//! The floor: the least that any program between containerd and runc can cost.
//!
//! Static, no libc, no start-up code: one execve(2) of the path that was given at build time
//! (`FLOOR_NEXT`), with the arguments and the environment that it was called with.
//! Built by `cargo xtask bench` with rustc alone.
#![no_std]
#![no_main]

use core::arch::global_asm;
use core::panic::PanicInfo;

const PATH: &[u8] = concat!(env!("FLOOR_NEXT"), "\0").as_bytes();
static NEXT: [u8; PATH.len()] = *PATH.first_chunk().unwrap();

// At _start the stack holds argc, argv[0] to argv[argc - 1], NULL, envp[0]… (System V ABI, "Process
// Initialization"). When execve returns it has failed: exit 127, as a shell would.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov rcx, [rsp]",
    "lea rsi, [rsp + 8]",
    "lea rdx, [rsi + rcx * 8 + 8]",
    "lea rdi, [rip + {next}]",
    "mov eax, 59", // execve
    "syscall",
    "mov edi, 127",
    "mov eax, 231", // exit_group
    "syscall",
    next = sym NEXT,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "ldr x3, [sp]",
    "add x1, sp, #8",
    "add x2, x1, x3, lsl #3",
    "add x2, x2, #8",
    "adrp x0, {next}",
    "add x0, x0, :lo12:{next}",
    "mov x8, #221", // execve
    "svc #0",
    "mov x0, #127",
    "mov x8, #94", // exit_group
    "svc #0",
    next = sym NEXT,
);

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {}
}
