//! A Root, by its public interface.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking, lays out files and runs programs"
)]

mod concurrent_replace;
mod hanging_reads;
mod preserved_attributes;
mod root;
