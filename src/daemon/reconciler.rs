//! The thread that waits for an event or a time, looks at the machine, reconciles it and publishes how it is.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use config::{Config, Kubernetes};
use host::timestamp::Timestamp;
use reconcile::command::Programs;
use reconcile::{Progress, Restarts, Verb};
use root::{Identity, Place, Root};

use super::build::Build;
use super::nodes::Nodes;
use super::partitions::Partitions;
use super::places::{places, receipt};
use super::report::{Failing, Last, Problem, Report};
use super::scheduler::{Cause, Ended, Scheduler};
use super::tag_grace::{TagGrace, decide_alike};
use super::uevent::Netlink;
use super::wake::{has_byte, wait};
use super::watch::{Heard, Watch};
use crate::memory::{AppliedConfig, Memory};
use crate::run::{ConfigFile, Outcome, Own, Rules, Run, Stopped};

/// The time between two looks where no configuration is in force.
const INTERVAL: Duration = Duration::from_secs(300);

/// How often KFD's generation is read: no event announces that a card has other partitions.
const GLANCE: Duration = Duration::from_millis(500);

/// How the reconciler's thread and the main thread reach each other.
#[derive(Debug)]
pub struct Link {
    pub published: Sender<Published>,
    /// Wakes the main thread; a byte from there is a reload, or the end.
    pub line: UnixStream,
    /// Set when the daemon ends: then no further change begins, and no program is waited for.
    pub is_ending: Arc<AtomicBool>,
}

#[derive(Debug)]
pub struct Published {
    pub report: Report,
    /// What labels of a Kubernetes node name; `None` while no configuration is in force.
    pub kubernetes: Option<Kubernetes>,
    /// When the look that still runs began.
    pub looks: Option<Instant>,
}

#[derive(Debug)]
pub struct Reconciler {
    root: Arc<Root>,
    file: ConfigFile,
    caller: String,
    link: Link,
    build: Option<Build>,
    began: Instant,
    netlink: Option<Netlink>,
    watch: Option<Watch>,
    /// The paths that are watched.
    places: BTreeSet<PathBuf>,
    scheduler: Scheduler,
    /// Reads in this process, without the root's [`root::Reader`], for what is read twice a second and never waits.
    direct: Option<Root>,
    /// KFD's generation; `None` where it has none.
    generation: Option<u64>,
    report: Report,
    /// The configuration file's content at the last look, or why it is wrong.
    read: Option<Result<Config, String>>,
    /// The configuration of the last look: the file's, or the last good one.
    in_force: Option<Config>,
    /// The last configuration that a run followed: a look's, or that of a run before the daemon's start.
    last_good: Option<Config>,
    /// The identity of the receipt that the last look left or found.
    receipt: Option<Identity>,
    tag_grace: TagGrace,
    nodes: Nodes,
    partitions: Partitions,
    /// When a run changed something that takes a restart to be in force. The start counts as one: the daemon before
    /// this one may have changed it just then.
    changed: Duration,
}

impl Reconciler {
    pub fn new(root: Arc<Root>, file: ConfigFile, caller: String, link: Link) -> Self {
        let mut report = Report::new(wall(), file.path(&root));
        let sources = &mut report.sources;
        // Beneath another Root the kernel's devices are another machine's.
        let netlink = if root.is_host() {
            let deaf = |errno| sources.kernel = Some(format!("the kernel's events cannot be heard: {errno}"));
            Netlink::open().map_err(deaf).ok()
        } else {
            let why = "the kernel's events are not this machine's beneath another root than /";
            sources.kernel = Some(why.to_owned());
            None
        };
        let blind = |errno| sources.files = Some(format!("files cannot be watched: {errno}"));
        let watch = Watch::new().map_err(blind).ok();
        let mut reconciler = Self {
            places: BTreeSet::new(),
            root: Arc::clone(&root),
            file,
            caller,
            link,
            build: Build::running(),
            began: Instant::now(),
            netlink,
            watch,
            scheduler: Scheduler::at_start(),
            direct: Place::from(root.place().path().to_owned()).open().ok(),
            generation: None,
            report,
            read: None,
            in_force: None,
            last_good: None,
            receipt: None,
            tag_grace: TagGrace::default(),
            nodes: Nodes::default(),
            partitions: Partitions::default(),
            changed: Duration::ZERO,
        };
        reconciler.places = places(&root, reconciler.read(&root).ok().as_ref());
        // What is written to the configuration from here on has an event.
        reconciler.follow(&root);
        reconciler.generation = reconciler.generation();
        reconciler
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Runs until the main thread ends it.
    pub fn run(mut self) -> anyhow::Result<()> {
        loop {
            if let Some(causes) = self.scheduler.begin(self.now()) {
                if let Some(path) = self.build.as_ref().and_then(Build::replaced) {
                    bail!(
                        "{} is another build of this program by now: this one changes nothing more and ends, so that the \
                         new one begins",
                        path.display()
                    );
                }
                self.publish(Some(Instant::now()));
                self.look(causes);
                self.publish(None);
                if self.is_forsaken() {
                    return Ok(());
                }
            }
            let fds = [self.link.line.as_fd()].into_iter();
            let fds = fds.chain(self.netlink.iter().map(|it| it.as_fd()));
            let fds = fds.chain(self.watch.iter().map(|it| it.as_fd()));
            let left = self.scheduler.next().saturating_sub(self.now());
            let left = if self.generation.is_some() { left.min(GLANCE) } else { left };
            let has_heard = wait(fds, Some(left)).context("cannot wait for events")?;
            if self.link.is_ending.load(Ordering::Relaxed) {
                return Ok(());
            }
            if has_heard {
                self.hear()?;
            }
            self.glance();
        }
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn generation(&self) -> Option<u64> {
        amdgpu::topology_generation(self.direct.as_ref()?).ok()
    }

    fn publish(&self, looks: Option<Instant>) {
        self.link
            .published
            .send(Published {
                report: self.report.clone(),
                kubernetes: self.in_force.as_ref().map(|config| config.kubernetes.clone()),
                looks,
            })
            .ok();
        // A socket that is full wakes as well.
        (&self.link.line).write_all(&[1]).ok();
    }

    /// Whether its program has gone and the machine is not set up: this process would only hinder a later one.
    fn is_forsaken(&self) -> bool {
        let is_set_up = self.report.set_up != Some(false);
        let gone = self.build.as_ref().filter(|_| !is_set_up).and_then(Build::gone);
        if let Some(path) = gone {
            tracing::info!("{} has gone, and nothing here is rocworker's: this one ends", path.display());
        }
        gone.is_some()
    }

    /// Reads the events that have come.
    fn hear(&mut self) -> anyhow::Result<()> {
        let before = self.report.counts;
        if has_byte(&self.link.line) == Some(true) {
            self.scheduler.heard(self.now(), Cause::Reload);
        }
        match self.netlink.as_ref().map(Netlink::read) {
            Some(Ok(heard)) => self.count(Cause::Kernel, heard),
            Some(Err(errno)) => {
                self.report.sources.kernel = Some(format!("the kernel's events are heard no more: {errno}"));
                self.netlink = None;
                self.scheduler.heard(self.now(), Cause::Lost);
            }
            None => {}
        }
        if let Some(watch) = &self.watch {
            let mut heard = watch.read().context("cannot read what has changed")?;
            // What a look has written itself is no reason for another: what fails would be tried without end.
            if heard.receipt > 0 && self.receipt == receipt(&self.root) {
                heard.events -= heard.receipt;
            }
            self.count(Cause::Files, heard);
        }
        if self.report.counts != before {
            self.publish(None);
        }
        Ok(())
    }

    /// Looks whether cards have other partitions. That the driver comes and goes the kernel announces.
    fn glance(&mut self) {
        let generation = self.generation();
        if generation.is_some() && self.generation.is_some() && generation != self.generation {
            self.scheduler.heard(self.now(), Cause::Topology);
        }
        self.generation = generation;
    }

    fn count(&mut self, cause: Cause, heard: Heard) {
        let (now, counts) = (self.now(), &mut self.report.counts);
        *(if cause == Cause::Kernel { &mut counts.kernel } else { &mut counts.files }) += heard.events;
        counts.lost += heard.lost;
        if heard.events > 0 {
            self.scheduler.heard(now, cause);
        }
        if heard.lost > 0 {
            self.scheduler.heard(now, Cause::Lost);
        }
    }

    /// Looks at the machine once, and keeps the outcome in the report.
    fn look(&mut self, causes: BTreeSet<Cause>) {
        let (began, at) = (self.now(), Instant::now());
        let closely = [Cause::Start, Cause::Timer, Cause::Reload].iter().any(|it| causes.contains(it));
        // Opening a Root reads the record of a captured machine's nodes.
        let root = self.root.place().open().map_err(|error| error.to_string());
        self.root.ask_again();
        let outcome = root.and_then(|root| self.reconcile(&root, began, closely));
        let now = self.now();
        let mut changed = Vec::new();
        let failures = match outcome {
            // Nothing was done: what was known before still holds.
            Ok(Outcome { stopped: Some(Stopped::Superseded), .. }) => {
                self.report.failing.as_ref().map(|failing| failing.what.clone()).unwrap_or_default()
            }
            Ok(outcome) => {
                self.tag_grace.saw(now, outcome.tags);
                if outcome.changes.iter().any(|change| !change.effects.is_empty()) {
                    self.changed = now;
                }
                changed.extend(outcome.changes.iter().map(|change| change.path.clone()));
                self.report.note(outcome)
            }
            Err(error) => {
                tracing::error!("{error}");
                vec![error.into()]
            }
        };
        self.look_at_modes(now);
        let daemon = self.in_force.as_ref().map(|config| config.daemon);
        let lasting = daemon.map(|daemon| daemon.settle()).unwrap_or_default();
        let tags = self.tag_grace.ends(lasting);
        let restarts =
            daemon.is_some_and(|it| it.restart != Restarts::Never) && !self.report.pending.is_empty();
        self.scheduler.ended(Ended {
            began,
            now,
            failed: !failures.is_empty(),
            settled: [tags, restarts.then(|| self.changed + lasting)],
            interval: daemon.map_or(INTERVAL, |daemon| daemon.interval()),
        });
        let clock = |at: Duration| wall() + at.saturating_sub(now).as_secs();
        let report = &mut self.report;
        report.enforce = daemon.map(|it| it.enforce);
        report.restart = daemon.map(|it| it.restart);
        report.counts.looks += 1;
        report.counts.changes += u64::try_from(changed.len()).unwrap_or(u64::MAX);
        report.tags_held_until = tags.map(clock);
        let since = report.failing.as_ref().map_or_else(wall, |failing| failing.since);
        report.failing = self.scheduler.failing().map(|(times, again)| Failing {
            since,
            times,
            again: Some(clock(again)),
            what: failures,
        });
        let took_ms = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
        report.last = Some(Last { at: wall(), took_ms, causes, changed });
    }

    /// Puts into the report how cards differ from their modes, and repairs what the configuration has repaired.
    fn look_at_modes(&mut self, now: Duration) {
        const ABOUT: &str = "partitions";
        self.report.problems.retain(|it| it.about != ABOUT);
        let Some(config) = self.in_force.clone().filter(|_| self.report.set_up == Some(true)) else { return };
        let programs = self.programs(&self.root);
        let root = Arc::clone(&self.root);
        let run = self.run_with(&root, &config, programs.as_ref());
        let found = self.partitions.look(&run, now, config.daemon.interval());
        let problems = found.into_iter().map(|text| Problem { about: ABOUT.to_owned(), text });
        self.report.problems.extend(problems);
    }

    fn follow(&mut self, root: &Root) {
        if let Some(watch) = &mut self.watch {
            self.report.sources.files = watch.follow(root, &self.places).err();
        }
    }

    fn read(&self, root: &Root) -> Result<Config, String> {
        self.file.unless_emptied(root).map_err(|why| why.to_string())
    }

    /// Reads the configuration, and logs what is new about it.
    fn read_config(&mut self, root: &Root) -> Result<Config, String> {
        let read = self.read(root);
        if self.read.as_ref() == Some(&read) {
            return read;
        }
        match &read {
            Ok(config) => {
                if let Some(Err(_)) = self.read {
                    tracing::info!("{} is in force again", self.report.config.path.display());
                }
                config.unused_variables.iter().for_each(|text| tracing::info!("{text}"));
                if self.last_good.is_none() && was_followed(root, config) {
                    self.last_good = Some(config.clone());
                }
            }
            Err(problem) => {
                let is_known = self.in_force.is_some();
                let stays = if is_known { "the last good one stays in force" } else { "nothing is done" };
                tracing::error!("{problem}; {stays}");
            }
        }
        self.read = Some(read.clone());
        read
    }

    /// Reconciles the machine with the file's configuration, or with the last good one where that cannot be.
    fn reconcile(&mut self, root: &Root, now: Duration, closely: bool) -> Result<Outcome, String> {
        let read = self.read_config(root);
        let newest = read.clone().ok().or_else(|| self.in_force.clone());
        // Folders are watched before they are read.
        self.follow(root);
        let inode = |path: &Path| root.identity(path).ok().map(|it| it.inode);
        let given_up = self.nodes.given_up(now, inode);
        let is_current = || {
            let is_replaced = self.build.as_ref().is_some_and(|build| build.replaced().is_some());
            !is_replaced && self.read(root) == read
        };
        let by = |config: &Config| {
            let daemon = config.daemon;
            // A person's decision about tags does not wait.
            let decides_anew = self.last_good.as_ref().is_none_or(|good| !decide_alike(good, config));
            // A unit that is to be restarted waits until what it reads has stopped changing.
            let may_restart = self.changed + daemon.settle() <= now;
            let rules = Rules {
                enforce: daemon.enforce,
                restarts: if may_restart { daemon.restart } else { Restarts::Never },
                closely,
                tags_may_go: decides_anew || self.tag_grace.may_go(now, daemon.settle()),
                given_up: &given_up,
            };
            self.run_by(root, config, &rules, &is_current)
        };
        let mut in_force = newest.clone();
        let mut outcome = in_force.as_ref().map_or_else(|| Ok(Outcome::default()), by);
        let mut problem = read.as_ref().err().cloned();
        if let Ok(Outcome { stopped: Some(Stopped::Unfit(why)), .. }) = &outcome {
            problem = problem.or(Some(why.clone()));
            in_force.clone_from(&self.last_good);
            outcome = in_force.as_ref().map_or(outcome, by);
        }
        let is_superseded =
            outcome.as_ref().is_ok_and(|outcome| outcome.stopped == Some(Stopped::Superseded));
        if !is_superseded {
            let other = outcome.as_ref().ok().and_then(|outcome| match &outcome.stopped {
                Some(Stopped::Other(why)) => Some(why.clone()),
                _ => None,
            });
            let config = &mut self.report.config;
            config.in_force = in_force.is_some() && other.is_none();
            config.problem = problem.or(other);
            if let Ok(outcome) = &outcome {
                if outcome.state.is_applied() && outcome.stopped.is_none() && outcome.problem.is_none() {
                    self.last_good.clone_from(&in_force);
                }
                self.report.set_up = newest.as_ref().map(|_| outcome.state.is_applied());
                let nodes = outcome.changes.iter().filter(|change| change.change == Verb::Permissions);
                for path in nodes.filter_map(|change| change.path.path()) {
                    if let Some(inode) = inode(path) {
                        self.nodes.was_set(path, inode, self.now());
                    }
                }
            }
            self.in_force = in_force;
        }
        // The identity is taken before `places` reads the receipt: a receipt that is written in between counts as new.
        self.receipt = receipt(root);
        let places = places(root, newest.as_ref());
        let was_watched = places == self.places;
        if !was_watched {
            self.places = places;
            self.follow(root);
        }
        // What changed meanwhile where the daemon did not watch had no event.
        if is_superseded || !was_watched {
            self.scheduler.heard(self.now(), Cause::Files);
        }
        outcome
    }

    fn programs(&self, root: &Root) -> Option<Programs> {
        Programs::of(root).map(|it| it.interrupted_by(Arc::clone(&self.link.is_ending)))
    }

    fn run_with<'r>(&self, root: &'r Root, config: &'r Config, programs: Option<&'r Programs>) -> Run<'r> {
        let (now, caller) = (Timestamp::of(SystemTime::now()), self.caller.clone());
        Run { root, config, programs, own: Own::find(), now, caller }
    }

    fn run_by(
        &self,
        root: &Root,
        config: &Config,
        rules: &Rules<'_>,
        is_current: &dyn Fn() -> bool,
    ) -> Result<Outcome, String> {
        let programs = self.programs(root);
        let run = self.run_with(root, config, programs.as_ref());
        let mut on_progress = |progress: Progress<'_>| {
            // The main thread ends the process. The receipt has what was done, as if it were killed here.
            while self.link.is_ending.load(Ordering::Relaxed) {
                std::thread::park();
            }
            match progress {
                Progress::Begins(change) => tracing::info!("{}: {}", change.path.display(), change.reason),
                Progress::Settles(effect) => tracing::info!("{effect}"),
                Progress::Waits(text) => tracing::info!("{text}"),
                Progress::Comes(..) | Progress::Made(_) => {}
            }
        };
        run.reconcile(rules, is_current, &mut on_progress).map_err(|error| error.to_string())
    }
}

/// Seconds since 1970.
fn wall() -> u64 {
    Timestamp::of(SystemTime::now()).seconds()
}

/// Whether an apply, or the daemon before this one, followed this configuration last.
fn was_followed(root: &Root, config: &Config) -> bool {
    Memory::read(root).is_ok_and(|memory| memory.config == AppliedConfig::of(root, config))
}
