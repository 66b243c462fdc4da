//! The C libraries as TensorFusion's hypervisor loads them, and the headers that describe them.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test fails by panicking, lays out files and runs programs"
)]

mod c_programs;
mod deploy;
mod header;
mod real_go;
mod real_image;
mod real_library;
mod real_machines;
mod real_sanitizers;
mod traffic;
