//! The process: holds the machine's lock, answers `status`, hears signals and reports to systemd. The reconciler's
//! thread waits and looks meanwhile.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use root::Root;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::claim::Claim;
use super::exporter::Drifting;
use super::features::Followed;
use super::publisher::Publisher;
use super::reconciler::{Link, Published, Reconciler};
use super::report::Report;
use super::socket::{self, Clients};
use super::wake::{has_byte, pair, wait};
use super::{exporter, features, health};
use crate::run::{ConfigFile, State};

/// A daemon that gets SIGTERM ends within a second, also in the middle of a look.
const END: Duration = Duration::from_millis(800);

/// A look that takes longer hangs: systemd gets no more `WATCHDOG=1`.
const LONGEST_LOOK: Duration = Duration::from_secs(600);

/// Serves until SIGTERM or SIGINT. `caller`: who serves, for the history.
///
/// # Errors
/// Another daemon runs, another build of this program has come, or the kernel refuses something.
pub fn serve(root: Root, config: ConfigFile, caller: String) -> anyhow::Result<()> {
    let mut daemon = Daemon::start(root, config, caller)?;
    let ended = match daemon.run() {
        Ok(true) => {
            let lost = |_| Err(anyhow!("cannot look at the machine: the reconciler's thread panicked"));
            daemon.thread.join().unwrap_or_else(lost)
        }
        other => other.map(drop),
    };
    if let Err(error) = &ended {
        notify(&[NotifyState::Status(&one_line(&format!("{error:#}")))]);
    }
    notify(&[NotifyState::Stopping, NotifyState::Status("ending")]);
    daemon.exporter.leave(&daemon.root);
    // The next daemon begins with what this one has judged: a quarantine outlives it.
    daemon.health.end();
    // Labels that come and go with each start of the daemon would move pods.
    match is_set_up(&daemon.root) {
        true => daemon.features.end(),
        false => daemon.features.leave(&daemon.root),
    }
    daemon.claim.leave(&daemon.root);
    ended
}

struct Daemon {
    root: Arc<Root>,
    claim: Claim,
    clients: Clients,
    /// A byte for each signal to end, and to reload.
    ends: UnixStream,
    reloads: UnixStream,
    thread: JoinHandle<anyhow::Result<()>>,
    /// Wakes the reconciler, and is woken by it; closed once its thread has ended.
    line: UnixStream,
    published: Receiver<Published>,
    exporter: Publisher<Drifting>,
    health: Publisher<()>,
    features: Publisher<Followed>,
    is_ending: Arc<AtomicBool>,
    report: Report,
    /// When the look that still runs began.
    looks: Option<Instant>,
    /// The status that systemd shows.
    shown: String,
}

impl Daemon {
    fn start(root: Root, config: ConfigFile, caller: String) -> anyhow::Result<Self> {
        let claim = Claim::stake(&root)?;
        let root = Arc::new(root);
        let ends = on(&[SIGTERM, SIGINT]).context("cannot hear signals")?;
        let reloads = on(&[SIGHUP]).context("cannot hear signals")?;
        // What protects comes first: neither a look nor a wrong configuration keeps it.
        let health = health::publisher(Arc::clone(&root)).context("cannot start a thread")?;
        health.set(is_set_up(&root).then_some(()));
        let (line, other) = pair().context("cannot make a pair of sockets")?;
        let (publishes, published) = channel();
        let is_ending = Arc::new(AtomicBool::new(false));
        let link = Link { published: publishes, line: other, is_ending: Arc::clone(&is_ending) };
        let reconciler = Reconciler::new(Arc::clone(&root), config, caller, link);
        let report = reconciler.report().clone();
        let shown = report.sentence();
        let thread = std::thread::Builder::new().name("reconciler".to_owned());
        let thread = thread.spawn(move || reconciler.run()).context("cannot start a thread")?;
        let exporter = exporter::publisher(Arc::clone(&root)).context("cannot start a thread")?;
        let features = features::publisher(Arc::clone(&root)).context("cannot start a thread")?;
        Ok(Self {
            root,
            claim,
            clients: Clients::new(),
            ends,
            reloads,
            thread,
            line,
            published,
            exporter,
            health,
            features,
            is_ending,
            report,
            looks: None,
            shown,
        })
    }

    /// Whether the reconciler has ended by itself.
    fn run(&mut self) -> anyhow::Result<bool> {
        notify(&[NotifyState::Ready, NotifyState::Status(&one_line(&self.shown))]);
        let watchdog = sd_notify::watchdog_enabled().map(|limit| limit / 2).filter(|half| !half.is_zero());
        let mut ping = Instant::now();
        let mut until: Option<Instant> = None;
        loop {
            let now = Instant::now();
            if let Some(interval) = watchdog
                && ping <= now
            {
                if self.looks.is_none_or(|since| now.saturating_duration_since(since) < LONGEST_LOOK) {
                    notify(&[NotifyState::Watchdog]);
                }
                ping = now + interval;
            }
            let ping = watchdog.map(|_| ping);
            let again = Some(now + self.claim.again());
            let next = [ping, again, until].into_iter().flatten().min();
            let own = [&self.ends, &self.reloads, &self.line].map(|it| it.as_fd());
            let fds = own.into_iter().chain(self.claim.listener.iter().map(|it| it.as_fd()));
            wait(fds, next.map(|next| next.saturating_duration_since(now))).context("cannot wait")?;

            self.claim.renew(&self.root)?;
            let has_ended = has_byte(&self.line).is_none();
            if let Some(Published { report, kubernetes, looks }) = self.published.try_iter().last() {
                (self.report, self.looks) = (report, looks);
                self.exporter.set(Drifting::of(&self.report));
                let is_set_up = self.report.set_up.unwrap_or_else(|| is_set_up(&self.root));
                self.health.set(is_set_up.then_some(()));
                let looks = self.report.counts.looks;
                match kubernetes.filter(|_| looks > 0) {
                    _ if !is_set_up => self.features.set(None),
                    Some(config) => self.features.set(Some(Followed { looks, config })),
                    // The file of the last daemon stays until the first look.
                    None => {}
                }
                self.show();
            }
            if has_ended {
                return Ok(true);
            }
            if let Some(listener) = &self.claim.listener {
                socket::serve(listener, &mut self.clients, &self.report);
            }
            if until.is_none() && has_byte(&self.ends) == Some(true) {
                self.is_ending.store(true, Ordering::Relaxed);
                self.wake_reconciler();
                until = Some(Instant::now() + END);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(false);
            }
            if has_byte(&self.reloads) == Some(true) {
                self.reload();
            }
        }
    }

    fn wake_reconciler(&self) {
        // A socket that is full wakes as well.
        (&self.line).write_all(&[1]).ok();
    }

    /// Has the reconciler read the configuration again and look at once.
    fn reload(&self) {
        let since = NotifyState::monotonic_usec_now();
        notify(&[NotifyState::Reloading].into_iter().chain(since).collect::<Vec<_>>());
        self.wake_reconciler();
        notify(&[NotifyState::Ready]);
    }

    /// Has systemd show how it is, when that has changed.
    fn show(&mut self) {
        let sentence = self.report.sentence();
        if sentence != self.shown {
            notify(&[NotifyState::Status(&one_line(&sentence))]);
            tracing::info!("{sentence}");
            self.shown = sentence;
        }
    }
}

/// Reports to the systemd that started this process. What does not arrive is lost: the watchdog notices.
fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!("systemd did not get {state:?}: {error}");
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// Whether the machine is set up, by what rocworker keeps about it alone. Where that cannot be read, it may be.
fn is_set_up(root: &Root) -> bool {
    State::read(root).map_or(true, |state| state.is_applied())
}

/// A socket from which the daemon reads one byte for each of these signals.
fn on(signals: &[i32]) -> std::io::Result<UnixStream> {
    let (heard, says) = pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, says.try_clone()?)?;
    }
    Ok(heard)
}
