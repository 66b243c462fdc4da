//! What the daemon knows: which configuration is in force, what was heard and done, what fails and since when.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reconcile::{Outcome, Restarts, Verb};
use root::Root;

use super::agenda::{Agenda, Cause, Ended};
use super::hold::{Hold, decide_alike};
use super::keeper::{By, Done, Order};
use super::nodes::Nodes;
use super::report::{ConfigReport, Counts, Failing, Last, Problem, Report, Said, Sources};
use super::watch::Watch;
use crate::config::{self, ClusterBloom, Restart};
use crate::memory::{Followed, Memory};
use crate::moment::Moment;
use crate::setup::{Kept, Stopped, emptied};

/// Where nothing says otherwise.
const INTERVAL: Duration = Duration::from_secs(300);

/// Where the configuration is.
#[derive(Debug)]
pub struct Config {
    /// `--config`, a path of the machine that the program runs on, with that machine.
    pub file: Option<(Root, PathBuf)>,
    pub environment: ClusterBloom,
}

impl Config {
    /// # Errors
    /// In a sentence, when it cannot be read or is wrong, or says nothing where it did when it was followed.
    pub fn read(&self, root: &Root) -> Result<config::Config, String> {
        let read = match &self.file {
            None => config::Config::read(root),
            Some((caller, path)) => config::Config::read_file(caller, path),
        };
        let (config, _unused) = read.map_err(|error| error.to_string())?.beside(&self.environment)?;
        emptied(root, &config).map_or(Ok(config), Err)
    }

    fn path(&self, root: &Root) -> PathBuf {
        self.file.as_ref().map_or_else(|| root.shown(config::PATH), |(_, path)| path.clone())
    }
}

#[derive(Debug)]
pub struct State {
    config: Arc<Config>,
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
    hold: Hold,
    nodes: Nodes,
    /// When something was changed that is taken in by a restart, as far as is known: what the one before this has changed
    /// may have been changed just before the start.
    changed: Duration,
    causes: BTreeSet<Cause>,
    last: Option<Last>,
    kept: Option<Kept>,
    error: Option<String>,
    failing_since: Option<u64>,
}

fn wall() -> u64 {
    Moment::of(SystemTime::now()).seconds()
}

/// Whether an apply, or the daemon before this one, went by this configuration last.
fn was_followed(root: &Root, config: &config::Config) -> bool {
    Memory::read(root).is_ok_and(|memory| memory.config == Followed::of(root, config))
}

impl State {
    /// `since`: seconds since 1970. Of all other times the start is the beginning.
    #[must_use]
    pub fn new(config: Arc<Config>, since: u64) -> Self {
        Self {
            config,
            path: PathBuf::new(),
            since,
            in_force: None,
            config_problem: None,
            last_good: None,
            unfit: None,
            sources: Sources::default(),
            counts: Counts::default(),
            hold: Hold::new(Duration::ZERO),
            nodes: Nodes::default(),
            changed: Duration::ZERO,
            causes: BTreeSet::new(),
            last: None,
            kept: None,
            error: None,
            failing_since: None,
        }
    }

    /// The kernel's events are not heard, for this reason.
    pub fn is_deaf(&mut self, why: String) {
        self.sources.kernel = Some(why);
    }

    /// Files are not watched, for this reason.
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
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.effective().map_or(INTERVAL, |config| config.daemon.interval)
    }

    /// The configuration that is in force.
    fn effective(&self) -> Option<&Arc<config::Config>> {
        if self.unfit.is_some() { self.last_good.as_ref() } else { self.in_force.as_ref() }
    }

    /// Reads the configuration. While it is wrong, the last good one stays in force.
    pub fn read_config(&mut self, root: &Root) {
        self.path = self.config.path(root);
        match self.config.read(root) {
            Ok(config) => {
                if self.config_problem.take().is_some() {
                    tracing::info!("{} is in force again", self.path.display());
                }
                if self.in_force.as_deref() != Some(&config) {
                    self.hold.last(config.daemon.settle);
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

    /// A look that begins now.
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
        let may_go = self.hold.may_go(now);
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
        let may = config.daemon.restart.into();
        if self.quiet_from().is_some_and(|from| from > now) { Restarts::Never } else { may }
    }

    /// From when on nothing that units read has changed for long enough.
    fn quiet_from(&self) -> Option<Duration> {
        Some(self.changed + self.effective()?.daemon.settle)
    }

    /// A look has come to its end.
    pub fn looked(&mut self, root: &Root, now: Duration, done: Done) -> Ended {
        let Done { watch, unwatched, again: _, receipt: _, kept, unfit, took } = done;
        if let Some(problem) = unwatched {
            self.is_blind(problem);
        } else if watch.is_some() {
            self.sources.files = None;
        }
        self.counts.looks += 1;
        let mut changed = Vec::new();
        match kept {
            // Nothing was done, and how it stands is what was known before.
            Ok(Kept { stopped: Some(Stopped::Superseded), .. }) => {}
            Ok(kept) => {
                if unfit.is_none() {
                    let is_good = kept.is_set_up && kept.stopped.is_none() && kept.problem.is_none();
                    self.last_good = self.in_force.clone().filter(|_| is_good).or(self.last_good.take());
                }
                self.unfit = unfit;
                self.hold.saw(now, kept.is_lost, kept.is_held);
                for change in &kept.changes {
                    if change.change == Verb::Permissions
                        && let Some(path) = change.path.path()
                        && let Ok(identity) = root.identity(path)
                    {
                        self.nodes.was_set(path, identity.inode, now);
                    }
                }
                if kept.changes.iter().any(|change| !change.effects.is_empty()) {
                    self.changed = now;
                }
                changed.extend(kept.changes.iter().map(|change| change.path.clone()));
                for finding in &kept.failed {
                    tracing::error!("{}: {}", finding.path.display(), finding.text);
                }
                (self.kept, self.error) = (Some(kept), None);
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
        let failed = self.error.is_some() || self.kept.as_ref().is_some_and(Kept::has_failed);
        self.failing_since = failed.then(|| self.failing_since.unwrap_or_else(wall));
        Ended { failed, settles: self.settles(now) }
    }

    /// When something is due that waits for quiet.
    fn settles(&self, now: Duration) -> Option<Duration> {
        let restarts = self.effective().is_some_and(|config| config.daemon.restart != Restart::Never);
        let is_owed = restarts && self.kept.as_ref().is_some_and(|kept| !kept.pending.is_empty());
        let quiet = self.quiet_from().filter(|_| is_owed);
        // What is due already and could not be done is tried again with all that fails.
        [self.hold.ends(), quiet].into_iter().flatten().filter(|from| *from > now).min()
    }

    /// Whether an apply has set this machine up, and no undo has taken it back since, as far as that was looked at.
    #[must_use]
    pub fn is_set_up(&self) -> Option<bool> {
        self.kept.as_ref().filter(|_| self.in_force.is_some()).map(|kept| kept.is_set_up)
    }

    /// How it stands.
    #[must_use]
    pub fn report(&self, now: Duration, agenda: &Agenda) -> Report {
        let kept = self.kept.as_ref();
        let daemon = self.effective().map(|config| config.daemon);
        let other = kept.and_then(|kept| match &kept.stopped {
            Some(Stopped::Other(why)) => Some(why),
            _ => None,
        });
        let problem = self.config_problem.as_ref().or(self.unfit.as_ref()).or(other);
        let problems = kept.iter().flat_map(|kept| &kept.notes).filter(|note| note.problem);
        let clock = |at: Duration| wall() + at.saturating_sub(now).as_secs();
        let said =
            |findings: &[reconcile::Finding]| findings.iter().cloned().map(Said::from).collect::<Vec<_>>();
        let failing = self.failing_since.map(|since| {
            let (times, again) = agenda.failing().unwrap_or_default();
            Failing { since, times, again: again.map(clock), what: self.failures() }
        });
        Report {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since: self.since,
            enforce: daemon.is_some_and(|it| it.enforce),
            restart: daemon.map_or(Restarts::Never, |it| it.restart.into()),
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
            contested: kept.map(|kept| said(&kept.contested)).unwrap_or_default(),
            blocked: kept.map(|kept| said(&kept.blocked)).unwrap_or_default(),
            left: kept.map(|kept| said(&kept.left)).unwrap_or_default(),
            differs: kept.map(|kept| kept.differs.clone()).unwrap_or_default(),
            tags_held_until: self.hold.ends().map(clock),
            pending: kept.map(|kept| kept.pending.clone()).unwrap_or_default(),
            problems: problems
                .map(|note| Problem { about: note.about.clone(), text: note.text.clone() })
                .collect(),
        }
    }

    fn failures(&self) -> Vec<Said> {
        let whole = |text: &String| Said { path: None, text: text.clone() };
        let mut what: Vec<Said> = self.error.iter().map(whole).collect();
        if let Some(kept) = self.kept.as_ref().filter(|_| self.error.is_none()) {
            what.extend(kept.problem.iter().map(whole));
            what.extend(kept.failed.iter().cloned().map(Said::from));
            let failed = kept.effects.iter().filter(|effect| effect.outcome == Outcome::Failed);
            what.extend(failed.map(|effect| whole(&effect.text)));
        }
        what
    }
}
