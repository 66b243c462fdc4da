//! The program as it runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and start programs on files of their own"
)]

mod auth;
mod clients;
mod hanging;
mod health;
mod hung_cards;
mod logins;
mod page;
mod prometheus;
mod running;
mod start;
mod traffic;
mod web_config;
