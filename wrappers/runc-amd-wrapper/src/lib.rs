#![allow(
    clippy::disallowed_methods,
    reason = "it stands in for runc on the machine itself: there is no other root"
)]
pub mod alive;
pub mod args;
pub mod log;
pub mod nodes;
pub mod open;
pub mod paths;
pub mod runtime;
pub mod scan;
pub mod store;
