//! The worker's parent: it accepts connections, starts a process for each, and counts.
//!
//! It has one thread, which starts all processes: the kernel ties a process's death signal to the thread that started it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runc_amd_wrapper::paths::Paths;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::arguments::Serve;
use crate::cache::Cache;
use crate::counters::{Counted, Report};
use crate::grant;
use crate::listeners::{self, Listener};
use crate::metrics::Metrics;
use crate::trial;

/// How many connections may be there that have not said who they are. Each has a process.
const STRANGERS: usize = 16;
/// How many connections may wait for a place among them.
const WAITING: usize = 256;
/// How many connections are accepted before the worker looks at its processes again.
const AT_ONCE: usize = 32;
/// How long a connection may wait for its process.
const PATIENCE: Duration = Duration::from_secs(5);
/// A process whose client has not said who it is after this time does not get on.
const STRANGE: Duration = Duration::from_secs(10);
/// How long clients' processes may take to end.
const LAST: Duration = Duration::from_secs(2);
/// How long a process may take that says nothing more. One that crashed is ended by its own signal until then.
const SILENT: Duration = Duration::from_millis(100);
/// How often the worker looks without being woken.
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// And while a process ends, which wakes nobody.
const SOON: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A connection that has no process yet.
#[derive(Debug)]
struct Waiting {
    connection: OwnedFd,
    /// Where its client is; `None`: on this machine.
    address: Option<IpAddr>,
    since: Instant,
}

/// A client's process.
#[derive(Debug)]
struct Process {
    child: Child,
    control: UnixStream,
    /// Where its client is; `None`: on this machine.
    address: Option<IpAddr>,
    since: Instant,
    is_client: bool,
    has_begun: bool,
    /// It said so, or was killed for good reason.
    has_ended: bool,
    /// Since when its way to this process is closed: it is gone as soon as the kernel has taken it down.
    silent: Option<Instant>,
    counted: Counted,
}

/// Serves until a signal ends it.
///
/// # Errors
/// A sentence: the worker cannot begin.
pub fn run(options: &Serve) -> Result<(), String> {
    if let Some(key) = &options.key {
        hip_transport::WorkerKey::read(key)?;
    }
    if let Err(sentence) = Cache::new(&options.cache, options.cache_size).prepare() {
        log!("{sentence}");
    }
    let mut listeners = listeners::open(options)?;
    trial::run()?;
    let (mut signalled, signal) =
        UnixStream::pair().map_err(|error| format!("the worker cannot begin: {error}"))?;
    for number in [SIGTERM, SIGINT] {
        let signal = signal.try_clone().map_err(|error| format!("the worker cannot begin: {error}"))?;
        signal_hook::low_level::pipe::register(number, signal)
            .map_err(|error| format!("the worker cannot catch signals: {error}"))?;
    }
    for listener in &listeners {
        log!("listens on {listener}");
    }
    let paths = options.paths();
    let mut metrics = Metrics::new(&options.metrics);
    let mut processes: Vec<Process> = Vec::new();
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut last: Option<Instant> = None;
    while last.is_none_or(|last| !processes.is_empty() && Instant::now() < last) {
        metrics.write(processes.iter().filter(|process| process.is_client).map(|process| &process.counted));
        let mut watched = vec![PollFd::new(&signalled, PollFlags::IN)];
        watched.extend(listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
        let speaking = processes.iter().filter(|process| process.silent.is_none());
        watched.extend(speaking.map(|process| PollFd::new(&process.control, PollFlags::IN)));
        let ends = last.is_some() || processes.iter().any(|process| process.silent.is_some());
        if poll(&mut watched, Some(if ends { &SOON } else { &TICK })).is_err() {
            continue;
        }
        let ready: Vec<bool> = watched.iter().map(|one| !one.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        if ready.next() == Some(true) {
            let _ = signalled.read(&mut [0; 16]);
            last.get_or_insert(Instant::now() + LAST);
            listeners.clear();
            waiting.clear();
            // Each client is told, and ends by itself or is killed.
            for process in &processes {
                let _ = process.control.shutdown(Shutdown::Write);
            }
            continue;
        }
        let called: Vec<bool> = ready.by_ref().take(listeners.len()).collect();
        let clients = processes.iter().filter(|process| process.is_client && !process.has_ended).count();
        let mut free = usize::try_from(options.clients).unwrap_or(usize::MAX).saturating_sub(clients);
        let speaking = processes.iter_mut().filter(|process| process.silent.is_none());
        for (process, _) in speaking.zip(ready).filter(|(_, spoke)| *spoke) {
            process.hear(&mut free, &mut metrics);
        }
        processes.retain_mut(|process| process.is_alive(&paths, &mut metrics));
        for (listener, _) in listeners.iter().zip(called).filter(|(_, called)| *called) {
            accept(listener, &mut waiting, &mut metrics);
        }
        begin(&mut waiting, &mut processes, &mut metrics);
    }
    if !processes.is_empty() {
        processes.iter_mut().for_each(Process::end);
        std::thread::sleep(SILENT);
    }
    processes.retain_mut(|process| process.is_alive(&paths, &mut metrics));
    Ok(())
}

/// Takes connections, which then wait for their processes.
fn accept(listener: &Listener, waiting: &mut Vec<Waiting>, metrics: &mut Metrics) {
    for _ in 0..AT_ONCE {
        let (connection, address) = match listener.accept() {
            Ok(Some(accepted)) => accepted,
            Ok(None) => return,
            Err(error) => {
                log!("a connection to {listener} cannot be accepted: {error}");
                // Until a client ends, the next try fails too.
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        let one = Waiting { connection, address, since: Instant::now() };
        if has_place(WAITING, waiting.iter().map(|other| other.address), address) {
            waiting.push(one);
        } else {
            one.refuse(metrics);
        }
    }
}

/// Starts a process for each connection that has a place, the oldest first.
fn begin(waiting: &mut Vec<Waiting>, processes: &mut Vec<Process>, metrics: &mut Metrics) {
    for one in std::mem::take(waiting) {
        let strangers = processes.iter().filter(|process| !process.is_client);
        if !has_place(STRANGERS, strangers.map(|process| process.address), one.address) {
            if one.since.elapsed() < PATIENCE {
                waiting.push(one);
            } else {
                one.refuse(metrics);
            }
            continue;
        }
        match Process::start(one.connection, one.address) {
            Ok(process) => processes.push(process),
            Err(error) => {
                metrics.refused += 1;
                log!("a client's process cannot be started: {error}");
            }
        }
    }
}

/// Whether an address has one of so many places. Of one address may be three quarters, so that it leaves some to others.
fn has_place(places: usize, taken: impl Iterator<Item = Option<IpAddr>>, address: Option<IpAddr>) -> bool {
    let count =
        |(all, own), other: Option<IpAddr>| (all + 1, own + usize::from(other.is_some() && other == address));
    let (all, own) = taken.fold((0, 0), count);
    all < places && own < places / 4 * 3
}

impl Waiting {
    fn refuse(self, metrics: &mut Metrics) {
        metrics.refused += 1;
        hip_transport::refuse(
            &self.connection,
            "the worker has too many connections that have not begun: try again soon",
        );
    }
}

impl Process {
    fn start(connection: OwnedFd, address: Option<IpAddr>) -> std::io::Result<Self> {
        let (control, its) = UnixStream::pair()?;
        // A client's process never keeps its parent waiting.
        control.set_read_timeout(Some(Duration::from_secs(1)))?;
        let child = Command::new("/proc/self/exe")
            .arg0("rocworker-hip-worker")
            // Nothing is an option behind a `--`.
            .arg("--serve-one")
            .args(std::env::args_os().skip(1))
            // A terminal's Ctrl-C is for the worker, which tells its clients.
            .process_group(0)
            .stdin(Stdio::from(connection))
            .stdout(Stdio::from(OwnedFd::from(its)))
            .spawn()?;
        Ok(Self {
            child,
            control,
            address,
            since: Instant::now(),
            is_client: false,
            has_begun: false,
            has_ended: false,
            silent: None,
            counted: Counted::default(),
        })
    }

    /// Reads a report.
    fn hear(&mut self, free: &mut usize, metrics: &mut Metrics) {
        match Report::read(&self.control) {
            Ok(Report::Hello) => {
                let may = *free > 0;
                if may {
                    *free -= 1;
                    self.is_client = true;
                }
                if self.control.write_all(&[may.into()]).is_err() {
                    self.end();
                }
            }
            Ok(Report::Begun) => {
                self.has_begun = true;
                metrics.served += 1;
            }
            Ok(Report::Counted(counted)) => self.counted = counted,
            Ok(Report::Ended) => self.has_ended = true,
            // The process has ended, or says what this program never says.
            Err(_) => self.silent = Some(Instant::now()),
        }
    }

    /// Ends the process. A GPU that hangs may keep it in the kernel: nobody waits for that here.
    fn end(&mut self) {
        self.has_ended = true;
        self.silent.get_or_insert_with(Instant::now);
        let _ = self.child.kill();
    }

    /// Whether the process still runs. What it did is added up when it is gone.
    fn is_alive(&mut self, paths: &Paths, metrics: &mut Metrics) -> bool {
        if !self.is_client && self.silent.is_none() && self.since.elapsed() > STRANGE {
            self.end();
        }
        if self.silent.is_some_and(|since| since.elapsed() > SILENT) {
            let _ = self.child.kill();
        }
        let Ok(Some(status)) = self.child.try_wait() else { return true };
        if !self.has_ended
            && let Some(signal) = status.signal()
        {
            metrics.crashed += 1;
            log!(
                "the process {} of a client was ended by the signal {signal}; no other client is touched",
                self.child.id()
            );
        }
        if !self.has_begun {
            metrics.refused += 1;
        }
        metrics.gone(&self.counted);
        if let Err(error) = grant::end(paths, self.child.id()) {
            log!("what a client had stays until the next decision: {error}");
        }
        false
    }
}
