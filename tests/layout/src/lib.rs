//! Lays out a machine beneath a directory as a kernel would: PCI functions, DRM minors, KFD's
//! topology, partitions, modules, and what stands in `/dev`.
//!
//! The benchmark and the tests read machines made here as they read `/`.
//! Everything that this crate invents is synthetic; files captured on a real machine are put on
//! top of it, byte for byte, with [`Machine::overlay`]. That the result has a kernel's shape is
//! checked by readers that nobody here wrote: lspci and Prometheus' node_exporter
//! (observe/real_layout.rs of rocworker's tests).
//!
//! ```
//! use layout::{Gpu, Kfd, KfdNode, Machine, Module, Nodes};
//! let dir = tempfile::tempdir().unwrap();
//! Machine::new()
//!     .module(Module::new("amdgpu"))
//!     .gpu(Gpu::amd("0000:64:00.0", 0x15bf).card(1).render(128))
//!     .kfd(Kfd::new(237).node(KfdNode::cpu(16)).node(
//!         KfdNode::gpu(35218, 0x15bf, 110_003).at("0000:64:00.0").render(128),
//!     ))
//!     .lay_out(dir.path(), Nodes::Recorded)
//!     .unwrap();
//! assert!(dir.path().join("sys/class/drm/renderD128/device/vendor").exists());
//! ```

mod address;
mod drm;
mod error;
mod gpu;
mod gpu_metrics;
mod health;
mod host;
mod hwmon;
mod kfd;
mod machine;
mod pci;
mod readings;
mod sample;
mod tree;
mod write;

pub use address::Address;
pub use drm::XcpNames;
pub use error::Error;
pub use gpu::Gpu;
pub use gpu_metrics::{gpu_metrics, partition_metrics};
pub use health::{JUDGED_AT, health};
pub use host::Module;
pub use kfd::{Kfd, KfdNode};
pub use machine::Machine;
pub use tree::{Device, Entry, Tree};
pub use write::Nodes;
