use config::selection::Selection;
use engines::concourse::desired::{Tagged, tagged};

use super::{Error, Run, State};
use crate::desired::{desired, require_decision};

impl Run<'_> {
    /// The tags that an apply would leave the Concourse worker with, or why it would not begin. Writes nothing.
    pub fn tags(&self, selection: &Selection<'_>) -> Result<Tagged, Error> {
        let observed = self.observe(&State::read(self.root)?, false);
        let desired = desired(self.config, &observed)?;
        require_decision(self.config, &desired)?;
        tagged(self.config, selection, &observed.engines.concourse, &desired).map_err(Error::Refused)
    }
}
