//! The kubelet's APIs, as `proto/` has them.

#![allow(missing_debug_implementations, unreachable_pub, reason = "tonic generates it")]
#![allow(clippy::all, clippy::pedantic, reason = "tonic generates it")]

/// The device plugin API v1beta1.
pub mod deviceplugin {
    tonic::include_proto!("v1beta1");
}

/// The pod resources API v1.
pub mod podresources {
    tonic::include_proto!("v1");
}

/// The version of the device plugin API that a plugin registers with.
pub const VERSION: &str = "v1beta1";
