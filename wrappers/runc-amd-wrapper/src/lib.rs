//! runc with AMD's GPUs in it: everything of `runc-amd-wrapper` but its entry.
//!
//! The wrapper is called as runc is, by a person or a container engine. It reads runc's command line
//! ([`args`]), edits the bundle of a container that asks for GPUs ([`create`]), or the file of a new process
//! in one ([`exec_process`]). It names the real runc ([`runtime`]), and its entry then
//! executes that in its own place. [`wrap`] is the way through it. Without a policy of root's
//! ([`policy_file`]) it does nothing but that.
//!
//! It runs for every container and every call of a machine, so it parses nothing that it need not.
#![allow(
    clippy::disallowed_methods,
    reason = "it replaces runc on the machine itself: there is no other root"
)]

pub mod args;
pub mod ask;
pub mod config;
pub mod container;
pub mod create;
pub mod environment;
pub mod exclusive;
pub mod exec_process;
pub mod first_schema;
pub mod folders;
mod fuse_mounts;
pub mod health_file;
mod in_bundle;
pub mod log;
mod memlock;
pub mod nodes;
pub mod paths;
pub mod policy_file;
mod rootfs;
pub mod runtime;
pub mod scan;
pub mod wrap;
