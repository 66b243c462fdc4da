//! Decides who may have which GPU.
//!
//! Pure functions from text and structs to text and structs: nothing here reads a file, looks at the
//! environment, runs a command or panics. The wrapper and the main program use these functions, so that a
//! request means the same to both.
//!
//! A container's way through this crate:
//! 1. [`bundle::Bundle::parse`] finds the relevant members of `config.json`;
//! 2. [`request::Request::from_env`] reads the container's request from its environment;
//! 3. [`policy::Policy::ask`] decides whether the request is honoured, and whether the default applies;
//! 4. [`selection::Pool`] selects the GPUs: where GPUs are not shared, those that no [`lease`] holds; where
//!    the policy has quarantine, none that is [`withheld`];
//! 5. the caller stats the GPUs' nodes, and [`gids::supplement`] finds the group that a process needs for
//!    each;
//! 6. [`bundle::Bundle::inject`] writes the edits, and leaves every other byte as it was.

pub mod bundle;
pub mod cdi;
pub mod container;
pub mod document;
mod error;
pub mod folder;
pub mod gids;
pub mod gpu;
pub mod lease;
mod object;
mod path;
pub mod policy;
pub mod process;
mod quoted;
pub mod record;
mod render;
pub mod request;
mod rfc3339;
pub mod selection;
mod splice;
pub mod ticket;
pub mod withheld;

pub use error::Error;
pub use quoted::Quoted;
pub use render::Render;
pub use rfc3339::rfc3339;
