//! What the daemon does at each look: an apply's plan, as far as it may carry it out by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use reconcile::{
    Change, Desired, Effect, Executed, Finding, KindName, Note, Outcome, Pending, Plan, Progress, Receipt,
    Resource, Restarts, Services, Settled, Stage, Store, Transaction, Verb,
};
use root::Root;
use serde::{Deserialize, Serialize};

use super::follows::Part;
use super::planned::told_of;
use super::recorded::record;
use super::standing::Standing;
use super::{Error, Setup, is_set_up};
use crate::engines::Known;
use crate::engines::concourse::ENV_FILE;
use crate::engines::env_file::EnvFile;
use crate::engines::unit::WANTS;
use crate::memory::Memory;
use crate::premises::Premises;
use crate::worker::concern::Concern;
use crate::worker::concourse;
use crate::worker::desired::{self, desired};
use crate::worker::lost_tags::loses;
use crate::worker::selection::is_off;

/// What one look may do.
#[derive(Debug, Clone, Copy)]
pub struct Keeping<'a> {
    /// Whether anything may be changed.
    pub enforce: bool,
    /// What may be done with units whose configuration was changed.
    pub restarts: Restarts,
    /// Whether systemd is also asked about restarts that are owed of earlier changes: somebody may have made them since.
    pub closely: bool,
    /// Whether a worker may lose tags because GPUs have gone.
    pub tags_may_go: bool,
    /// Device nodes that somebody else keeps setting.
    pub given_up: &'a BTreeSet<PathBuf>,
}

/// What a look came to.
#[derive(Debug, Default)]
pub struct Kept {
    /// Whether an apply has set this machine up, and no undo has taken it back since: else nothing is done.
    pub is_set_up: bool,
    /// Why nothing was looked at any further, or changed.
    pub stopped: Option<Stopped>,
    /// Why it cannot be said what should be.
    pub problem: Option<String>,
    pub changes: Vec<Change>,
    /// Changes that could not be made.
    pub failed: Vec<Finding>,
    pub effects: Vec<Settled>,
    pub contested: Vec<Finding>,
    pub blocked: Vec<Finding>,
    pub left: Vec<Finding>,
    /// What is not as it should be, and is not changed.
    pub differs: Vec<Differs>,
    /// Whether the worker would have fewer tags, and whether they are kept until their GPUs have been gone for long enough.
    pub is_lost: bool,
    pub is_held: bool,
    pub pending: Vec<Pending>,
    pub notes: Vec<Note>,
}

/// Why the configuration is not brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// It was never followed on this machine, and cannot be: it names a GPU that is not there.
    Unfit(String),
    /// The last apply was by the configuration of another place.
    Other(String),
    /// It is another one by now, or another build of this program stands in its place.
    Superseded,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Differs {
    pub path: Resource,
    pub why: Why,
}

/// Why it is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The daemon only reports (`daemon.enforce: false`).
    Reported,
    /// It is for an apply: packages and the like, what an engine is told while no GPU is there, the daemon's own unit.
    Apply,
    /// Tags whose GPUs have just gone.
    Settling,
}

impl Kept {
    /// Takes in what a plan leaves.
    fn reports(&mut self, parted: Parted) {
        let Parted { plan, differs, is_lost, is_held, contested } = parted;
        self.notes.extend(told_of(&plan));
        self.contested.extend(plan.contested.into_iter().chain(contested));
        self.blocked.extend(plan.blocked);
        self.left.extend(plan.left);
        self.differs.extend(differs);
        self.is_lost |= is_lost;
        self.is_held |= is_held;
    }

    /// The same, by what should be and what is still owed in the end.
    fn ends_by(mut self, wanted: Wanted, root: &Root, receipt: &Receipt) -> Self {
        self.problem = wanted.problem.map(|(problem, _)| problem);
        self.notes.splice(0..0, wanted.desired.notes);
        self.pending = receipt.owed(root).cloned().collect();
        self
    }

    /// Whether something should be that is not, and that may be when it is tried again.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.problem.is_some()
            || !self.failed.is_empty()
            || self.effects.iter().any(|effect| effect.outcome == Outcome::Failed)
    }
}

/// What should be, as far as that can be told.
struct Wanted {
    desired: Desired,
    /// Why it cannot be told, and what engines are told until it can: that stays as far as it is true, and all else as it
    /// is.
    problem: Option<(String, Standing)>,
    /// Whether the configuration wants AMD's GPUs and there is no card.
    has_lost_all: bool,
    remembered: Memory,
    memory: Memory,
}

/// A plan, parted by who carries it out.
struct Parted {
    plan: Plan,
    differs: Vec<Differs>,
    is_lost: bool,
    is_held: bool,
    contested: Vec<Finding>,
}

impl Setup<'_> {
    /// Brings what engines are told, nodes, and files of ours to what they should be. It installs nothing, and restarts
    /// nothing unless it may. `is_current`: asked once nobody else is at work, whether it is still to be done. `told`
    /// hears of each change before it is made.
    ///
    /// # Errors
    /// When the receipt or what is remembered cannot be read or kept.
    pub fn keep(
        &self,
        how: &Keeping<'_>,
        is_current: &dyn Fn() -> bool,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Kept, Error> {
        let receipt = Store::new(self.root).receipt()?;
        let wanted = match self.wanted(&receipt, None)? {
            ControlFlow::Continue(wanted) => wanted,
            ControlFlow::Break(kept) => return Ok(kept),
        };
        let looked = self.parted(how, &wanted, &receipt, None)?;
        let is_due = |pending: &Pending| self.may_settle(how, &[], looked.is_held, &pending.effect);
        let is_idle = looked.plan.changes.is_empty()
            && wanted.memory == wanted.remembered
            && receipt.writing.is_none()
            && !receipt.pending.iter().any(is_due);
        if !how.enforce || is_idle {
            let mut kept = Kept { is_set_up: true, ..Kept::default() };
            kept.reports(looked);
            return Ok(kept.ends_by(wanted, self.root, &receipt));
        }
        self.act(how, is_current, wanted.memory.versions, told)
    }

    /// Carries out what it may, under the lock, or says why nothing is to be done by then. `versions`: what programs have
    /// told a moment ago. One that does not answer must not be waited for twice.
    fn act(
        &self,
        how: &Keeping<'_>,
        is_current: &dyn Fn() -> bool,
        versions: BTreeMap<PathBuf, Known>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Kept, Error> {
        let work = Transaction::begin(self.root, told)?;
        // Somebody may have had the lock until now: an apply, an undo, which need not have changed the receipt.
        if !is_current() {
            return Ok(Kept { stopped: Some(Stopped::Superseded), ..Kept::default() });
        }
        let wanted = match self.wanted(work.receipt(), Some(versions))? {
            ControlFlow::Continue(wanted) => wanted,
            ControlFlow::Break(stopped) => return Ok(stopped),
        };
        let mut work = work.recorded(self.event("serve"));
        wanted.memory.write(self.root)?;
        let ran = self.act_in_stages(how, wanted, &mut work, told);
        if let Some(note) = record(&mut work) {
            tracing::warn!("{}", note.text);
        }
        ran
    }

    fn act_in_stages(
        &self,
        how: &Keeping<'_>,
        mut wanted: Wanted,
        work: &mut Transaction<'_>,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Kept, Error> {
        let mut kept = Kept { is_set_up: true, ..Kept::default() };
        if self.act_on(how, Stage::Shape, &wanted, work, &mut kept, told)? {
            wanted = match self.wanted(work.receipt(), None)? {
                ControlFlow::Continue(wanted) => wanted,
                ControlFlow::Break(stopped) => return Ok(Kept { stopped: stopped.stopped, ..kept }),
            };
        }
        self.act_on(how, Stage::Expose, &wanted, work, &mut kept, told)?;
        // Each plan says what it leaves, and what it has changed is heard of: that there is nothing more is the next look's
        // to find.
        Ok(kept.ends_by(wanted, self.root, work.receipt()))
    }

    /// One stage. Whether anything was changed or done.
    fn act_on(
        &self,
        how: &Keeping<'_>,
        stage: Stage,
        wanted: &Wanted,
        work: &mut Transaction<'_>,
        kept: &mut Kept,
        told: &mut dyn FnMut(Progress<'_>),
    ) -> Result<bool, Error> {
        let mut parted = self.parted(how, wanted, work.receipt(), Some(stage))?;
        let Executed { done, failed, effects } = work.execute(&parted.plan, self.now.seconds(), told)?;
        let arose: Vec<Effect> =
            parted.plan.changes.iter().flat_map(|change| change.effects.clone()).collect();
        // What has just changed may change again: a unit that reads it is restarted by a later look, once for all of it.
        let waits = !self.config.daemon.settle.is_zero() && arose.iter().any(is_restart);
        let services = Services {
            restarts: if waits { Restarts::Never } else { how.restarts },
            // Nobody waits here for hours: what does is a unit of its own.
            drain: std::time::Duration::ZERO,
            ..self.services()
        };
        let is_first = |effect: &Effect| matches!(effect, Effect::Udev { .. });
        let is_due = |effect: &Effect| {
            is_first(effect) == (stage == Stage::Shape)
                && self.may_settle(how, &arose, parted.is_held, effect)
        };
        let settled = work.run_effects(self.root, &services, is_due, told)?;
        let has_acted = !done.is_empty() || !settled.is_empty();
        kept.failed.extend(failed);
        kept.effects.extend(effects.into_iter().chain(settled));
        let changes = std::mem::take(&mut parted.plan.changes);
        kept.changes.extend(changes.into_iter().filter(|it| done.contains(&it.path)));
        parted.is_lost &= !done.iter().any(|path| path == Path::new(ENV_FILE));
        kept.reports(parted);
        Ok(has_acted)
    }

    /// What should be; else how it stands where nothing is to be kept as it is. `versions`: those that are known better
    /// than they are remembered.
    fn wanted(
        &self,
        receipt: &Receipt,
        versions: Option<BTreeMap<PathBuf, Known>>,
    ) -> Result<ControlFlow<Kept, Wanted>, Error> {
        let mut remembered = Memory::read(self.root)?;
        remembered.versions = versions.unwrap_or(remembered.versions);
        if !is_set_up(receipt, &remembered) {
            return Ok(ControlFlow::Break(Kept::default()));
        }
        let stopped =
            |why| Ok(ControlFlow::Break(Kept { is_set_up: true, stopped: Some(why), ..Kept::default() }));
        if let Some(why) = self.other_was_applied(&remembered) {
            return stopped(Stopped::Other(why));
        }
        let premises: Premises = self.without_apt(&remembered, receipt);
        let has_lost_all = !is_off(self.config) && premises.facts.amd().next().is_none();
        let told = self.memory(&remembered, &premises).map_err(desired::Error::from);
        let told = told.and_then(|memory| Ok((memory, desired(self.config, &premises)?)));
        Ok(ControlFlow::Continue(match told {
            Ok((mut memory, mut desired)) => {
                // Whether a driver that was installed runs is for an apply to see.
                memory.driver.clone_from(&remembered.driver);
                memory.unverified = remembered.unverified;
                desired.notes.extend(self.stale(&remembered, &premises));
                Wanted { desired, problem: None, has_lost_all, remembered, memory }
            }
            // What was never followed here is a mistake of who wrote it. A card that goes is the machine's doing.
            Err(desired::Error::Config(error)) if self.followed() != remembered.config => {
                return stopped(Stopped::Unfit(error.to_string()));
            }
            Err(error) => {
                let standing = Standing::read(self.root, receipt);
                Wanted {
                    desired: standing.still_true(&premises.facts),
                    problem: Some((error.to_string(), standing)),
                    has_lost_all,
                    memory: remembered.clone(),
                    remembered,
                }
            }
        }))
    }

    fn parted(
        &self,
        how: &Keeping<'_>,
        wanted: &Wanted,
        receipt: &Receipt,
        stage: Option<Stage>,
    ) -> Result<Parted, Error> {
        let narrowed = wanted.problem.as_ref().map(|(_, standing)| standing.narrowed(receipt));
        let receipt = narrowed.as_ref().unwrap_or(receipt);
        let plan = Plan::make(self.root, &wanted.desired, receipt, stage, false, self.now.seconds())?;
        let concern = |path: &Resource| {
            let action = wanted.desired.actions.iter().find(|action| action.path == *path);
            let entry = || receipt.entry(path).map(|entry| entry.concern.as_str());
            action.map(|action| action.concern.as_str()).or_else(entry).unwrap_or_default().to_owned()
        };
        let is_lost = self.loses_tags(&wanted.desired, &plan);
        let keeps_tags = !how.tags_may_go && is_lost;
        let mut parted = Parted { differs: Vec::new(), is_lost, is_held: false, contested: Vec::new(), plan };
        for change in std::mem::take(&mut parted.plan.changes) {
            let path = change.path.clone();
            let concern = concern(&path);
            let goes = matches!(change.change, Verb::Remove | Verb::Restore | Verb::Edit)
                && !is_wanted(wanted, &path);
            if !self.is_for_daemon(wanted, &change, &concern, goes) {
                parted.differs.push(Differs { path, why: Why::Apply });
            } else if keeps_tags && (concern == Concern::Concourse.as_ref() || path == Path::new(ENV_FILE)) {
                parted.is_held = true;
                parted.differs.push(Differs { path, why: Why::Settling });
            } else if path.path().is_some_and(|path| how.given_up.contains(path)) {
                let text = "something else keeps setting its group and mode: they are set no more until the node is made \
                            anew, or rocworker.service is restarted";
                parted.contested.push(Finding { path, text: text.to_owned() });
            } else if how.enforce {
                parted.plan.changes.push(change);
            } else {
                parted.differs.push(Differs { path, why: Why::Reported });
            }
        }
        Ok(parted)
    }

    /// Whether it is the daemon's to carry out. `goes`: it is taken back.
    fn is_for_daemon(&self, wanted: &Wanted, change: &Change, concern: &str, goes: bool) -> bool {
        let is_file = matches!(change.kind, KindName::Owned | KindName::Edited | KindName::Node);
        // `systemctl disable` is its owner's decision: an apply shows it, and puts it right.
        let is_enabling = change.path.path().is_some_and(|path| path.starts_with(WANTS));
        if !is_file || is_enabling || concern == Concern::Packages.as_ref() {
            false
        } else if wanted.has_lost_all {
            self.follows(Part::Given, change)
        } else {
            // It would not hear of a configuration that wants it again.
            !(goes && concern == Concern::Daemon.as_ref())
        }
    }

    /// Whether the worker would have fewer GPUs to offer by this plan.
    fn loses_tags(&self, desired: &Desired, plan: &Plan) -> bool {
        let is_changed = plan.changes.iter().any(|change| change.path == Path::new(ENV_FILE));
        let Some(now) = self.root.read_text(ENV_FILE, 1 << 20).ok().filter(|_| is_changed) else {
            return false;
        };
        let after = desired.actions.iter().find(|action| action.path == Path::new(ENV_FILE));
        let after = after.and_then(|action| match &action.kind {
            reconcile::Kind::Owned(reconcile::Content::File { bytes, .. }) => std::str::from_utf8(bytes).ok(),
            _ => None,
        });
        let tags = |text: &str| EnvFile::parse(text).get(concourse::TAGS).unwrap_or_default().to_owned();
        loses(&tags(&now), &after.map(tags).unwrap_or_default())
    }

    /// `arose`: what changes of this look have made necessary.
    fn may_settle(&self, how: &Keeping<'_>, arose: &[Effect], is_held: bool, effect: &Effect) -> bool {
        match effect {
            Effect::AptUpdate { .. } | Effect::Reboot { .. } => false,
            Effect::Udev { .. } | Effect::SystemdReload | Effect::Start { .. } | Effect::Stop { .. } => true,
            Effect::Reload { .. } | Effect::Restart { .. } | Effect::NextStart { .. } => {
                let may = how.restarts != Restarts::Never && !is_held;
                self.programs.is_none() || may || how.closely || arose.contains(effect)
            }
        }
    }
}

fn is_restart(effect: &Effect) -> bool {
    matches!(effect, Effect::Restart { .. } | Effect::NextStart { .. })
}

fn is_wanted(wanted: &Wanted, path: &Resource) -> bool {
    wanted.desired.actions.iter().any(|action| action.path == *path)
}
