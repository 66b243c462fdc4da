//! What of a plan follows the machine as it is at the moment, and so waits for no apply.

use std::path::Path;

use reconcile::Change;

use super::Setup;
use crate::engines::concourse::ENV_FILE;
use crate::worker::policy;

/// How much of a plan that is; each holds those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// What tells engines of GPUs. Where it cannot be said what should be, it may name what is another card's by now: the
    /// daemon takes it back where a card that was chosen has gone, and a start of the machine, at which cards may have got
    /// other names, whatever the reason is.
    Told,
    /// And what the wrapper may give. A card that fell off its bus may come back: engines stay as they are configured.
    Given,
    /// And nodes: all that is brought about before engines start.
    Start,
}

impl Setup<'_> {
    /// Whether a change is of this part.
    pub(super) fn follows(&self, part: Part, change: &Change) -> bool {
        let tells = change.path == self.config.cdi.path || change.path == Path::new(ENV_FILE);
        let gives = change.path == Path::new(policy::PATH);
        tells || gives && part >= Part::Given || change.kind == "node" && part >= Part::Start
    }
}
