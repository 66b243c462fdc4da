//! Who may have which GPU.
//!
//! Pure functions from text and structs to text and structs: nothing here reads a file, looks at the
//! environment, runs a command or panics. The wrapper uses this crate alone; the main program, and
//! later the leases and a device plugin, use the same functions, so that one request means the same to all.
//!
//! The way of a container through it:
//! 1. [`bundle::Bundle::parse`] finds what matters in `config.json`;
//! 2. [`request::Request::from_env`] reads what the container's environment asks for;
//! 3. [`policy::Policy::ask`] says whether that is honoured, and whether the default applies;
//! 4. [`selection::Pool`] turns it into GPUs; where GPUs are not shared, those that are free by their [`lease`]s; where
//!    the policy has quarantine, none that is [`withheld`];
//! 5. the caller stats their nodes, and [`gids::supplement`] says which group a process needs for each;
//! 6. [`bundle::Bundle::inject`] writes it in, and leaves every other byte as it was.

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
pub use quoted::{Quoted, is_unsafe_to_show};
pub use render::Render;
pub use rfc3339::rfc3339;
