//! ROCm's folders, which TensorFusion mounts into its workers.

/// A folder on the host, and its place in a worker.
pub(crate) type Mount = (&'static str, &'static str);

/// Where ROCm is installed, /opt/rocm leads to it, TheRock's too.
pub(crate) const MOUNTS: [Mount; 2] =
    [("/opt/rocm/lib", "/usr/local/rocm/lib"), ("/opt/rocm/bin", "/usr/local/rocm/bin")];
