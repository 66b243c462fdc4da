//! The container engines of a machine: which are there, of which version, and how they are configured now.

pub mod containerd;
mod version;

pub use containerd::Containerd;
pub use version::{Known, Version, Versions};
