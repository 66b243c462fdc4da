//! Which rules the daemon judges by: the operator's file is read again when it changes.

use gpu_health::rules::{self, Rules};
use root::{Identity, Root, if_there};

use crate::health::rules::of_machine;

#[derive(Debug)]
pub(super) struct InForce {
    pub(super) rules: Rules,
    /// Why the operator's file does not count, and what does.
    pub(super) problem: Option<String>,
    /// The identity of the rules file when it was last read; `None` where there was none.
    read: Option<Identity>,
}

impl Default for InForce {
    fn default() -> Self {
        Self { rules: Rules::built_in(), problem: None, read: None }
    }
}

impl InForce {
    /// Reads the operator's file where it has changed. Of a wrong one nothing counts: the rules before it stay in
    /// force, and no quarantine ends, which the file may hold for longer.
    pub(super) fn read_again(&mut self, root: &Root) {
        let found = if_there(root.identity(rules::PATH)).ok().flatten();
        if found == self.read {
            return;
        }
        self.read = found;
        match of_machine(root) {
            Ok(rules) => {
                let which = if rules.is_some() { "the rules of" } else { "the built-in rules, without" };
                tracing::info!("GPUs are judged by {which} {}", root.shown(rules::PATH).display());
                (self.rules, self.problem) = (rules.unwrap_or_else(Rules::built_in), None);
            }
            Err(problem) => {
                self.rules.hold_s = u64::MAX;
                let problem = format!("{problem}; the rules before it stay in force, and no quarantine ends");
                tracing::error!("{problem}");
                self.problem = Some(problem);
            }
        }
    }
}
