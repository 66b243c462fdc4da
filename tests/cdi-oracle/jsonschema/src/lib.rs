//! The validator of jsonschema, built without the features that fetch schemas over the network.
pub use offline::{Draft, Validator};
