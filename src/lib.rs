//! Turns a machine with AMD GPUs into a container worker.
//!
//! Data goes one way: [`facts`] are read from the machine beneath a Root, [`config`] says what is wanted,
//! and what should be there ([`desired`]) is a pure function of the two. Only then is anything written.

pub mod canary;
pub mod cdi;
mod check;
pub mod cli;
pub mod component;
pub mod config;
pub mod daemon;
pub mod demo;
pub mod desired;
pub mod detection;
pub mod doctor;
pub mod driver;
pub mod engines;
pub mod explain;
pub mod exporter_unit;
pub mod facts;
pub mod fleet;
pub mod groups;
pub mod health;
pub mod host;
pub mod juju;
pub mod lease;
pub mod lxd;
pub mod memory;
pub mod module_load;
pub mod observations;
pub mod own_program;
pub mod package;
pub mod packages;
pub mod pending_gpus;
pub mod pinned_devices;
pub mod printable;
pub mod program;
pub mod reader;
pub mod remarks;
pub mod render;
pub mod report;
pub mod run;
pub mod selection;
pub mod status;
pub mod task_check;
pub mod timestamp;
pub mod top;
pub(crate) mod topology;
pub mod unserved;
pub mod version;
