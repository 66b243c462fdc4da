//! Real container engines of several releases of Debian, each in a root of its own, with the wrapper in front of
//! their runc.
//!
//! An engine's package and the libraries that it needs are unpacked by `cargo xtask test`, never installed. Here
//! they become the root of a mount namespace and a process namespace, on the stage of a laid-out machine
//! ([`support::stage`]). Nothing that a test starts there outlives it: the namespace ends with the test's process,
//! however that ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests alone stand on this: they fail by panicking, and lay out files and start programs as they are"
)]

pub mod cgroups;
pub mod configured;
pub mod containerd;
pub mod cri;
pub mod docker;
pub mod dockerd;
pub mod engine;
pub mod host;
pub mod image;
pub mod look;
pub mod machine;
pub mod pair;
