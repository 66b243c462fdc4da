//! Reads and sets up other machines by the system's ssh.
//!
//! `ssh`: one connection, its retries and time limit. `program`: rocworker on another machine. `pool`: several machines at
//! once. `exposition`: the metrics of several machines as one. `remote`: the exporter on other machines.

pub mod exposition;
pub mod pool;
pub mod program;
pub mod remote;
pub mod ssh;
