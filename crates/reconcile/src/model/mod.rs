//! The data of reconciliation: what is desired, what was found, what changes, and what the receipt keeps.

mod action;
mod change;
mod desired;
mod diff;
mod effect;
mod entry;
mod finding;
mod progress;
mod resource;
mod state;
mod undo_constraints;
mod uptime;

pub use action::{Action, Content, Kind, KindName, Package, Stage, Unpacked, Value, Want};
pub use change::{Change, Verb};
pub(crate) use change::{Doing, Target};
pub use desired::{Desired, Note};
pub(crate) use diff::{diff, edit_diff};
pub use effect::{Ask, Effect, ModuleBuild, Outcome, Restarts, Settled};
pub use entry::{Came, Entry, Managed, Repairs};
pub use finding::Finding;
pub use progress::Progress;
pub use resource::Resource;
pub use state::State;
pub(crate) use state::{Found, LIMIT, owner};
pub use undo_constraints::{Named, Running, UndoConstraints, Use};
pub use uptime::Uptime;
