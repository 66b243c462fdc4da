//! Code that tests of several packages share: captured machines, and the rules by which tests of real
//! components run or are skipped.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests alone stand on this: they fail by panicking, and read captures and PATH as they are"
)]

pub mod alone;
pub mod booted;
pub mod booted_worker;
pub mod captures;
pub mod cases;
pub mod cdi_names;
pub mod crashes;
pub mod detect;
pub mod document;
pub mod exposition;
pub mod fuse;
mod group;
pub mod killed;
pub mod laid;
pub mod machines;
pub mod node_exporter;
pub mod partitioned;
pub mod protobuf;
pub mod real;
pub mod release;
pub mod rootfs;
pub mod said;
pub mod smi;
pub mod stage;
pub mod tree;
pub mod waiting;
