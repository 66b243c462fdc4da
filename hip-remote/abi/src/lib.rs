//! How the releases of ROCm's HIP library differ: symbols and their versions, structs, numbers, names of errors. No I/O.

pub mod attributes;
pub mod errors;
pub mod memory;
pub mod properties;
pub mod release;
pub mod symbols;
