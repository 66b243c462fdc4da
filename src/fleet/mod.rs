//! Other machines, over the system's ssh.
//!
//! `host`: whom to ask. `ssh`: one connection, its tries and its time limit. `pool`: several
//! machines at once. `script` and `frames`: reading a machine's
//! files with nothing but a shell there, in one round trip. `reading`: what came, as a Root. `install`: rocworker's
//! exporter on another machine.

pub mod frames;
pub mod host;
pub mod pool;
pub mod remote;
pub mod script;
pub mod ssh;
