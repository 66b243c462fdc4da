//! Keeps who holds which GPU, below `/run/rocworker` under one [`lock`]: what containers were given
//! ([`store`]), what they lease ([`lease_file`]) and which creates wait ([`queue`]). Decides whether a holder
//! still lives ([`liveness`], [`reap`]) by its processes, by the runtime's state ([`runtime_state`]) and by
//! KFD ([`kfd`]).
//!
//! The wrapper decides with this crate, and the program lists and releases leases with it.
#![allow(
    clippy::disallowed_methods,
    reason = "leases are about processes of the machine itself: there is no other root"
)]

pub mod alive;
pub mod cgroup;
mod folder;
pub mod idle;
pub mod kfd;
pub mod lease_file;
pub mod liveness;
pub mod lock;
pub mod open;
pub mod paths;
pub mod queue;
pub mod reap;
pub mod run_folder;
pub mod runtime_state;
pub mod store;
