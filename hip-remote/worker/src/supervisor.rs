//! The worker's parent: it accepts connections, starts a process for each, and counts.
//!
//! It has one thread, which starts all processes: the kernel ties a process's death signal to the thread that started it.

use std::io::Write as _;
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

/// How many connections may be there that have not said who they are. Each has a process.
const STRANGERS: usize = 16;
/// A process whose client has not said who it is after this time does not get on.
const STRANGE: Duration = Duration::from_secs(10);
/// How long clients' processes may take to end.
const LAST: Duration = Duration::from_secs(2);
/// How often the worker looks without being woken.
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A client's process.
#[derive(Debug)]
struct Process {
    child: Child,
    control: UnixStream,
    since: Instant,
    is_client: bool,
    /// It said so, or was killed for good reason.
    has_ended: bool,
    /// Its way to this process is closed: it is gone as soon as the kernel has taken it down.
    is_silent: bool,
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
    Cache::open(&options.cache, options.cache_size)?;
    let listeners = listeners::open(options)?;
    let (signalled, signal) =
        UnixStream::pair().map_err(|error| format!("the worker cannot begin: {error}"))?;
    for number in [SIGTERM, SIGINT] {
        let signal = signal.try_clone().map_err(|error| format!("the worker cannot begin: {error}"))?;
        signal_hook::low_level::pipe::register(number, signal)
            .map_err(|error| format!("the worker cannot catch signals: {error}"))?;
    }
    for listener in &listeners {
        eprintln!("rocworker-hip-worker: listens on {listener}");
    }
    let mut metrics = Metrics::new(options.metrics.as_deref());
    let mut processes: Vec<Process> = Vec::new();
    loop {
        let mut watched = vec![PollFd::new(&signalled, PollFlags::IN)];
        watched.extend(listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
        let speaking = processes.iter().filter(|process| !process.is_silent);
        watched.extend(speaking.map(|process| PollFd::new(&process.control, PollFlags::IN)));
        if poll(&mut watched, Some(&TICK)).is_err() {
            continue;
        }
        let mut ready = watched.iter().map(|one| !one.revents().is_empty());
        if ready.next() == Some(true) {
            break;
        }
        let called: Vec<bool> = ready.by_ref().take(listeners.len()).collect();
        let spoke: Vec<bool> = ready.collect();
        let clients = processes.iter().filter(|process| process.is_client && !process.has_ended).count();
        let mut free = usize::try_from(options.clients).unwrap_or(usize::MAX).saturating_sub(clients);
        let speaking = processes.iter_mut().filter(|process| !process.is_silent);
        for (process, _) in speaking.zip(spoke).filter(|(_, spoke)| *spoke) {
            process.hear(&mut free, &mut metrics);
        }
        processes.retain_mut(|process| process.is_alive(&mut metrics));
        for (listener, _) in listeners.iter().zip(called).filter(|(_, called)| *called) {
            accept(listener, &mut processes, &mut metrics);
        }
        metrics.write(processes.iter().filter(|process| process.is_client).map(|process| &process.counted));
    }
    drop(listeners);
    end(processes, metrics);
    Ok(())
}

/// Takes every connection that waits.
fn accept(listener: &Listener, processes: &mut Vec<Process>, metrics: &mut Metrics) {
    loop {
        let descriptor = match listener.accept() {
            Ok(Some(descriptor)) => descriptor,
            Ok(None) => return,
            Err(error) => {
                eprintln!("rocworker-hip-worker: a connection to {listener} cannot be accepted: {error}");
                // Until a client ends, the next try fails too.
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        if processes.iter().filter(|process| !process.is_client).count() >= STRANGERS {
            metrics.refused += 1;
            hip_transport::refuse(
                &descriptor,
                "the worker has too many connections that have not begun: try again soon",
            );
            continue;
        }
        match Process::start(descriptor) {
            Ok(process) => processes.push(process),
            Err(error) => {
                metrics.refused += 1;
                eprintln!("rocworker-hip-worker: a client's process cannot be started: {error}");
            }
        }
    }
}

impl Process {
    fn start(connection: OwnedFd) -> std::io::Result<Self> {
        let (control, its) = UnixStream::pair()?;
        // A client's process never keeps its parent waiting.
        control.set_read_timeout(Some(Duration::from_secs(1)))?;
        let child = Command::new("/proc/self/exe")
            .arg0("rocworker-hip-worker")
            .args(std::env::args_os().skip(1))
            .arg("--serve-one")
            .stdin(Stdio::from(connection))
            .stdout(Stdio::from(OwnedFd::from(its)))
            .spawn()?;
        Ok(Self {
            child,
            control,
            since: Instant::now(),
            is_client: false,
            has_ended: false,
            is_silent: false,
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
                    metrics.accepted += 1;
                } else {
                    metrics.refused += 1;
                }
                if self.control.write_all(&[may.into()]).is_err() {
                    self.end();
                }
            }
            Ok(Report::Counted(counted)) => self.counted = counted,
            Ok(Report::Ended) => self.has_ended = true,
            // The process has ended, or says what this program never says.
            Err(_) => self.end(),
        }
    }

    /// Ends the process. A GPU that hangs may keep it in the kernel: nobody waits for that here.
    fn end(&mut self) {
        self.is_silent = true;
        if !self.is_ending() {
            self.has_ended = true;
            let _ = self.child.kill();
        }
    }

    /// Whether the process only needs a moment: its way to the parent closes shortly before it is gone.
    fn is_ending(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_millis(100);
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Whether the process still runs. What it did is added up when it is gone.
    fn is_alive(&mut self, metrics: &mut Metrics) -> bool {
        if !self.is_client && !self.is_silent && self.since.elapsed() > STRANGE {
            self.end();
        }
        let Ok(Some(status)) = self.child.try_wait() else { return true };
        if !self.has_ended
            && let Some(signal) = status.signal()
        {
            metrics.crashed += 1;
            eprintln!(
                "rocworker-hip-worker: the process {} of a client was ended by the signal {signal}; no other client is touched",
                self.child.id()
            );
        }
        metrics.gone(&self.counted);
        if let Err(error) = grant::end(&Paths::system(), self.child.id()) {
            eprintln!("rocworker-hip-worker: what a client had stays until the next decision: {error}");
        }
        false
    }
}

/// Ends all clients: each is told, and ends by itself or is killed.
fn end(mut processes: Vec<Process>, mut metrics: Metrics) {
    for process in &processes {
        let _ = process.control.shutdown(std::net::Shutdown::Write);
    }
    let deadline = Instant::now() + LAST;
    while !processes.is_empty() && Instant::now() < deadline {
        processes.retain_mut(|process| process.is_alive(&mut metrics));
        std::thread::sleep(Duration::from_millis(5));
    }
    for mut process in processes {
        process.end();
        process.is_alive(&mut metrics);
    }
}
