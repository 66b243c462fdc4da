//! The CDI spec as a file: made from what should be, and held against what is.

mod check;
mod replace;
mod siblings;
mod spec;
mod still_true;
mod text;

pub use check::check;
pub use replace::may_replace;
pub use siblings::{Conflict, DEFAULT_FOLDERS, Meaning, Refusal, Siblings, is_read_by_engines, refusal};
pub use spec::{Device, KIND, Node, Spec, Wanted, node, nodes, wanted};
pub use still_true::{StillTrue, still_true};
pub use text::{Error, other_edits, text};

/// The key of a CDI spec that decides whether the spec is about AMD's GPUs; everything else in the file is skipped.
#[derive(serde::Deserialize)]
struct OnlyKind {
    kind: Option<String>,
}

/// More than any spec has: 64 partitions make 60 KB.
pub const LIMIT: usize = 4 << 20;

/// Mode of the spec's file: everybody may read what engines offer.
pub const MODE: u32 = 0o644;
