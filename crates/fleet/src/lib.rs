//! Reads and sets up other machines by the system's ssh.
//!
//! `host`: a machine's name. `ssh`: one connection, its retries and time limit. `pool`: several machines at once.
//! `script`, `frames`: read a machine's files in one round trip, and in further ones what an answer lacks.
//! `exposition`: the metrics of several machines as one.
//! `remote`: the exporter on other machines.

pub mod exposition;
pub mod frames;
pub mod pool;
pub mod remote;
pub mod script;
pub mod ssh;
