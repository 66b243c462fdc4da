//! What should be on the machine: pure functions of Facts and Config. The same two give the same answer, byte
//! for byte.

pub mod boot;
pub mod cdi;
pub mod concern;
pub mod concourse;
pub mod containerd;
pub mod daemon;
pub mod desired;
pub mod docker;
pub mod driver;
pub mod host;
pub mod lost_tags;
pub mod own_unit;
pub mod packages;
pub mod policy;
mod rocm_installer;
pub mod selection;
pub mod tags;
pub mod therock;
pub mod undo_constraints;
mod uses;
