//! What each kind of run may do, as data.

use std::collections::BTreeSet;
use std::path::PathBuf;

use config::Component;
use reconcile::{Action, Effect, Restarts, Stage};

use super::planned::Saved;
use super::published::PublishedState;
use crate::exporter_unit;

/// What a run may do. [`APPLY`] and the others below are the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) command: &'static str,
    pub(super) aim: Aim,
    pub(super) changes: Changes,
    pub(super) components: Components,
    /// Whether the run asks apt, and installs and removes packages.
    pub(super) packages: bool,
    pub(super) effects: Effects,
    /// Whether the run restarts units, as far as the configuration, the daemon's [`Rules`] or the last apply allow.
    pub(super) restarts: bool,
    /// Whether the run leaves a machine alone that is not set up.
    pub(super) needs_set_up: bool,
    /// Whether the run keeps what was published and is still true where the desired state is unknown; else it fails.
    pub(super) keeps_published: bool,
}

/// The state of the machine that a run works towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    /// The machine has what the configuration asks for.
    Configured,
    /// Engines start with the GPUs of this boot.
    Booted,
    /// Rocworker manages nothing on the machine.
    Reverted,
}

/// Which changes of a plan a run makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changes {
    All,
    ButPackages,
    /// What is published about GPUs, what the wrapper may give, and nodes.
    OfGpus,
    /// Files and nodes, as [`Rules`] says.
    Files,
}

/// The components whose changes a run makes. What is managed of other components stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Components {
    All,
    Only(Component),
    /// The components of the last apply.
    AsApplied,
}

/// Which effects a run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effects {
    /// All pending effects.
    Pending,
    /// All pending effects but apt's and a restart of the machine.
    ButApts,
    /// Effects of the run's own changes that were not pending before: an older one may start a unit that waits for this
    /// run.
    Own,
    /// Effects of this unit, and systemd's look at its units.
    OfUnit(&'static str),
    /// Effects that [`Rules`] allows.
    Allowed,
    None,
}

/// An apply by a person or a hook.
pub(super) const APPLY: Scope = Scope {
    command: "apply",
    aim: Aim::Configured,
    changes: Changes::All,
    components: Components::All,
    packages: true,
    effects: Effects::Pending,
    restarts: true,
    needs_set_up: false,
    keeps_published: false,
};

/// A run that dpkg starts once it has unpacked another version of this program. dpkg still holds its lock, so the run
/// leaves packages alone.
pub(super) const UPGRADE: Scope = Scope {
    command: "upgrade",
    changes: Changes::ButPackages,
    components: Components::AsApplied,
    packages: false,
    needs_set_up: true,
    ..APPLY
};

/// `status`: what an apply of the components of the last apply would change.
pub(super) const STATUS: Scope = Scope { components: Components::AsApplied, ..APPLY };

/// `apply --only exporter`: no engine is set up, and no other unit restarts.
pub(super) const APPLY_EXPORTER: Scope = Scope {
    components: Components::Only(Component::Exporter),
    packages: false,
    effects: Effects::OfUnit(exporter_unit::NAME),
    ..APPLY
};

/// The boot unit, which runs before engines start.
pub(super) const BOOT: Scope = Scope {
    command: "boot",
    aim: Aim::Booted,
    changes: Changes::OfGpus,
    components: Components::AsApplied,
    packages: false,
    effects: Effects::Own,
    restarts: false,
    needs_set_up: false,
    keeps_published: true,
};

/// The daemon, which repairs managed files and nodes as far as its [`Rules`] allow.
pub(super) const DAEMON: Scope = Scope {
    command: "serve",
    aim: Aim::Configured,
    changes: Changes::Files,
    components: Components::AsApplied,
    packages: false,
    effects: Effects::Allowed,
    restarts: true,
    needs_set_up: true,
    keeps_published: true,
};

pub(super) const UNDO: Scope = Scope { command: "undo", aim: Aim::Reverted, ..APPLY };

/// `undo --only exporter`.
pub(super) const UNDO_EXPORTER: Scope =
    Scope { components: APPLY_EXPORTER.components, effects: APPLY_EXPORTER.effects, ..UNDO };

/// A run that dpkg starts before it removes this program. dpkg holds its lock, so the run leaves packages alone.
pub(super) const REMOVE: Scope =
    Scope { command: "remove", packages: false, effects: Effects::ButApts, ..UNDO };

/// `partition set`, which writes modes of cards.
pub(super) const PARTITION: Scope = Scope { command: "partition set", ..GENERATE };

/// `cdi generate`: a command that writes one file.
pub(super) const GENERATE: Scope =
    Scope { command: "cdi generate", packages: false, effects: Effects::None, ..APPLY };

/// What a run is asked for, beside its scope.
#[derive(Clone, Copy)]
pub(super) enum Request<'r> {
    /// The state that the configuration asks for. `saved`: only if it takes exactly the changes of this plan.
    Configuration { saved: Option<&'r Saved> },
    /// The state that the configuration asks for, with the GPUs of this boot. `published`: what was published before
    /// boot. `is_known`: whether there is a configuration.
    Boot { published: &'r PublishedState, is_known: bool },
    /// The state that the configuration asks for, as far as the daemon may make it. `is_current` is asked under the
    /// lock, whether the run is still needed.
    Reconcile { rules: &'r Rules<'r>, is_current: &'r dyn Fn() -> bool },
    /// These actions alone.
    Only(&'r [Action]),
    /// An undo. `keeps`: what is there of this component stays managed. `force`: reverts edited files too.
    Nothing { keeps: Option<Component>, force: bool },
}

/// What the daemon may do now.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub enforce: bool,
    /// What the daemon may do with units whose configuration was changed.
    pub restarts: Restarts,
    /// Whether the daemon also asks systemd about pending restarts: a person may have made them since.
    pub closely: bool,
    /// Whether a worker may lose tags because GPUs have gone.
    pub tags_may_go: bool,
    /// Device nodes that another program keeps setting.
    pub given_up: &'a BTreeSet<PathBuf>,
}

impl Scope {
    /// The stages of a run. The run plans the second stage after the first, whose changes decide about it.
    pub(super) fn stages(&self) -> &'static [Option<Stage>] {
        match self.aim {
            Aim::Reverted => &[None],
            Aim::Configured | Aim::Booted => &[Some(Stage::Shape), Some(Stage::Expose)],
        }
    }

    /// Whether this run executes an effect at the end of a stage. `own`: the effects of the stage's changes; `before`:
    /// those that were pending before it.
    pub(super) fn executes(
        &self,
        effect: &Effect,
        stage: Option<Stage>,
        (own, before): (&[Effect], &[Effect]),
        allowed: impl Fn(&Effect) -> bool,
    ) -> bool {
        // Nodes get their groups before the CDI spec names their modes to engines; what a repository offers is read
        // before the second stage is planned.
        let is_first = matches!(effect, Effect::Udev { .. } | Effect::AptUpdate { .. });
        let is_of_stage = stage.is_none_or(|stage| is_first == (stage == Stage::Shape));
        match self.effects {
            Effects::Pending => is_of_stage,
            Effects::ButApts => !matches!(effect, Effect::AptUpdate { .. } | Effect::Reboot { .. }),
            Effects::Own => own.contains(effect) && !before.contains(effect),
            Effects::OfUnit(name) => is_of_stage && is_of_unit(effect, name),
            Effects::Allowed => is_of_stage && allowed(effect),
            Effects::None => false,
        }
    }
}

fn is_of_unit(effect: &Effect, name: &str) -> bool {
    match effect {
        Effect::SystemdReload => true,
        Effect::Start { unit }
        | Effect::Stop { unit }
        | Effect::Reload { unit }
        | Effect::Restart { unit, .. }
        | Effect::NextStart { unit, .. } => unit == name,
        Effect::AptUpdate { .. } | Effect::Udev { .. } | Effect::Reboot { .. } => false,
    }
}
