//! LXD and Incus: which commands pass AMD's cards, and only them, into a container.
//!
//! [`resources`] reads what the host's daemon answers, [`advice`] says what follows from it, and [`command`] makes every
//! command; [`on_host`] prints them inside a container. Nothing here runs a command that changes something.

pub mod advice;
pub mod ask;
pub mod command;
pub mod on_host;
pub mod resources;
