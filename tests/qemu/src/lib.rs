//! A machine in QEMU: a distribution's own kernel with its own modules, and an initramfs that a test makes.
//!
//! The test says what is in the initramfs; its `/init` runs numbered steps and writes what came of them to the
//! second serial port ([`answers`]), and the first one is the kernel's console. Needs no root and no network.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests alone stand on this: they fail by panicking, and their files are beneath no Root"
)]

pub mod answers;
pub mod archive;
pub mod boot;
pub mod kernel;
pub mod libraries;
