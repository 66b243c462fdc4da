//! What a machine has, and how it is: cards, GPUs, nodes, links and readings as data, and pure functions on them.
//!
//! Nothing here reads a file: crates/amdgpu does.

mod accelerator;
mod generation;
mod gfx;
mod gpu;
pub mod health;
pub mod hip_worker;
mod identity;
mod inventory;
mod json;
mod kfd;
pub mod kubelet;
pub mod labels;
pub mod names;
mod node;
mod partition;
pub mod partitioning;
mod pci;
mod pci_address;
mod problem;
pub mod processes;
pub mod published;
pub mod readings;
pub mod series;
pub mod snapshot;
mod snapshot_json;
pub mod topology;
mod topology_json;
pub mod tree;
mod unknown;
mod unread;
mod uuid;
mod virtualization;

pub use accelerator::{Model, model, models};
pub use generation::{NeverComputes, SeaIslands};
pub use gfx::Gfx;
pub use gpu::Gpu;
pub use identity::Identity;
pub use inventory::{Card, Inventory, Module};
pub use kfd::{Kfd, KfdParameter};
pub use node::{Device, DeviceNode, NodeFault};
pub use partition::Partition;
pub use pci::{Sriov, Vendor};
pub use pci_address::{NoPciAddress, PciAddress};
pub use problem::Problem;
pub use snapshot::Snapshot;
pub use snapshot_json::Shown;
pub use unknown::{Reading, Unknown};
pub use unread::{Unread, UnreadOf};
pub use uuid::Uuid;
pub use virtualization::Around;
