//! The process: listens, asks the scheduler what is due, has the reconciler look, and answers meanwhile.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use root::{Identity, Root};

use super::build::Build;
use super::claim::{self, Claim};
use super::scheduler::{Cause, Limits, Scheduler};

use super::netlink::Netlink;
use super::notify::{Manager, Message, Notifier};
use super::places::receipt;
use super::reconciler::{Ground, Reconciler, Said};
use super::socket::{STATUS, Server};
use super::state::State;
use super::watch::Watch;
use crate::run::ConfigFile;
use crate::timestamp::Timestamp;

/// A file of ours that is changed is put right within a second: this, and a look.
const LIMITS: Limits = Limits { quiet: Duration::from_millis(100), most: Duration::from_millis(400) };

/// Whoever is told to end does so within a second.
const END: Duration = Duration::from_millis(800);

/// A look that takes longer is one that hangs: systemd is told no more that all is well.
const LONGEST_LOOK: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub struct Given {
    pub root: Root,
    pub config: ConfigFile,
    pub manager: Manager,
    /// For the history.
    pub caller: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Claim(#[from] claim::Error),
    #[error(
        "{} is another build of this program by now: this one changes nothing more and ends, so that the new one begins",
        path.display()
    )]
    Replaced { path: std::path::PathBuf },
    #[error("cannot {what}: {cause}")]
    Kernel { what: &'static str, cause: io::Error },
}

fn kernel(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |cause| Error::Kernel { what, cause }
}

/// Serves until it is told to end.
pub fn serve(given: Given) -> Result<(), Error> {
    let claim = Claim::stake(&given.root)?;
    let mut daemon = Daemon::new(given, claim)?;
    let ended = daemon.run();
    daemon.notifier.tell(&Message::Stopping);
    let Daemon { claim, root, .. } = daemon;
    claim.leave(&root);
    ended
}

struct Daemon {
    root: Arc<Root>,
    began: Instant,
    notifier: Notifier,
    watchdog: Option<Duration>,
    /// When systemd is told next that all is well.
    ping: Duration,
    /// A byte for each signal to end, and to reload.
    ends: UnixStream,
    reloads: UnixStream,
    netlink: Option<Netlink>,
    /// With the reconciler while it looks.
    watch: Option<Watch>,
    claim: Claim,
    reconciler: Reconciler,
    build: Option<Build>,
    woken: UnixStream,
    is_ending: Arc<AtomicBool>,
    scheduler: Scheduler,
    /// Since when a look goes on.
    looks: Option<Duration>,
    /// Which receipt the last look has left or found, once there was one.
    receipt: Option<Option<Identity>>,
    state: State,
    told: String,
}

impl Daemon {
    fn new(given: Given, claim: Claim) -> Result<Self, Error> {
        let Given { root, config, manager, caller } = given;
        let root = Arc::new(root);
        let build = Build::running();
        let source = Arc::new(config);
        let began = Instant::now();
        let notifier = Notifier::to(manager.socket.as_deref()).map_err(kernel("reach systemd"))?;
        let ends = on(&[signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])?;
        let reloads = on(&[signal_hook::consts::SIGHUP])?;
        let mut state = State::new(Arc::clone(&source), Timestamp::of(SystemTime::now()).seconds());
        // Beneath another Root the kernel's devices are another machine's.
        let netlink = if root.is_host() {
            Netlink::open()
                .map_err(|errno| state.is_deaf(format!("the kernel's events cannot be heard: {errno}")))
                .ok()
        } else {
            state
                .is_deaf("the kernel's events are not this machine's beneath another root than /".to_owned());
            None
        };
        let watch =
            Watch::new().map_err(|errno| state.is_blind(format!("files cannot be watched: {errno}"))).ok();
        let (wake, woken) = pair()?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let (ends_too, of_build) = (Arc::clone(&is_ending), build.clone());
        let ground =
            Ground { root: Arc::clone(&root), source, build: of_build, ends: ends_too, wake, caller };
        let reconciler = Reconciler::start(ground).map_err(kernel("start a thread"))?;
        let scheduler = Scheduler::new(began.elapsed(), LIMITS, state.interval());
        Ok(Self {
            root,
            began,
            notifier,
            watchdog: manager.watchdog,
            ping: Duration::ZERO,
            ends,
            reloads,
            netlink,
            watch,
            claim,
            reconciler,
            build,
            woken,
            is_ending,
            scheduler,
            looks: None,
            receipt: None,
            state,
            told: String::new(),
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn run(&mut self) -> Result<(), Error> {
        self.told = self.state.report(self.now(), &self.scheduler).sentence();
        self.notifier.tell(&Message::Ready(&self.told));
        let mut until = None;
        loop {
            if until.is_none() {
                self.look_if_due()?;
            }
            self.ping();
            self.wait(until)?;
            self.hear()?;
            self.claim.renew(&self.root)?;
            if self.hear_reconciler()? || self.is_forsaken() {
                return Ok(());
            }
            self.answer();
            if has_byte(&mut self.ends) && until.is_none() {
                self.is_ending.store(true, Ordering::Relaxed);
                until = Some(self.now() + END);
            }
            if until.is_some_and(|until| self.looks.is_none() || until <= self.now()) {
                return Ok(());
            }
            if has_byte(&mut self.reloads) {
                self.reload();
            }
            self.tell();
        }
    }

    fn look_if_due(&mut self) -> Result<(), Error> {
        let now = self.now();
        let Some(causes) = self.scheduler.begin(now) else { return Ok(()) };
        if let Some(path) = self.build.as_ref().and_then(Build::replaced) {
            let replaced = Error::Replaced { path: path.to_owned() };
            self.notifier.tell(&Message::Status(&replaced.to_string()));
            return Err(replaced);
        }
        self.state.read_config(&self.root);
        self.scheduler.every(now, self.state.interval());
        let order = self.state.order(&self.root, now, causes, self.watch.take());
        self.looks = Some(now);
        if self.reconciler.order(order) { Ok(()) } else { Err(lost_reconciler()) }
    }

    /// Says that all is well, unless a look hangs.
    fn ping(&mut self) {
        let now = self.now();
        let Some(interval) = self.watchdog.filter(|_| self.ping <= now) else { return };
        if self.looks.is_none_or(|since| now.saturating_sub(since) < LONGEST_LOOK) {
            self.notifier.tell(&Message::Watchdog);
        }
        self.ping = now + interval;
    }

    fn wait(&self, until: Option<Duration>) -> Result<(), Error> {
        let now = self.now();
        let ping = self.watchdog.map(|_| self.ping);
        let slow = self.claim.server.as_ref().and_then(Server::next);
        let again = self.claim.again().map(|pause| now + pause);
        let next = [self.scheduler.next(), ping, slow, again, until].into_iter().flatten().min();
        let timeout = next.map_or(PollTimeout::NONE, |next| {
            // Up to the next millisecond: rounded down it would look too early, again and again.
            let left = next.saturating_sub(now) + Duration::from_micros(999);
            PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
        });
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(16);
        let own = [&self.ends, &self.reloads, &self.woken].map(|it| it.as_fd());
        let heard = self.netlink.iter().map(|it| it.as_fd()).chain(self.watch.iter().map(|it| it.as_fd()));
        fds.extend(own.into_iter().chain(heard).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        fds.extend(
            self.claim.server.iter().flat_map(Server::waits).map(|(fd, flags)| PollFd::new(fd, flags)),
        );
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(kernel("wait for events")(errno.into())),
        }
    }

    /// What the kernel tells of devices and files.
    fn hear(&mut self) -> Result<(), Error> {
        let now = self.now();
        if let Some(netlink) = &self.netlink {
            match netlink.read() {
                Ok(heard) => {
                    self.state.heard_kernel(heard.events, heard.lost);
                    self.note(now, heard.events > 0, heard.lost > 0, Cause::Kernel);
                }
                Err(errno) => {
                    self.state.is_deaf(format!("the kernel's events are heard no more: {errno}"));
                    self.netlink = None;
                    self.note(now, false, true, Cause::Kernel);
                }
            }
        }
        if let Some(watch) = &self.watch {
            let heard = watch.read().map_err(|errno| kernel("read what has changed")(errno.into()))?;
            // What a look has written itself is no reason for another: what fails would be tried without end.
            let is_known = heard.receipt > 0 && self.receipt == Some(receipt(&self.root));
            let events = heard.events - if is_known { heard.receipt } else { 0 };
            self.state.heard_files(events, heard.lost);
            self.note(now, events > 0, heard.lost > 0, Cause::Files);
        }
        Ok(())
    }

    fn note(&mut self, now: Duration, came: bool, lost: bool, cause: Cause) {
        if came {
            self.scheduler.heard(now, cause);
        }
        if lost {
            self.scheduler.heard(now, Cause::Lost);
        }
    }

    /// Whether the reconciler has stopped for good, which it does when it is told to end.
    fn hear_reconciler(&mut self) -> Result<bool, Error> {
        let mut bytes = [0; 16];
        while self.woken.read(&mut bytes).is_ok_and(|count| count > 0) {}
        while let Some(said) = self.reconciler.heard().map_err(|_| lost_reconciler())? {
            match said {
                Said::Stands => return Ok(true),
                Said::Done(mut done) => {
                    let now = self.now();
                    self.watch = done.watch.take();
                    self.looks = None;
                    self.receipt = Some(done.receipt);
                    if done.again {
                        self.scheduler.heard(now, Cause::Files);
                    }
                    let ended = self.state.looked(&self.root, now, *done);
                    self.scheduler.ended(now, ended);
                }
            }
        }
        Ok(false)
    }

    /// Whether its program has gone, and it keeps nothing: it would only be in the way of one that comes later.
    fn is_forsaken(&self) -> bool {
        let gone =
            self.build.as_ref().filter(|_| self.state.is_set_up() == Some(false)).and_then(Build::gone);
        if let Some(path) = gone {
            tracing::info!("{} has gone, and nothing here is rocworker's: this one ends", path.display());
        }
        gone.is_some()
    }

    fn answer(&mut self) {
        let now = self.now();
        let Some(server) = &mut self.claim.server else { return };
        let (state, scheduler) = (&self.state, &self.scheduler);
        server.turn(now, |asked| {
            let answer = if asked == STATUS.as_bytes() {
                serde_json::to_string(&state.report(now, scheduler))
            } else {
                serde_json::to_string(&serde_json::json!({ "schema_version": 1, "error": "ask for status" }))
            };
            format!("{}\n", answer.unwrap_or_default())
        });
    }

    /// Reads the configuration again, and looks at once.
    fn reload(&mut self) {
        let us = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).map(Duration::from);
        let us = us.ok().and_then(|since| u64::try_from(since.as_micros()).ok()).unwrap_or_default();
        self.notifier.tell(&Message::Reloading(us));
        self.scheduler.heard(self.now(), Cause::Reload);
        "looking at the machine, as somebody asked for it".clone_into(&mut self.told);
        self.notifier.tell(&Message::Ready(&self.told));
    }

    /// What is shown of it, when it is another sentence than before.
    fn tell(&mut self) {
        let sentence = self.state.report(self.now(), &self.scheduler).sentence();
        if sentence != self.told {
            self.notifier.tell(&Message::Status(&sentence));
            tracing::info!("{sentence}");
            self.told = sentence;
        }
    }
}

fn lost_reconciler() -> Error {
    Error::Kernel { what: "look at the machine", cause: io::Error::other("its thread has ended") }
}

/// A pair of sockets of which neither side waits.
fn pair() -> Result<(UnixStream, UnixStream), Error> {
    let made = UnixStream::pair().and_then(|(one, other)| {
        one.set_nonblocking(true)?;
        other.set_nonblocking(true)?;
        Ok((one, other))
    });
    made.map_err(kernel("make a pair of sockets"))
}

/// What gets a byte with each of these signals.
fn on(signals: &[i32]) -> Result<UnixStream, Error> {
    let (heard, says) = pair()?;
    for signal in signals {
        let says = says.try_clone().map_err(kernel("hear a signal"))?;
        signal_hook::low_level::pipe::register(*signal, says).map_err(kernel("hear a signal"))?;
    }
    Ok(heard)
}

/// Whether a signal has come since the last call.
fn has_byte(heard: &mut UnixStream) -> bool {
    let mut bytes = [0; 64];
    let mut has = false;
    while heard.read(&mut bytes).is_ok_and(|count| count > 0) {
        has = true;
    }
    has
}
