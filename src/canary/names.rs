//! What the canary's things are called, so that a later one finds what a killed one left.

/// The prefix of containers and images; the rest is the nest's own name.
pub(crate) const PREFIX: &str = "rocworker-canary-";

/// containerd's namespace: ours alone, never Concourse's or Kubernetes'.
pub(crate) const NAMESPACE: &str = "rocworker";
