//! By which configuration, and by which version of this program, the machine was last set up.

use reconcile::{Note, Receipt};

use super::{Run, is_set_up};
use crate::config;
use crate::memory::{Followed, Memory};

impl Run<'_> {
    /// What is remembered of the configuration.
    pub(super) fn followed(&self) -> Option<Followed> {
        Followed::of(self.root, self.config)
    }

    /// Why it is not the daemon's to bring this configuration about: the machine was last set up by another version of this
    /// program, which makes something else of it, or by a configuration of another place, which may withhold what this
    /// one gives.
    pub(super) fn other_was_applied(&self, remembered: &Memory) -> Option<String> {
        other_version(remembered).or_else(|| {
            let (by, here) = self.other_place(remembered)?;
            Some(format!(
                "the last apply was by {by}, and not by {here}: nothing is changed until they say the same, or until an \
                 apply by {here}"
            ))
        })
    }

    /// Of a plan by another configuration than that of the last apply: what is given here may have been withheld there.
    pub(super) fn of_last_apply(&self, receipt: &Receipt, remembered: &Memory) -> Option<Note> {
        let (by, here) = self.other_place(remembered).filter(|_| is_set_up(receipt, remembered))?;
        let text = format!("the last apply was by {by}, and this goes by {here}");
        Some(Note { about: "configuration".to_owned(), text, problem: false })
    }

    /// Of a status: by which configuration it tells what should be, where that is not the machine's own.
    pub(super) fn of_other_place(&self) -> Option<Note> {
        let other = self.followed()?.other?;
        let text = format!("what should be is what {} says", other.display());
        Some(Note { about: "configuration".to_owned(), text, problem: false })
    }

    /// Where the configuration of the last apply was, and where this one is, when they differ in that and in their texts.
    fn other_place(&self, remembered: &Memory) -> Option<(String, String)> {
        let (last, now) = (remembered.config.as_ref(), self.followed());
        let place = |of: Option<&Followed>| of.and_then(|it| it.other.clone());
        let sum = |of: Option<&Followed>| of.map(|it| it.sha256.clone());
        if place(last) == place(now.as_ref()) || sum(last) == sum(now.as_ref()) {
            return None;
        }
        let own = self.root.shown(config::PATH);
        let by = place(last).unwrap_or(own);
        Some((by.display().to_string(), self.config.path().display().to_string()))
    }
}

fn other_version(remembered: &Memory) -> Option<String> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    let last = remembered.rocworker.as_deref().filter(|last| *last != OWN)?;
    Some(format!(
        "the last apply was by rocworker {last}, and this is {OWN}: nothing is changed until both are one version, or until \
         an apply by this one"
    ))
}
