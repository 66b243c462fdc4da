//! Second readers, on serde_json, of what the product reads by a reader of its own. They say what is read, and what
//! is refused, and the product must say the same, both ways.
//!
//! They are given the text with `\ufffd` for every lone surrogate ([`crate::json::as_go_decodes`]): serde_json
//! refuses one, Go's decoder and the product read U+FFFD. `-0` is the one number that they read and serde_json does
//! not ([`crate::json::signed`]).

pub(crate) mod bundle;
pub(crate) mod cdi;
pub(crate) mod policy;
