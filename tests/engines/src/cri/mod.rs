//! Pods by the Container Runtime Interface, as a kubelet runs them.

mod api;
mod client;
mod node;

pub use node::{Container, Node, Parts, Pod};
