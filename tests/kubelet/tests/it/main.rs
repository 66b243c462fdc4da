//! The kubelet by itself: pods without a GPU, and what it says of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files as they are"
)]

mod pods;
