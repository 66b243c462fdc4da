//! How cards are divided into devices: compute and memory modes, what the kernel allows, and what each gives.
//!
//! The kernel calls an XCD an XCC, and a device of a divided card an XCP.

mod card;
mod chip;
mod json;
mod modes;
mod profile;
mod rules;
mod steps;

pub use card::{Card, Combination, Device, Seen};
pub use chip::Chip;
pub use json::DeviceOf;
pub use modes::{Compute, Memory, NoMode};
pub use profile::{Aim, Change, Entry, Modes, Refusal, Selector, aims};
pub use rules::{Generation, Rules};
pub use steps::{Steps, Switch};
