//! What an error means, and what to do about it on this machine.
//!
//! `codes` knows numbers: the source's 1 to 8 and those of HIP, HSA and AMD SMI. `advice` turns what [`kernel_log`] finds
//! into what it means for this machine.

pub mod codes;
