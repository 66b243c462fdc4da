//! A real kubelet of Kubernetes 1.20 without a cluster: it runs static pods by Debian 12's containerd on a laid-out machine, and
//! hands out the devices of a device plugin.
//!
//! Without an API server it publishes no node. What it makes of a plugin is read from its checkpoint, from its metrics,
//! from the pods' states, and from what a pod sees. Nothing that a test starts there outlives it ([`real_engines::host`]).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests alone stand on this: they fail by panicking, and lay out files and start programs as they are"
)]

pub mod checkpoint;
pub mod daemon;
pub mod kubelet;
pub mod node;
pub mod plugin;
pub mod pod;
