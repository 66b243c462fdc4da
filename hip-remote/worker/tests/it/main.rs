//! The worker's program against a client of the tests, which sends what no library would send.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod bad;
mod calls;
mod client;
mod leases;
mod life;
mod metrics;
mod modules;
mod refusals;
mod version_1;
mod worker;
