//! Who needs a runtime that a plan takes away.

use reconcile::{Desired, Note, Plan, Receipt, Resource};

use super::Setup;
use crate::worker::concern::Concern;

/// Names of containers that are listed; of more the number is told.
const SHOWN: usize = 20;

impl Setup<'_> {
    /// The docker containers that do not start again after this plan: each keeps the runtime that it was made with.
    pub(super) fn of_lost_runtimes(&self, desired: &Desired, plan: &Plan, receipt: &Receipt) -> Option<Note> {
        let is_changed = |path: &Resource| plan.changes.iter().any(|change| change.path == *path);
        let is_dockers = |concern: &str| concern == Concern::Docker.as_ref();
        let of_docker = receipt.entries.iter().filter(|entry| is_dockers(&entry.concern));
        let stays = |runtime: &str| {
            let mut actions = desired.actions.iter().filter(|action| is_dockers(&action.concern));
            actions.any(|action| action.uses.iter().any(|it| it.value == runtime))
        };
        let mut lost: Vec<String> = of_docker
            .filter(|entry| is_changed(&entry.path))
            .flat_map(|entry| entry.uses.iter().map(|it| it.value.clone()))
            .filter(|runtime| !stays(runtime))
            .collect();
        lost.sort();
        lost.dedup();
        let containers = self.docker().made_with(self.root, &lost);
        let shown = containers.get(..SHOWN).unwrap_or(&containers).join(", ");
        let more = containers.len().saturating_sub(SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let runtimes = lost.join(", ");
        (!containers.is_empty()).then(|| Note {
            about: "docker".to_owned(),
            text: format!(
                "docker made these containers with runtime {runtimes}, and cannot start them again without it: \
                 {shown}{more}; make them anew with another runtime"
            ),
            problem: false,
        })
    }
}
