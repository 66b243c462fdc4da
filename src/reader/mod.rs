//! Reads of driver's files by a process of its own. Such a read can wait for ever, in a state that no signal ends; a
//! process with a thread in one does not end either. So this program asks another process, and leaves it where it does not
//! answer in time: each file that hangs costs one process, which ends once its read comes back.

mod frame;

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reconcile::own_process::OwnProcess;
use root::{Amount, Failure, Reader, Root, Stuck, stuck};

/// A file of a driver answers within milliseconds. Less than [`telemetry::patient::PATIENCE`]: a thread that is watched too
/// comes back.
const PATIENCE: Duration = Duration::from_millis(400);

/// A device that hangs has many files: the first one that does makes the next ones likely.
const SHORTEST: Duration = Duration::from_millis(100);

/// At most so many processes are left behind. With more, nothing is read until a read has come back.
const MOST_LEFT: usize = 128;

/// What the process is called on its command line.
pub const COMMAND: &str = "read-files";

/// The reading processes of a Root.
#[derive(Debug)]
pub struct Readers {
    /// Of the Root.
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Processes that wait for a request.
    idle: Vec<Process>,
    /// Processes whose read has not come back.
    left: Vec<(PathBuf, Process)>,
    stuck: Stuck,
    /// Files of devices that have answered: they are asked also where others of their device hang.
    answered: BTreeSet<PathBuf>,
    /// Whether a process could not be started: then this program reads by itself.
    is_alone: bool,
}

#[derive(Debug)]
struct Process {
    stream: UnixStream,
    process: OwnProcess,
}

impl Readers {
    #[must_use]
    pub fn of(root: &Root) -> Self {
        let state = State {
            idle: Vec::new(),
            left: Vec::new(),
            stuck: Stuck::default(),
            answered: BTreeSet::new(),
            is_alone: false,
        };
        Self { path: root.shown("/"), state: Mutex::new(state) }
    }

    /// A sentence for each file that has not answered, and for each device of which most files do not.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let state = self.state();
        let complaint = |path: PathBuf| {
            let shown = self.path.join(path.strip_prefix("/").unwrap_or(&path));
            let whose =
                if state.stuck.has(&path) { "" } else { " with most of its files, and no other is read" };
            format!(
                "{} does not answer{whose}: the answer lacks what it says; look for the driver's messages: journalctl -k",
                shown.display()
            )
        };
        state.stuck.paths().into_iter().map(complaint).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> io::Result<Process> {
        let (stream, its) = UnixStream::pair()?;
        let words = ["--root".as_ref(), self.path.as_os_str(), COMMAND.as_ref()];
        let process = OwnProcess::start(&words, OwnedFd::from(its))?;
        Ok(Process { stream, process })
    }

    /// A process to ask, and how long it may take.
    fn process(&self, path: &Path) -> Result<(Process, Duration), Failure> {
        let mut state = self.state();
        if state.is_alone {
            return Err(Failure::Elsewhere);
        }
        state.refuses(path).map_or(Ok(()), |waited| Err(Failure::NoAnswer(waited)))?;
        let patience = state.patience(path);
        if let Some(process) = state.idle.pop() {
            return Ok((process, patience));
        }
        drop(state);
        let process = self.start().map_err(|error| {
            tracing::debug!("no process of its own reads {}: {error}", path.display());
            self.state().is_alone = true;
            Failure::Elsewhere
        })?;
        Ok((process, patience))
    }
}

impl State {
    fn refuses(&self, path: &Path) -> Option<Duration> {
        if self.left.len() >= MOST_LEFT {
            return Some(Duration::ZERO);
        }
        let waited = self.stuck.refuses(path)?;
        (self.stuck.has(path) || !self.answered.contains(path)).then_some(waited)
    }

    fn patience(&self, path: &Path) -> Duration {
        let is_of_its_device = |(left, _): &&(PathBuf, Process)| stuck::device(left) == stuck::device(path);
        let hang = self.left.iter().filter(is_of_its_device).count();
        // Where this many hang, whatever they are of, the answer shall not wait for each.
        let halvings = if self.left.len() < 16 { u32::try_from(hang).unwrap_or(u32::MAX) } else { u32::MAX };
        2_u32.checked_pow(halvings).map_or(SHORTEST, |parts| (PATIENCE / parts).max(SHORTEST))
    }

    fn came_back(&mut self, path: &Path) {
        self.stuck.came_back(path, false);
        if stuck::device(path).is_some() && !self.answered.contains(path) {
            self.answered.insert(path.to_owned());
        }
    }

    fn hangs(&mut self, path: &Path, since: Instant, process: Process) {
        self.stuck.hangs(path, since);
        self.left.push((path.to_owned(), process));
    }
}

impl Reader for Readers {
    fn read(&self, path: &Path, amount: Amount) -> Result<Vec<u8>, Failure> {
        // One that was killed while it waited is replaced.
        for _ in 0..2 {
            let (mut process, patience) = self.process(path)?;
            let asked = Instant::now();
            let answer = process.ask(path, amount, patience);
            let mut state = self.state();
            match answer {
                Ok(read) => {
                    state.idle.push(process);
                    state.came_back(path);
                    return read;
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    state.hangs(path, asked, process);
                    return Err(Failure::NoAnswer(asked.elapsed()));
                }
                Err(_) => process.end(),
            }
        }
        Err(Failure::Elsewhere)
    }

    fn ask_again(&self) {
        let mut state = self.state();
        let left = std::mem::take(&mut state.left);
        for (path, process) in left {
            if process.has_answered() {
                state.stuck.came_back(&path, true);
                process.end();
            } else {
                state.left.push((path, process));
            }
        }
        state.stuck.forget();
        state.idle.drain(..).for_each(Process::end);
    }

    fn stuck(&self) -> usize {
        self.state().left.len()
    }
}

impl Process {
    fn ask(
        &mut self,
        path: &Path,
        amount: Amount,
        patience: Duration,
    ) -> io::Result<Result<Vec<u8>, Failure>> {
        frame::ask(&mut self.stream, path, amount)?;
        self.stream.set_read_timeout(Some(patience))?;
        frame::answered(&mut self.stream)
    }

    /// Whether its read has come back, or it has ended.
    fn has_answered(&self) -> bool {
        let read = self.stream.set_nonblocking(true).and_then(|()| (&self.stream).read(&mut [0]));
        !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// For one that reads nothing now.
    fn end(self) {
        drop(self.stream);
        self.process.wait();
    }
}

/// The process: reads what it is asked for until nobody asks any more.
///
/// # Errors
/// When its socket fails.
pub fn serve(root: &Root, stream: &mut UnixStream) -> io::Result<()> {
    while let Some((path, amount)) = frame::asked(stream)? {
        let read = match amount {
            Amount::Whole(limit) => root.read(path, limit),
            Amount::Start(count) => root.read_start(path, count),
        };
        frame::answer(stream, read)?;
    }
    Ok(())
}
