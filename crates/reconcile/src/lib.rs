//! Brings files, nodes and packages beneath a Root to what they should be, remembers what was there before, and gives
//! it back.
//!
//! Knows no GPU and no engine: what should be comes in as [`Desired`], a list of [`Action`]s, which are data. Only
//! what is here writes; the same functions serve a person, a hook and a daemon.

mod action;
mod apt;
pub mod command;
mod desired;
pub mod dpkg;
mod effect;
mod error;
mod fetch;
pub mod history;
mod installer;
mod installing;
mod module;
mod needs;
mod observed;
mod package;
mod plan;
mod progress;
mod reboot;
mod receipt;
mod recorded;
mod replacing;
mod services;
mod settle;
mod state;
mod store;
mod systemd;
mod udev;
mod unpack;
mod uptime;
mod way_back;
mod work;

pub use action::{Action, Content, Kind, Stage};
pub use apt::{DPKG_LOCK, Hands, Rehearsal};
pub use desired::{Desired, Note};
pub use dpkg::Status;
use edit::Edit;
pub use effect::{Ask, Effect, ModuleBuild};
pub use error::Error;
pub use fetch::{Check, openpgp};
pub use installer::Installer;
pub use module::Module;
pub use package::{Came, Package, Want, is_package};
pub use plan::{Change, Finding, Plan, Use, Verb, naming};
pub use progress::{Progress, Step};
pub use receipt::{Entry, Ours, Pending, Receipt, Repairs, Told};
pub use services::{DRAIN, Restarts, Services};
pub use settle::{Outcome, Settled};
pub use state::{Digest, State};
pub use store::{FOLDER, FORMATS, Store};
pub use unpack::Unpacked;
pub use uptime::Uptime;
pub use way_back::{Named, Running, WayBack};
pub use work::{Carried, Work};
