//! Runs real apt and dpkg where they leave nothing behind: in a copy on write of this system or of another
//! release of Debian ([`machine`]). A repository has packages that are made here, signed by a key that is
//! made here ([`repository`]), and a server on loopback can misbehave on request ([`server`]).
//!
//! A test compares its expectation with apt's own verdict: nothing here decides what is a good signature, a
//! complete file or a package that can be installed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests alone stand on this: they fail by panicking, and lay out files and start programs as they are"
)]

pub mod control;
pub mod faulty;
pub mod headers;
pub mod key;
pub mod killed;
pub mod lock;
pub mod machine;
pub mod package;
pub mod repository;
pub mod server;
pub mod standins;
pub mod systems;
pub mod tarball;
