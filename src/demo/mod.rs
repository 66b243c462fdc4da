//! What the demo shows beyond the commands: a bundle before and after the wrapper.

mod bundle;

pub use bundle::{TASK, wrapped};
