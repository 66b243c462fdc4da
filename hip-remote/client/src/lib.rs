//! The HIP library that a program loads in place of AMD's, and whose GPUs are a worker's.
//!
//! Loading it does nothing. The first call that needs a device connects ([`process`]); each thread then has a lane of that
//! connection ([`thread`]). The functions of `api` translate HIP's arguments and nothing more.

mod allocations;
mod api;
mod border;
mod configuration;
mod connection;
mod copies;
mod error;
mod host_memory;
mod launch;
mod loaded;
mod memory;
mod modules;
mod operator;
mod output;
mod process;
mod program;
mod properties;
mod registry;
mod release;
mod reservation;
mod session;
mod settings;
mod signals;
mod streams;
mod thread;
