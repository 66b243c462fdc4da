//! What the kernel says of AMD GPUs in its log, and what that means.
//!
//! [`knowledge`] is data (knowledge/messages.toml): messages, each with its patterns, meaning and remedy. A
//! [`pattern`] is the driver's format string. [`scan`] finds messages in a text of any length, [`kmsg`] reads the
//! kernel's own buffer.

mod device;
mod driver;
pub mod kmsg;
pub mod knowledge;
pub mod pattern;
pub mod scan;
