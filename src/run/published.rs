//! What was published to engines about GPUs, and how much of it is still true while the desired state is unknown:
//! the configuration has a slip, a template is half written, a pinned card has gone.

use std::path::Path;

use cdi::{self, Siblings, still_true};
use config::selection::Selection;
use engines::concourse::ENV_FILE;
use engines::concourse::tags::{self, VARIABLE as TAGS, loses};
use host::env_file::EnvFile;
use host::facts::Facts;
use reconcile::{Action, Desired, Digest, Entry, Managed, Receipt, State, Store};
use root::Root;

/// The CDI spec and the worker's tags, as rocworker wrote them. A file that was edited since is left out.
#[derive(Debug, Clone)]
pub(super) struct PublishedState {
    spec: Option<Published>,
    tags: Option<Published>,
}

/// Whether the next apply removes a spec: rocworker wrote it to an earlier `cdi.path`.
pub(super) fn is_removed_by_apply(root: &Root, receipt: &Receipt, spec: &Path) -> bool {
    receipt.entry(spec).is_some_and(|entry| Published::read(root, entry).is_some())
}

/// The specs that an apply finds beside the one at `cdi.path`: it removes its own at an earlier path.
#[must_use]
pub fn siblings_at_apply(root: &Root, path: &Path) -> Siblings {
    let receipt = Store::new(root).receipt().unwrap_or_default();
    Siblings::read(root, path, |spec| is_removed_by_apply(root, &receipt, spec))
}

/// A managed file with what was published in it.
#[derive(Debug, Clone)]
struct Published {
    entry: Entry,
    text: String,
}

impl PublishedState {
    pub(super) fn read(root: &Root, receipt: &Receipt) -> Self {
        // The spec belongs to no component, wherever the configuration had it.
        let mut of_no_component = receipt.entries.iter().filter(|entry| entry.component.is_empty());
        let published = |entry| Published::read(root, entry);
        Self {
            spec: of_no_component.find_map(published),
            tags: receipt.entry(Path::new(ENV_FILE)).and_then(published),
        }
    }

    /// What should be, of all that a receipt like this one holds ([`PublishedState::narrowed`]).
    pub(super) fn still_true(&self, facts: &Facts) -> Desired {
        let mut desired = Desired::default();
        // A GPU whose files do not answer or cannot be read has not gone.
        if facts.inventory.may_lack_gpus() {
            desired
                .actions
                .extend(self.spec.iter().chain(&self.tags).map(|it| it.action_with(it.text.clone())));
            return desired;
        }
        let spec = self.spec.as_ref().map(|spec| (spec, still_true(&spec.text, facts.usable())));
        let gpus = spec.as_ref().map(|(_, it)| it.gpus.clone()).unwrap_or_default();
        desired.actions.extend(spec.and_then(|(published, it)| Some(published.action_with(it.text?))));
        let selection = Selection { gpus, listed: false, left_out: Vec::new() };
        let offers = tags::of_gpus(&selection).join(",");
        let tags = self.tags.as_ref().filter(|published| {
            let env = EnvFile::parse(&published.text);
            !loses(env.get(TAGS).unwrap_or_default(), &offers)
        });
        desired.actions.extend(tags.map(|it| it.action_with(it.text.clone())));
        desired
    }

    /// Whether all that was published is true.
    pub(super) fn is_true(&self, facts: &Facts) -> bool {
        let published = self.spec.iter().chain(&self.tags);
        published.map(|it| it.action_with(it.text.clone())).eq(self.still_true(facts).actions)
    }

    /// A receipt with what was published alone: a plan for it reverts nothing else.
    pub(super) fn narrowed(&self, receipt: &Receipt) -> Receipt {
        let mut receipt = receipt.clone();
        let paths: Vec<_> = self.spec.iter().chain(&self.tags).map(|it| &it.entry.path).collect();
        receipt.entries.retain(|entry| paths.contains(&&entry.path));
        receipt
    }
}

impl Published {
    fn read(root: &Root, entry: &Entry) -> Option<Self> {
        let text = root.read_text(entry.path.path()?, cdi::LIMIT).ok()?;
        let Managed::Owned { states } = &entry.managed else { return None };
        let digest = Digest::of(text.as_bytes());
        let is_managed =
            states.iter().any(|it| matches!(it, State::File { sha256, .. } if *sha256 == digest));
        is_managed.then(|| Self { entry: entry.clone(), text })
    }

    /// The action that gives the published file this text.
    fn action_with(&self, text: String) -> Action {
        let Entry { path, stage, reason, effects, component, uses, rival, .. } = self.entry.clone();
        Action { effects, component, uses, rival, ..Action::file(stage, path, text, &reason) }
    }
}
