//! Turns a machine with AMD GPUs into a container worker.
//!
//! Data goes one way: [`observations`] are read from the machine beneath a Root, crate `config` says what is wanted, and what
//! should be there ([`desired`]) is a pure function of the two. Only [`run`] has anything written.

pub mod cli;
pub mod daemon;
pub mod demo;
pub mod desired;
pub mod detection;
pub mod doctor;
pub mod exporter_setup;
pub mod exporter_unit;
pub mod health;
pub mod hook;
pub mod lease;
pub mod memory;
pub mod observations;
pub mod own_program;
pub mod package;
pub mod partition;
pub mod pending_gpus;
pub mod reader;
pub mod report;
pub mod run;
pub mod run_folder;
pub mod status;
pub mod task_check;
