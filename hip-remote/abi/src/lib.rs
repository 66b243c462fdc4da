//! How the releases of ROCm's HIP library differ: symbols and their versions, structs, numbers, names of errors. No I/O.
#![warn(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::todo,
    clippy::unwrap_used
)]

pub mod attributes;
pub mod errors;
pub mod memory;
pub mod properties;
pub mod release;
pub mod symbols;
