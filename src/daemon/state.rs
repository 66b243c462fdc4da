//! What the daemon knows: which configuration is in force, what was heard and done, what fails and since when.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reconcile::{Outcome as EffectOutcome, Restarts, Verb};
use root::Root;

use super::nodes::Nodes;
use super::reconciler::{By, Done, Order};
use super::report::{ConfigReport, Counts, Failing, Last, Problem, Report, Said, Sources};
use super::scheduler::{Cause, Ended, Scheduler};
use super::tag_grace::{TagGrace, decide_alike};
use super::watch::Watch;
use crate::config;
use crate::memory::{AppliedConfig, Memory};
use crate::run::{ActiveConfig, ConfigFile, Outcome, Stopped};
use crate::timestamp::Timestamp;

/// Where nothing says otherwise.
const INTERVAL: Duration = Duration::from_secs(300);

#[derive(Debug, Default)]
pub struct State {
    config: Arc<ConfigFile>,
    path: PathBuf,
    since: u64,
    /// The last one that says nothing wrong by itself.
    in_force: Option<Arc<config::Config>>,
    /// Why what stands there says something wrong.
    config_problem: Option<String>,
    /// The last one that was followed: here, or before the start.
    last_good: Option<Arc<config::Config>>,
    /// Why the first cannot be followed on this machine: the second is in force then.
    unfit: Option<String>,
    sources: Sources,
    counts: Counts,
    tag_grace: TagGrace,
    nodes: Nodes,
    /// When something was changed that is taken in by a restart, as far as is known: what the one before this has changed
    /// may have been changed just before the start.
    changed: Duration,
    causes: BTreeSet<Cause>,
    last: Option<Last>,
    outcome: Option<Outcome>,
    error: Option<String>,
    failing_since: Option<u64>,
}

fn wall() -> u64 {
    Timestamp::of(SystemTime::now()).seconds()
}

/// Whether an apply, or the daemon before this one, went by this configuration last.
fn was_followed(root: &Root, config: &config::Config) -> bool {
    Memory::read(root).is_ok_and(|memory| memory.config == AppliedConfig::of(root, config))
}

impl State {
    /// `since`: seconds since 1970. Of all other times the start is the beginning.
    pub fn new(config: Arc<ConfigFile>, since: u64) -> Self {
        Self { config, since, ..Self::default() }
    }

    pub fn is_deaf(&mut self, why: String) {
        self.sources.kernel = Some(why);
    }

    pub fn is_blind(&mut self, why: String) {
        self.sources.files = Some(why);
    }

    pub fn heard_kernel(&mut self, events: u64, lost: u64) {
        (self.counts.kernel, self.counts.lost) = (self.counts.kernel + events, self.counts.lost + lost);
    }

    pub fn heard_files(&mut self, events: u64, lost: u64) {
        (self.counts.files, self.counts.lost) = (self.counts.files + events, self.counts.lost + lost);
    }

    /// How often it looks though nothing was heard.
    pub fn interval(&self) -> Duration {
        self.effective().map_or(INTERVAL, |config| Duration::from_secs(config.daemon.interval_s.into()))
    }

    fn effective(&self) -> Option<&Arc<config::Config>> {
        if self.unfit.is_some() { self.last_good.as_ref() } else { self.in_force.as_ref() }
    }

    /// Reads the configuration. While it is wrong, the last good one stays in force.
    pub fn read_config(&mut self, root: &Root) {
        self.path = self.config.path(root);
        match ActiveConfig::of_file(&self.config, root).in_force().map_err(|why| why.to_string()) {
            Ok(config) => {
                if self.config_problem.take().is_some() {
                    tracing::info!("{} is in force again", self.path.display());
                }
                if self.in_force.as_deref() != Some(&config) {
                    self.tag_grace.last(Duration::from_secs(config.daemon.settle_s.into()));
                    let config = Arc::new(config);
                    if self.last_good.is_none() && was_followed(root, &config) {
                        self.last_good = Some(Arc::clone(&config));
                    }
                    self.in_force = Some(config);
                }
            }
            Err(problem) => {
                if self.config_problem.as_ref() != Some(&problem) {
                    let stays = if self.in_force.is_some() {
                        "the last good one stays in force"
                    } else {
                        "nothing is done"
                    };
                    tracing::error!("{problem}; {stays}");
                }
                self.config_problem = Some(problem);
            }
        }
    }

    pub fn order(
        &mut self,
        root: &Root,
        now: Duration,
        causes: BTreeSet<Cause>,
        watch: Option<Watch>,
    ) -> Order {
        let inode = |path: &std::path::Path| root.identity(path).ok().map(|it| it.inode);
        let closely = [Cause::Start, Cause::Timer, Cause::Reload].iter().any(|it| causes.contains(it));
        self.causes = causes;
        let by = |config: &Arc<config::Config>, tags_may_go: bool| By {
            config: Arc::clone(config),
            restarts: self.restarts(config, now),
            tags_may_go,
        };
        let may_go = self.tag_grace.may_go(now);
        let read = match (&self.config_problem, &self.in_force) {
            (None, Some(config)) => Ok(Arc::clone(config)),
            (problem, _) => Err(problem.clone().unwrap_or_default()),
        };
        let last_good = self.last_good.as_ref().filter(|good| self.in_force.as_ref() != Some(good));
        Order {
            read,
            by: self.in_force.as_ref().map(|config| by(config, may_go || self.decides_anew(config))),
            last_good: last_good.map(|config| by(config, may_go)),
            watch,
            closely,
            given_up: self.nodes.given_up(now, inode),
        }
    }

    /// Whether a person has decided something else about tags than what was followed until now.
    fn decides_anew(&self, config: &config::Config) -> bool {
        self.last_good.as_ref().is_none_or(|good| !decide_alike(good, config))
    }

    /// What may be done with units now: one that is to be restarted waits until what it reads has stopped changing.
    fn restarts(&self, config: &config::Config, now: Duration) -> Restarts {
        let may = config.daemon.restart;
        if self.quiet_from().is_some_and(|from| from > now) { Restarts::Never } else { may }
    }

    /// From when on nothing that units read has changed for long enough.
    fn quiet_from(&self) -> Option<Duration> {
        Some(self.changed + Duration::from_secs(self.effective()?.daemon.settle_s.into()))
    }

    pub fn looked(&mut self, root: &Root, now: Duration, done: Done) -> Ended {
        let Done { watch, unwatched, again: _, receipt: _, outcome, unfit, took } = done;
        if let Some(problem) = unwatched {
            self.is_blind(problem);
        } else if watch.is_some() {
            self.sources.files = None;
        }
        self.counts.looks += 1;
        let mut changed = Vec::new();
        match outcome {
            // Nothing was done, and how it stands is what was known before.
            Ok(Outcome { stopped: Some(Stopped::Superseded), .. }) => {}
            Ok(outcome) => {
                if unfit.is_none() {
                    let is_good =
                        outcome.is_set_up() && outcome.stopped.is_none() && outcome.problem.is_none();
                    self.last_good = self.in_force.clone().filter(|_| is_good).or(self.last_good.take());
                }
                self.unfit = unfit;
                self.tag_grace.saw(now, outcome.is_lost, outcome.is_held);
                for change in &outcome.changes {
                    if change.change == Verb::Permissions
                        && let Some(path) = change.path.path()
                        && let Ok(identity) = root.identity(path)
                    {
                        self.nodes.was_set(path, identity.inode, now);
                    }
                }
                if outcome.changes.iter().any(|change| !change.effects.is_empty()) {
                    self.changed = now;
                }
                changed.extend(outcome.changes.iter().map(|change| change.path.clone()));
                for finding in &outcome.failed {
                    tracing::error!("{}: {}", finding.path.display(), finding.text);
                }
                (self.outcome, self.error) = (Some(outcome), None);
            }
            Err(error) => {
                tracing::error!("{error}");
                self.error = Some(error);
            }
        }
        self.counts.changes += u64::try_from(changed.len()).unwrap_or(u64::MAX);
        self.last = Some(Last {
            at: wall(),
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            causes: std::mem::take(&mut self.causes),
            changed,
        });
        let failed = self.error.is_some() || self.outcome.as_ref().is_some_and(Outcome::has_failed);
        self.failing_since = failed.then(|| self.failing_since.unwrap_or_else(wall));
        Ended { failed, settles: self.settles(now) }
    }

    /// When something is due that waits for quiet.
    fn settles(&self, now: Duration) -> Option<Duration> {
        let restarts = self.effective().is_some_and(|config| config.daemon.restart != Restarts::Never);
        let is_owed = restarts && self.outcome.as_ref().is_some_and(|outcome| !outcome.pending.is_empty());
        let quiet = self.quiet_from().filter(|_| is_owed);
        // What is due already and could not be done is tried again with all that fails.
        [self.tag_grace.ends(), quiet].into_iter().flatten().filter(|from| *from > now).min()
    }

    /// Whether an apply has set this machine up, and no undo has taken it back since, as far as that was looked at.
    pub fn is_set_up(&self) -> Option<bool> {
        self.outcome.as_ref().filter(|_| self.in_force.is_some()).map(|outcome| outcome.is_set_up())
    }

    pub fn report(&self, now: Duration, scheduler: &Scheduler) -> Report {
        let outcome = self.outcome.as_ref();
        let daemon = self.effective().map(|config| config.daemon);
        let other = outcome.and_then(|outcome| match &outcome.stopped {
            Some(Stopped::Other(why)) => Some(why),
            _ => None,
        });
        let problem = self.config_problem.as_ref().or(self.unfit.as_ref()).or(other);
        let problems = outcome.iter().flat_map(|outcome| &outcome.notes).filter(|note| note.problem);
        let clock = |at: Duration| wall() + at.saturating_sub(now).as_secs();
        let said =
            |findings: &[reconcile::Finding]| findings.iter().cloned().map(Said::from).collect::<Vec<_>>();
        let failing = self.failing_since.map(|since| {
            let (times, again) = scheduler.failing().unwrap_or_default();
            Failing { since, times, again: again.map(clock), what: self.failures() }
        });
        Report {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since: self.since,
            enforce: daemon.is_some_and(|it| it.enforce),
            restart: daemon.map_or(Restarts::Never, |it| it.restart),
            set_up: self.is_set_up(),
            config: ConfigReport {
                path: self.path.clone(),
                problem: problem.cloned(),
                in_force: self.effective().is_some() && other.is_none(),
            },
            sources: self.sources.clone(),
            counts: self.counts,
            last: self.last.clone(),
            failing,
            contested: outcome.map(|outcome| said(&outcome.contested)).unwrap_or_default(),
            blocked: outcome.map(|outcome| said(&outcome.blocked)).unwrap_or_default(),
            left: outcome.map(|outcome| said(&outcome.left)).unwrap_or_default(),
            differs: outcome.map(|outcome| outcome.differs.clone()).unwrap_or_default(),
            tags_held_until: self.tag_grace.ends().map(clock),
            pending: outcome.map(|outcome| outcome.pending.clone()).unwrap_or_default(),
            problems: problems
                .map(|note| Problem { about: note.about.clone(), text: note.text.clone() })
                .collect(),
        }
    }

    fn failures(&self) -> Vec<Said> {
        let whole = |text: &String| Said { path: None, text: text.clone() };
        let mut what: Vec<Said> = self.error.iter().map(whole).collect();
        if let Some(outcome) = self.outcome.as_ref().filter(|_| self.error.is_none()) {
            what.extend(outcome.problem.iter().map(|problem| whole(&problem.to_string())));
            what.extend(outcome.failed.iter().cloned().map(Said::from));
            let failed = outcome.effects.iter().filter(|effect| effect.outcome == EffectOutcome::Failed);
            what.extend(failed.map(|effect| whole(&effect.text)));
        }
        what
    }
}
