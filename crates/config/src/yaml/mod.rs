//! YAML with the line of each part, and errors in the words of the file.

mod fault;
mod nodes;
mod reader;
mod tree;

pub use fault::Fault;
pub(crate) use nodes::{Key, Node, Value};
pub(crate) use reader::{Spelling, read};
pub(crate) use tree::parse;
