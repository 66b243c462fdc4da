//! LXD and Incus: which commands pass AMD's cards, and only them, into a container.
//!
//! [`resources`] reads what the host's daemon answers, [`advice`] says what follows from it, and every command that
//! anybody is told comes from [`command`]; [`on_host`] tells them inside a container. Nothing here runs a command that changes something.

pub mod advice;
pub mod ask;
pub mod command;
mod notes;
pub mod on_host;
pub mod resources;
mod way;
