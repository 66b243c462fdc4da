//! The Container Runtime Interface, as `proto/cri.proto` has it.

#![allow(missing_debug_implementations, unreachable_pub, reason = "tonic generates it")]
#![allow(clippy::all, clippy::pedantic, reason = "tonic generates it")]

tonic::include_proto!("runtime.v1");
