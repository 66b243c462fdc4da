//! What should be on the machine: pure functions of Facts and Config. The same two give the same answer, byte
//! for byte.

pub mod boot;
pub mod daemon;
pub mod desired;
pub mod driver;
pub mod host;
pub mod own_unit;
pub mod packages;
pub mod policy;
mod rocm_installer;
pub mod therock;

pub use crate::engines::concourse::{desired as concourse, lost_tags, tags};
pub use crate::engines::undo_constraints;
pub use crate::{concern, selection};
