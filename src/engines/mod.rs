//! The container engines of a machine: which are there, of which version, and how they are configured now.

pub mod docker;

mod version;

pub use docker::Docker;
pub use version::{Known, Version, Versions};
