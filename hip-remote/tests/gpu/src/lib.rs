//! The tests' GPU: an interpreter of gfx90a code behind a HIP library of the tests' own.
//!
//! build.rs makes `libamdhip64.so.5` of this crate and of the C files beside it. [`built`] says where it is.

pub mod built;
mod clock;
pub mod code_object;
mod copy;
mod device;
mod dispatch;
pub mod fault;
mod ffi;
mod handles;
pub mod isa;
mod memory;
mod metadata;
mod registered;
mod settings;
mod status;
mod stream;
mod wave;

pub use built::{compile, library};
