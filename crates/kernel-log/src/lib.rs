//! Finds and explains what the kernel logs about AMD GPUs.
//!
//! [`knowledge`] is data (knowledge/messages.toml): messages, each with its patterns, meaning and remedy. A
//! [`pattern`] is the driver's format string. [`origin`] finds who put a record into the log. [`scan`] finds
//! messages in a text of any length, [`kmsg`] reads the kernel's own buffer, and [`kept`] finds a log that was
//! captured.

pub mod kept;
pub mod kmsg;
pub mod knowledge;
pub mod origin;
pub mod pattern;
pub mod scan;
mod stamp;
