//! Programs on a worker with the tests' GPU.

mod bad_clients;
mod clients;
mod code;
mod death;
mod debian;
mod failover;
mod network;
mod python;
mod relayed;
mod releases;
mod rocm_6;
mod soak;
