//! The desired state, as far as it is known.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cdi::{Siblings, may_replace};
use config::selection::pin;
use config::{self, Component, Config};
use engines::concourse::desired::{has_tagged, out_of_date, written_by};
use engines::hidden::{hidden, mounts};
use engines::program::Program;
use engines::undo_constraints::named_by_dockerd;
use engines::{Containerd, Engines, Versions, with_wrapper_as_default};
use host::facts::Facts;
use host::groups::Groups;
use host::module_load::ModuleLoad;
use packages::Packages;
use packages::driver::{Hindrances, kmm};
use reconcile::{Desired, Finding, Note, Receipt, Store, Uptime};
use render::Templates;
use root::Root;

use super::active::why_not_the_daemons;
use super::outcome::Stopped;
use super::published::{PublishedState, is_removed_by_apply};
use super::scope::{Changes, Components, Request, Scope};
use super::{Error, Run, State};
use crate::desired::own_unit::DAEMON;
use crate::desired::{self, desired, require_decision, require_known_gpus};
use crate::exporter_unit::ExporterUnit;
use crate::memory::{AppliedConfig, Memory};
use crate::observations::Observations;
use crate::own_program;

/// The desired state of a run, and what it was decided by.
pub(super) struct Target {
    /// The state as it was read before the run.
    pub(super) state: State,
    pub(super) desired: Desired,
    /// What was observed, where the desired state depends on it.
    pub(super) observed: Option<Observations>,
    /// What is remembered from now on.
    pub(super) memory: Memory,
    /// What was published, where the desired state is unknown, and why it is: it stays as far as it is true.
    pub(super) unknown: Option<(PublishedState, Option<desired::Error>)>,
    /// Whether the configuration wants AMD's GPUs and there is no card.
    pub(super) has_lost_all: bool,
}

impl Target {
    /// A target that needs no observation of the machine.
    fn fixed(state: State, desired: Desired) -> Self {
        let memory = state.memory.clone();
        Self { state, desired, observed: None, memory, unknown: None, has_lost_all: false }
    }

    /// The receipt, as far as a plan for this goes by it.
    pub(super) fn receipt(&self, receipt: &Receipt, request: &Request<'_>) -> Receipt {
        match (&self.unknown, request) {
            (Some((published, _)), _) => published.narrowed(receipt),
            // A person asks for these paths by name.
            (None, Request::Only(actions)) => {
                let asked = actions.iter().map(|action| &action.path);
                asked.fold(receipt.clone(), |receipt, path| receipt.without_repairs_of(path))
            }
            _ => receipt.clone(),
        }
    }
}

impl Run<'_> {
    /// What should be now; else why nothing is to be done.
    pub(super) fn target(
        &self,
        scope: &Scope,
        request: &Request<'_>,
        state: State,
    ) -> Result<Result<Target, Stopped>, Error> {
        if scope.needs_set_up && !state.is_applied() {
            return Ok(Err(Stopped::NotSetUp));
        }
        let (is_daemon, fallback, is_known) = match request {
            Request::Only(actions) => {
                let actions = actions.to_vec();
                let desired = Desired { actions, is_undecided: true, ..Desired::default() };
                return Ok(Ok(Target::fixed(state, desired)));
            }
            Request::Nothing { keeps, force } => {
                let undecided = keeps.iter().map(|component| component.as_ref().to_owned()).collect();
                let mut undo_constraints = self.undo_constraints();
                // A memory that cannot be read stops no undo.
                let at_first = Memory::read(self.root).ok().and_then(|memory| memory.mounts);
                if let Some(at_first) = at_first.filter(|_| !force) {
                    let containerd = Containerd::find(self.root, &self.config.containerd.config);
                    let now = mounts(self.root, &undo_constraints, containerd.as_ref());
                    undo_constraints.unread.extend(hidden_since(self.root, &state.receipt, now, &at_first));
                }
                let mut desired = Desired { undo_constraints, undecided, ..Desired::default() };
                scope.narrow(&mut desired, &state);
                return Ok(Ok(Target::fixed(state, desired)));
            }
            Request::Configuration { .. } => (false, None, true),
            Request::Boot { published, is_known } => (false, Some((*published).clone()), *is_known),
            Request::Reconcile { .. } => (true, None, true),
        };
        if is_daemon && let Some(why) = why_not_the_daemons(self.root, self.config, &state.memory) {
            return Ok(Err(Stopped::Other(why)));
        }
        let observed = self.observe(&state, scope.packages);
        let has_lost_all = self.config.gpus.is_on() && !observed.facts.has_amd();
        let wanted = is_known.then(|| {
            require_known_gpus(self.config, &observed.facts)?;
            let desired = desired(self.config, &observed)?;
            Ok((self.remember(scope, &state, &observed, &desired)?, desired))
        });
        let problem = match wanted {
            Some(Ok((mut memory, mut desired))) => {
                if is_daemon {
                    // Whether a driver that was installed runs is for an apply to see.
                    memory.unverified = state.memory.unverified;
                    // The daemon's sandbox has mounts of its own.
                    memory.mounts.clone_from(&state.memory.mounts);
                }
                if scope.changes == Changes::ButPackages {
                    desired.actions.retain(|action| action.component != Component::Packages.as_ref());
                    desired.leave(Component::Packages);
                }
                // Only `partition set` and `reset` switch cards.
                desired.leave(Component::Partitions);
                desired.notes.extend(self.notes_on(&state.memory, &observed));
                scope.narrow(&mut desired, &state);
                desired.notes.splice(0..0, desired.question.clone());
                let observed = Some(observed);
                return Ok(Ok(Target { state, desired, observed, memory, unknown: None, has_lost_all }));
            }
            // Who wrote a configuration that was never followed here made a mistake. The machine lets a card go.
            Some(Err(desired::Error::Config(error)))
                if is_daemon && AppliedConfig::of(self.root, self.config) != state.memory.config =>
            {
                return Ok(Err(Stopped::Unfit(error.to_string())));
            }
            Some(Err(error)) if !scope.keeps_published => return Err(error.into()),
            unknown => unknown.and_then(Result::err),
        };
        let published = fallback.unwrap_or_else(|| PublishedState::read(self.root, &state.receipt));
        let desired = published.still_true(&observed.facts);
        let unknown = Some((published, problem));
        Ok(Ok(Target { unknown, has_lost_all, observed: Some(observed), ..Target::fixed(state, desired) }))
    }

    /// What should be now, for a run that changes the machine. A run that goes by the last apply leaves alone what a person
    /// has to decide, and reports the question.
    pub(super) fn decided_target(
        &self,
        scope: &Scope,
        request: &Request<'_>,
        state: State,
    ) -> Result<Result<Target, Stopped>, Error> {
        let target = self.target(scope, request, state)?;
        if let (Ok(target), Components::All) = (&target, &scope.components) {
            require_decision(self.config, &target.desired)?;
        }
        Ok(target)
    }

    /// What decides about the desired state, as the machine is now. `asks_apt`: else what there is of the driver stays.
    pub(super) fn observe(&self, state: &State, asks_apt: bool) -> Observations {
        let (Self { root, config, .. }, State { receipt, memory, .. }) = (self, state);
        let (beside, running) = (self.own.beside.as_deref(), self.own.program.as_deref());
        let mut facts = Facts::read(root).remembering(memory.pinned.clone());
        if kmm::loads(root, &facts.inventory.amdgpu, &Hindrances::read(root)) {
            facts.module_load = ModuleLoad::Operators;
        }
        let mut versions = Versions::new(root, self.programs, memory.versions.clone()).at(self.now);
        let mut engines = Engines::read(root, config, &mut versions);
        let store = Store::new(root);
        let without_managed = |path: &Path, text: &str| store.without_managed(receipt, path, text);
        engines.containerd = engines.containerd.map(|it| it.without_managed(without_managed));
        if let Some(at_first) = &memory.mounts {
            let now = mounts(root, &engines.undo_constraints, engines.containerd.as_ref());
            engines.undo_constraints.unread.extend(hidden_since(root, receipt, now, at_first));
        }
        // Asking dockerd takes longer than all else.
        if !keeps_runtimes(config, &facts, receipt) {
            engines.undo_constraints.named.extend(named_by_dockerd(root, config, &engines.docker));
        }
        if let Some(worker) = &mut engines.concourse.worker {
            worker.was_tagged |= memory.has_tagged();
        }
        let program = Program::find(root, beside);
        Observations {
            has_pci: root.exists("/sys/bus/pci/devices"),
            groups: Groups::read(root).asking(self.programs, &[]),
            own_program: own_program::find(root, running),
            exporter: ExporterUnit::read(root, config, receipt, running, self.programs),
            wrapper: program.and_then(|program| program.that_runs(&mut versions, beside)),
            cdi_place: may_replace(root, &config.cdi.path, false).map(|()| {
                Siblings::read(root, &config.cdi.path, |path| is_removed_by_apply(root, receipt, path))
            }),
            templates: Templates::read(root),
            wrapper_as_default: with_wrapper_as_default(root, config, &engines),
            engines,
            driver: if asks_apt { self.driver_ground(&facts) } else { None },
            packages: config.wants_packages().then(|| Packages::read(root)),
            versions: versions.known().clone(),
            facts,
        }
    }

    /// What an apply by this remembers. One component alone leaves what a machine was set up by as it is.
    fn remember(
        &self,
        scope: &Scope,
        state: &State,
        observed: &Observations,
        desired: &Desired,
    ) -> Result<Memory, config::Error> {
        let mut memory = state.memory.clone();
        if matches!(scope.components, Components::Only(_)) && state.is_applied() && memory.only.is_none() {
            return Ok(memory);
        }
        memory.only = scope.only(state).map(str::to_owned);
        memory.pinned = pin(self.config, &observed.facts)?;
        memory.versions.clone_from(&observed.versions);
        memory.overrides = observed.templates.first_seen(&memory.overrides);
        memory.concourse = written_by(&observed.engines.concourse, memory.concourse);
        memory.tagged = Some(has_tagged(self.config, &observed.engines.concourse, desired));
        memory.reboot = None;
        memory.unverified &= self.config.driver.is_on();
        memory.undone = false;
        // An image that is being built has other mounts than the machine that it becomes.
        if Uptime::now(self.root).is_some() {
            let Engines { undo_constraints, containerd, .. } = &observed.engines;
            memory.mounts.get_or_insert_with(|| mounts(self.root, undo_constraints, containerd.as_ref()));
        }
        memory.config = AppliedConfig::of(self.root, self.config);
        memory.rocworker = Some(env!("CARGO_PKG_VERSION").to_owned());
        Ok(memory)
    }

    /// What to say of overridden templates, of what another Concourse wrote, and of a daemon that goes by another file.
    fn notes_on(&self, remembered: &Memory, observed: &Observations) -> Vec<Note> {
        let note = |about: &str, text| Note { about: about.to_owned(), text, problem: false };
        let stale = observed.templates.stale(&remembered.overrides).into_iter().map(|name| {
            let text = format!(
                "{} was made beside an older template than this version carries, and may lack what is new: compare it \
                 with the new one, and edit it",
                observed.templates.place(&name)
            );
            note("templates", text)
        });
        let out_of_date = out_of_date(&observed.engines.concourse, remembered.concourse);
        let other = AppliedConfig::of(self.root, self.config).and_then(|applied| applied.other);
        let other = other.filter(|_| DAEMON.is_wanted(self.config, &observed.facts)).map(|other| {
            let text = format!(
                "{} reads {} and not {}: the daemon changes nothing until both files have the same content",
                DAEMON.name,
                self.root.shown(config::PATH).display(),
                other.display()
            );
            note(DAEMON.component.as_ref(), text)
        });
        stale.chain(out_of_date.map(|text| note("concourse", text))).chain(other).collect()
    }
}

impl Scope {
    /// The component that this run may change alone.
    pub(super) fn only<'s>(&'s self, state: &'s State) -> Option<&'s str> {
        match &self.components {
            Components::All => None,
            Components::Only(component) => Some(component.as_ref()),
            Components::AsApplied => state.memory.only.as_deref(),
        }
    }

    /// Leaves out what belongs to components that this run may not change.
    fn narrow(&self, desired: &mut Desired, state: &State) {
        let Some(only) = self.only(state) else { return };
        desired.actions.retain(|action| action.component == only);
        desired.notes.retain(|note| note.about == only);
        desired.question.take_if(|question| question.about != only);
        let others = state.receipt.entries.iter().map(|entry| &entry.component);
        let others = others.filter(|component| *component != only).cloned();
        desired.undecided.extend(others.collect::<std::collections::BTreeSet<_>>());
    }
}

/// What mounts of later than the first apply hide. An earlier version looked at fewer places at that apply; what it wrote
/// there shows that a mount is older.
fn hidden_since(
    root: &Root,
    receipt: &Receipt,
    mut now: BTreeSet<PathBuf>,
    at_first: &BTreeSet<PathBuf>,
) -> Vec<Finding> {
    now.retain(|mount| !receipt.saw_mounted(mount));
    hidden(root, &now, at_first)
}

/// Whether docker keeps each runtime that the receipt has: else one goes that the dockerd that runs may need.
fn keeps_runtimes(config: &Config, facts: &Facts, receipt: &Receipt) -> bool {
    let has_gpus = config.gpus.is_on() && facts.has_amd();
    let is_wanted = config.docker.managed.is_on() && facts.has_amd();
    receipt.entries.iter().all(|entry| match entry.component.as_str() {
        it if it == Component::Wrapper.as_ref() => has_gpus,
        it if it != Component::Docker.as_ref() => true,
        _ => is_wanted && entry.uses.iter().all(|it| it.value == config.docker.runtime),
    })
}
