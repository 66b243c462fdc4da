//! Selects the changes of a plan that a run makes, where it does not make all.

use std::path::Path;
use std::time::Duration;

use config::Component;
use engines::concourse::tags::{VARIABLE as TAGS, loses};
use engines::concourse::{DROP_IN, ENV_FILE};
use engines::program::INSTALLED;
use host::env_file::EnvFile;
use host::unit::WANTS;
use reconcile::{
    Change, Content, Desired, Effect, Finding, Kind, KindName, Plan, Receipt, Resource, Restarts, Services,
    Stage, Verb,
};

use super::outcome::{Differs, Selected, TagLoss, Why};
use super::scope::{Changes, Request, Rules, Scope};
use super::target::Target;
use super::{Error, Run};

impl Run<'_> {
    /// The plan for the desired state, as far as this run executes it.
    pub(super) fn select(
        &self,
        scope: &Scope,
        request: &Request<'_>,
        target: &Target,
        receipt: &Receipt,
        stage: Option<Stage>,
    ) -> Result<Selected, Error> {
        let plan = self.plan_for(target, request, receipt, stage);
        Ok(match (scope.changes, request) {
            (Changes::OfGpus, _) => self.select_for_boot(target, plan).into(),
            (Changes::Files, Request::Reconcile { rules, .. }) => {
                self.select_for_daemon(rules, target, plan, &target.receipt(receipt, request))
            }
            _ => plan.into(),
        })
    }

    /// Selects the changes that matter to engines and units, which start next.
    fn select_for_boot(&self, target: &Target, mut plan: Plan) -> Plan {
        // An apply reports what is blocked.
        plan.blocked.clear();
        // Without the drop-in that names their file, no unit reads the tags.
        let is_named = plan.changes.iter().all(|change| change.path != Path::new(DROP_IN));
        plan.changes.retain(|change| {
            let is_tags = change.path == Path::new(ENV_FILE) && !is_removal(change);
            let is_read = self.is_of_gpus(change) || change.kind == KindName::Node;
            target.unknown.is_some() || is_read && (!is_tags || is_named)
        });
        plan
    }

    /// Whether a change is to a file that names GPUs to engines or to the wrapper, or to the wrapper's copy, which reads
    /// one of them: such files follow the machine and wait for no apply.
    fn is_of_gpus(&self, change: &Change) -> bool {
        let policy = Path::new(allocation::policy::PATH);
        let those = [&self.config.cdi.path, Path::new(ENV_FILE), policy, Path::new(INSTALLED)];
        change.path.path().is_some_and(|path| those.contains(&path))
    }

    fn select_for_daemon(
        &self,
        rules: &Rules<'_>,
        target: &Target,
        plan: Plan,
        receipt: &Receipt,
    ) -> Selected {
        let action = |path: &Resource| target.desired.actions.iter().find(|action| action.path == *path);
        let component = |path: &Resource| {
            let entry = || receipt.entry(path).map(|entry| entry.component.as_str());
            action(path).map(|action| action.component.as_str()).or_else(entry).unwrap_or_default()
        };
        let tags = self.tag_loss(&target.desired, &plan);
        let keeps_tags = !rules.tags_may_go && tags != TagLoss::NoLoss;
        let mut selected = Selected { tags, ..plan.into() };
        for change in std::mem::take(&mut selected.plan.changes) {
            let (path, component) = (change.path.clone(), component(&change.path));
            let goes = (is_removal(&change) || change.change == Verb::Edit) && action(&path).is_none();
            let why = if !self.is_for_daemon(target, &change, component, goes) {
                Why::Apply
            } else if keeps_tags
                && (component == Component::Concourse.as_ref() || path == Path::new(ENV_FILE))
            {
                selected.tags = TagLoss::Held;
                Why::Settling
            } else if path.path().is_some_and(|path| rules.given_up.contains(path)) {
                let text = "something else keeps setting its group and mode: they are set no more until the node is \
                            made anew, or rocworker.service is restarted";
                selected.plan.contested.push(Finding { path, text: text.to_owned() });
                continue;
            } else if rules.enforce {
                selected.plan.changes.push(change);
                continue;
            } else {
                Why::Reported
            };
            selected.differs.push(Differs { path, why });
        }
        selected
    }

    /// Whether the daemon makes a change by itself. `goes`: it reverts something.
    fn is_for_daemon(&self, target: &Target, change: &Change, component: &str, goes: bool) -> bool {
        let is_file = matches!(change.kind, KindName::Owned | KindName::Edited | KindName::Node);
        // `systemctl disable` is its owner's decision: an apply shows it, and puts it right.
        let is_enabling = change.path.path().is_some_and(|path| path.starts_with(WANTS));
        if !is_file || is_enabling || component == Component::Packages.as_ref() {
            false
        } else if target.has_lost_all {
            // A card that fell off its bus may come back: engines stay as they are configured.
            self.is_of_gpus(change)
        } else {
            // A daemon that reverted its own unit would not hear of a configuration that wants it again. The exporter's
            // link is an apply's to remove.
            !(goes && [Component::Daemon, Component::Exporter].iter().any(|it| component == it.as_ref()))
        }
    }

    /// Whether the worker would have fewer GPUs to offer by this plan.
    fn tag_loss(&self, desired: &Desired, plan: &Plan) -> TagLoss {
        let is_changed = plan.changes.iter().any(|change| change.path == Path::new(ENV_FILE));
        let Some(now) = self.root.read_text(ENV_FILE, 1 << 20).ok().filter(|_| is_changed) else {
            return TagLoss::NoLoss;
        };
        let after = desired.actions.iter().find(|action| action.path == Path::new(ENV_FILE));
        let after = after.and_then(|action| match &action.kind {
            Kind::Owned(Content::File { bytes, .. }) => std::str::from_utf8(bytes).ok(),
            _ => None,
        });
        let tags = |text: &str| EnvFile::parse(text).get(TAGS).unwrap_or_default().to_owned();
        if loses(&tags(&now), &after.map(tags).unwrap_or_default()) { TagLoss::Due } else { TagLoss::NoLoss }
    }

    /// Whether the daemon may execute an effect. `own`: the effects of its changes.
    pub(super) fn may_execute(
        &self,
        rules: &Rules<'_>,
        own: &[Effect],
        tags: TagLoss,
        effect: &Effect,
    ) -> bool {
        match effect {
            Effect::AptUpdate { .. } | Effect::Reboot { .. } => false,
            Effect::Udev { .. } | Effect::SystemdReload | Effect::Start { .. } | Effect::Stop { .. } => true,
            Effect::Reload { .. } | Effect::Restart { .. } | Effect::NextStart { .. } => {
                let may = rules.restarts != Restarts::Never && tags != TagLoss::Held;
                self.programs.is_none() || may || rules.closely || own.contains(effect)
            }
        }
    }

    /// How a run treats units. `own`: the effects of its changes.
    pub(super) fn services_of(
        &self,
        scope: &Scope,
        request: &Request<'_>,
        own: &[Effect],
        receipt: &Receipt,
    ) -> Services<'_> {
        let services = self.services();
        let is_restart =
            |effect: &Effect| matches!(effect, Effect::Restart { .. } | Effect::NextStart { .. });
        match request {
            _ if !scope.restarts => Services { restarts: Restarts::Never, ..services },
            Request::Nothing { .. } => Services { restarts: self.restarts_of_undo(receipt), ..services },
            Request::Reconcile { rules, .. } => {
                // What has just changed may change again: a later look restarts the unit that reads it, once for all.
                let waits = self.config.daemon.settle_s > 0 && own.iter().any(is_restart);
                let restarts = if waits { Restarts::Never } else { rules.restarts };
                // The daemon does not wait for hours: a unit of its own does.
                Services { restarts, drain: Duration::ZERO, ..services }
            }
            _ => services,
        }
    }
}

impl Selected {
    /// Tags that were just taken are no loss to come.
    pub(super) fn forget_loss(&mut self, done: &[Resource]) {
        if done.iter().any(|path| path == Path::new(ENV_FILE)) {
            self.tags = TagLoss::NoLoss;
        }
    }
}

fn is_removal(change: &Change) -> bool {
    matches!(change.change, Verb::Remove | Verb::Restore)
}
