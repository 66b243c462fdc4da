//! podman, which finds the GPUs by CDI and needs no configuration of ours.

mod canary;

use super::{About, Engine};
use crate::canary::{CanaryContext, CanaryResult};

pub(super) struct PodmanEngine;

const ABOUT: About = About {
    name: "podman",
    unit: None,
    program: Some("podman"),
    // containers.conf(5)
    names_programs_in: Some((
        &["/etc/containers/containers.conf", "/usr/share/containers/containers.conf"],
        &["/etc/containers/containers.conf.d"],
    )),
    bundles: None,
    reported: &[],
    command: None,
};

impl Engine for PodmanEngine {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn canary(&self, context: &CanaryContext<'_>) -> CanaryResult {
        canary::try_it(context)
    }
}
