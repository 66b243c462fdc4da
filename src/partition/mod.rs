//! Cards divided into devices: how they are, and how a profile changes them.

mod context;
mod differences;
mod drain;
mod driver;
mod fit;
mod holders;
mod kernel;
mod look;
mod modes;
mod notes;
mod plan;
mod progress;
mod rivals;
mod set;
mod undo;
mod units;

pub use context::{News, Options};
pub use differences::{Difference, differences, last_switch};
pub use fit::{Fit, Model, Precision};
pub use holders::{Holder, holders};
pub use look::Look;
pub use notes::shared;
pub use plan::{Plan, Refused};
pub use progress::{CardGoal, CardModes, Goal, Phase, Progress};
pub use rivals::rivals;
pub use set::{is_at_work, set};
pub use undo::Undoing;
