//! What engines were told of GPUs, and how much of it is still true, for a time at which the desired state is unknown:
//! the configuration has a slip, a template is half written, a card that was chosen has gone.

use std::path::Path;

use reconcile::{Action, Desired, Digest, Entry, Ours, Receipt, State};
use root::Root;

use crate::cdi::{self, still_true};
use crate::engines::concourse::ENV_FILE;
use crate::engines::concourse::tags::{self, VARIABLE as TAGS, loses};
use crate::engines::env_file::EnvFile;
use crate::facts::Facts;
use crate::selection::Selection;

/// The CDI spec and the worker's tags, as rocworker wrote them. What somebody has changed since is not among it.
#[derive(Debug, Clone)]
pub(super) struct PublishedState {
    spec: Option<Published>,
    tags: Option<Published>,
}

/// A managed file.
#[derive(Debug, Clone)]
struct Published {
    entry: Entry,
    text: String,
}

impl PublishedState {
    pub(super) fn read(root: &Root, receipt: &Receipt) -> Self {
        // The spec belongs to no component, wherever the configuration had it.
        let mut of_no_concern = receipt.entries.iter().filter(|entry| entry.component.is_empty());
        let told = |entry| Published::read(root, entry);
        Self { spec: of_no_concern.find_map(told), tags: receipt.entry(Path::new(ENV_FILE)).and_then(told) }
    }

    /// What should be, of all that a receipt like this one holds ([`PublishedState::narrowed`]).
    pub(super) fn still_true(&self, facts: &Facts) -> Desired {
        let mut desired = Desired::default();
        let spec = self.spec.as_ref().map(|spec| (spec, still_true(&spec.text, facts.usable())));
        let gpus = spec.as_ref().map(|(_, it)| it.gpus.clone()).unwrap_or_default();
        desired.actions.extend(spec.and_then(|(told, it)| Some(told.says(it.text?))));
        let selection = Selection { gpus, listed: false, left_out: Vec::new() };
        let offers = tags::of_gpus(&selection).join(",");
        let tags = self.tags.as_ref().filter(|told| {
            let said = EnvFile::parse(&told.text);
            !loses(said.get(TAGS).unwrap_or_default(), &offers)
        });
        desired.actions.extend(tags.map(|told| told.says(told.text.clone())));
        desired
    }

    /// Whether all of it is true.
    pub(super) fn is_true(&self, facts: &Facts) -> bool {
        let told = self.spec.iter().chain(&self.tags);
        told.map(|told| told.says(told.text.clone())).eq(self.still_true(facts).actions)
    }

    /// A receipt of this alone: a plan by it takes nothing else back.
    pub(super) fn narrowed(&self, receipt: &Receipt) -> Receipt {
        let mut receipt = receipt.clone();
        let paths: Vec<_> = self.spec.iter().chain(&self.tags).map(|told| &told.entry.path).collect();
        receipt.entries.retain(|entry| paths.contains(&&entry.path));
        receipt
    }
}

impl Published {
    fn read(root: &Root, entry: &Entry) -> Option<Self> {
        let text = root.read_text(entry.path.path()?, cdi::LIMIT).ok()?;
        let Ours::Owned { states } = &entry.ours else { return None };
        let digest = Digest::of(text.as_bytes());
        let is_ours = states.iter().any(|it| matches!(it, State::File { sha256, .. } if *sha256 == digest));
        is_ours.then(|| Self { entry: entry.clone(), text })
    }

    /// That the file says this.
    fn says(&self, text: String) -> Action {
        let Entry { path, stage, reason, effects, component, uses, rival, .. } = self.entry.clone();
        Action { effects, component, uses, rival, ..Action::file(stage, path, text, &reason) }
    }
}
