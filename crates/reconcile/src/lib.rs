//! Applies the desired state of files, nodes and packages beneath a Root, records what was there before, and
//! restores it.
//!
//! The crate knows no GPU and no engine: the desired state comes in as [`Desired`], a list of [`Action`]s,
//! which are data. Only this crate writes managed paths; its functions serve a person, a hook and a daemon
//! alike.
//!
//! Imports point one way: `model` ← `receipt` ← `kinds` ← `plan` ← `transaction`. `apt` is below all of them.

mod apt;
pub mod command;
mod digest;
mod effects;
mod error;
mod kinds;
mod model;
pub mod own_process;
mod plan;
mod receipt;
mod transaction;

pub use apt::dpkg::{self, Status};
pub use apt::{Check, DPKG_LOCK, Installer, PackageManager, Step, openpgp, sources};
pub use digest::Digest;
pub use effects::{DRAIN, Services, runs};
pub use error::Error;
pub use kinds::{ArchiveSource, unpack_archive};
pub use model::*;
pub use plan::{Plan, Rehearsal, naming};
pub use receipt::{Draining, FOLDER, FORMATS, Pending, Receipt, Store, history};
pub use transaction::{Executed, Transaction};
