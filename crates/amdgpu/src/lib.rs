//! Reads an AMD machine from sysfs, KFD and /dev into an [`inventory::Inventory`] and the readings of its cards.
//!
//! Never writes, never logs, never panics, holds no global state: it runs inside other programs too.
//! Everything is read beneath a [`root::Root`]. What is absent, unsupported or unreadable is an
//! [`inventory::Unknown`] with its reason, never a zero.

mod attribute;
mod card;
mod drm;
pub mod gpu_metrics;
mod io_links;
mod kfd;
mod kfd_parameter;
mod labels;
mod machine;
mod module;
mod node;
mod partitioning;
mod pci;
pub mod processes;
pub mod readings;
pub mod snapshot;
mod topology;
pub mod traffic;
mod virtualization;

pub use drm::is_partition;
pub use io_links::{topology_generation, xgmi_links};
pub use kfd::registered_major;
pub use labels::read as labels;
pub use machine::read;
pub use module::read as module;
pub use partitioning::{COMPUTE, MEMORY, read as partitioning};
pub use pci::bridges;
pub use topology::read as topology;
pub use virtualization::{container_name, read as virtualization};
