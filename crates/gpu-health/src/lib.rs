//! Judges how well AMD GPUs are, by rules that are data (rules.toml), from readings and the kernel's log. Pure: nothing
//! here reads a file.

mod history;
pub mod judge;
mod knowledge;
pub mod known;
mod messages;
mod quarantine;
mod readings;
pub mod rules;
