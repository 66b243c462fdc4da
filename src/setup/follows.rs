//! What of a plan follows the machine as it is at the moment, and so waits for no apply.

use std::path::Path;

use reconcile::{Change, KindName};

use super::Setup;
use crate::engines::concourse::ENV_FILE;
use crate::worker::policy;

/// How much of a plan that is; each holds those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// What tells engines of GPUs, and what the wrapper may give. A card that fell off its bus may come back: engines stay as they are configured.
    Given,
    /// And nodes: all that is brought about before engines start.
    Start,
}

impl Setup<'_> {
    /// Whether a change is of this part.
    pub(super) fn follows(&self, part: Part, change: &Change) -> bool {
        let tells = change.path == self.config.cdi.path || change.path == Path::new(ENV_FILE);
        let gives = change.path == Path::new(policy::PATH);
        tells || gives || change.kind == KindName::Node && part >= Part::Start
    }
}
