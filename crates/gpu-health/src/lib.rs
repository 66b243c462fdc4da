//! Judges how well AMD GPUs are, by rules that are data (rules.toml), from a snapshot's cards and the kernel's log. Pure:
//! nothing here reads a file.

mod history;
pub mod judge;
pub mod known;
mod messages;
mod quarantine;
mod readings;
pub mod rules;
mod unread;
