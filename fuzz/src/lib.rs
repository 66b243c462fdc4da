//! What must hold for every input that a fuzzer can think of, one module for each kind of text.
//!
//! Each `check` panics where a promise of the code under test is broken; libFuzzer counts that as a crash. The
//! promises are checked against something that shares no code with what is tested: serde_json, a tokenizer, a second
//! reading of the grammar, or runc itself. docs/dev/fuzzing.md says how to run them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "to panic is how a fuzz target says that a promise is broken"
)]

pub mod args;
pub mod bundle;
pub mod cdi;
pub mod config;
pub mod gpu_metrics;
pub mod health;
pub mod hip_address;
pub mod hip_code_object;
pub mod hip_image;
pub mod hip_message;
pub mod hip_v1;
mod input;
mod json;
pub mod kernel_log;
pub mod kmsg;
pub mod lease;
mod oracle;
pub mod policy;
pub mod process;
pub mod record;
mod reference;
pub mod request;
pub mod runc;
pub mod runtime_state;
mod tokens;

/// A message about foreign text must be short and harmless to a terminal and a log, whatever it quotes.
fn assert_fit_for_a_log(message: &str) {
    assert!(message.len() < 1000, "{} bytes: {message:.200}", message.len());
    assert!(!message.chars().any(char::is_control), "a control character in {message:?}");
}
