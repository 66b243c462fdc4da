//! podman, which finds the GPUs by CDI and needs no configuration of ours.

mod canary;

use super::Engine;
use crate::canary::{Bird, Came};

pub(super) struct Podman;

impl Engine for Podman {
    fn name(&self) -> &'static str {
        "podman"
    }

    /// containers.conf(5)
    fn names_programs_in(&self) -> Option<(&'static [&'static str], &'static [&'static str])> {
        let files = &["/etc/containers/containers.conf", "/usr/share/containers/containers.conf"];
        Some((files, &["/etc/containers/containers.conf.d"]))
    }

    fn canary(&self, bird: &Bird<'_>) -> Came {
        canary::try_it(bird)
    }

    fn program(&self) -> Option<&'static str> {
        Some("podman")
    }
}
