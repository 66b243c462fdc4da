//! What the demo shows beyond the commands: its machine, and a bundle before and after the wrapper.

mod bundle;
mod machine;

pub use bundle::{TASK, wrapped};
pub use machine::lay_out;
