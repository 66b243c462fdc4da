//! placeholder
/// Error
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct Error;
