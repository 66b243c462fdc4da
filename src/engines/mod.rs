//! The container engines of a machine: which are there, of which version, and how they are configured now.

pub mod concourse;
pub mod containerd;
pub mod docker;
pub mod env_file;
mod in_force;
mod options;
pub mod unit;

pub use crate::version::{Known, Told, Version, Versions};
pub use concourse::Concourse;
pub use containerd::Containerd;
pub use docker::Docker;
pub use in_force::InForce;
