//! Cards divided into devices: how they are, and how a profile changes them.

mod differences;
mod fit;
mod holders;
mod look;
mod plan;
mod progress;
mod rivals;
mod set;

pub use differences::{differences, last_switch};
pub use fit::{Fit, Model, Precision};
pub use holders::{Holder, holders};
pub use look::{Look, shared};
pub use plan::{Plan, Refused};
pub use progress::{CardGoal, CardModes, Goal, Phase, Progress};
pub use rivals::rivals;
pub use set::{News, Options, is_at_work, set};
