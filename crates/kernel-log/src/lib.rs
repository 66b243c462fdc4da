//! What the kernel says of AMD GPUs in its log, and what that means.
//!
//! [`knowledge`] is data (knowledge/messages.toml): messages, each with its patterns, meaning and remedy. A
//! [`pattern`] is the driver's format string. [`origin`] tells who put a record into the log. [`scan`] finds messages in a
//! text of any length, [`kmsg`] reads the kernel's own buffer.

pub mod kmsg;
pub mod knowledge;
pub mod origin;
pub mod pattern;
pub mod scan;
mod stamp;
