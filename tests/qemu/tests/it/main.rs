//! A real kernel in QEMU: the real amdgpu, its log and its /dev/kfd, modules, systemd and udevd.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and runs itself in the machine; the figures of a boot are for the reader"
)]

mod init;
mod machine;
mod real_daemon;
mod real_driver;
mod real_init;
mod real_kernel_log;
mod real_module;
mod real_reload;
mod real_smi;
mod real_udevd;
