//! Reads an AMD machine from sysfs, KFD and /dev: its GPUs, their partitions, their device nodes, and
//! whether a container can use them.
//!
//! Never writes, never logs, never panics, holds no global state: it runs inside other programs too.
//! Everything is read beneath a [`root::Root`]. What is absent, unsupported or unreadable is an
//! [`Unknown`] with its reason, never a zero.

mod attribute;
mod card;
mod drm;
mod generation;
mod gpu;
pub mod gpu_metrics;
mod io_links;
mod kfd;
mod kfd_parameter;
mod machine;
mod module;
pub mod names;
mod node;
mod partition;
mod pci;
mod problem;
pub mod processes;
pub mod readings;
pub mod topology;

pub use allocation::PciAddress as Address;
pub use attribute::{Reading, Unknown};
pub use drm::is_partition;
pub use generation::{NeverComputes, SeaIslands};
pub use gpu::{Gfx, Gpu, Uuid};
pub use io_links::{topology_generation, xgmi_links};
pub use kfd::{UnreadNode, registered_major};
pub use kfd_parameter::KfdParameter;
pub use machine::{Kfd, Machine};
pub use module::Module;
pub use node::{DeviceNode, NodeFault};
pub use partition::Partition;
pub use pci::{Sriov, Vendor, bridges};
pub use problem::Problem;
