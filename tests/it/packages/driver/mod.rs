//! AMD's own kernel driver: what is read of a machine, what would be brought, and whether the one that runs is the one
//! that was built.

mod actions;
mod doctor;
mod facts;
mod in_qemu;
mod installer;
mod machines;
mod plan;
mod preflight;
mod real;
mod verified;
pub(crate) mod worker;
