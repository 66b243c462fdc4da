//! Who holds which GPU: what containers were given ([`store`]) and what they lease ([`lease_file`]), below
//! `/run/rocworker`, under one [`lock`]; who waits ([`queue`]); and whether a holder still lives ([`liveness`], [`reap`]), by
//! its processes, by what its runtime wrote down ([`runtime_state`]) and by KFD ([`kfd`]).
//!
//! The wrapper decides by it, the program lists and releases by it.
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
