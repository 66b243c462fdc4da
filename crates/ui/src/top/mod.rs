//! `rocworker top`: what GPUs and the processes on them do, live on a terminal.
//!
//! [`State`] and [`view`] are pure: events in, a screen out. Reading the machine ([`mod@reader`]) and reading keys each have
//! a thread of their own, so that keys answer while a driver's file hangs (`live` joins them).

mod columns;
pub mod event;
mod history;
pub mod keys;
pub mod live;
mod processes;
pub mod reader;
mod rows;
pub mod say;
pub mod signals;
mod state;
mod terminal;
mod view;

pub use event::Event;
pub use processes::Sort;
pub use state::{Effect, INTERVALS, State};
pub use view::view;
