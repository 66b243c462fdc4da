//! The configuration as a person writes it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod wrong;
