//! Reads of driver's files by a process of its own. Such a read can wait for ever, in a state that no signal ends; a
//! process with a thread in one does not end either. So this program asks another process, and leaves it where it does
//! not answer in time: each file that hangs costs one process, which ends once its read comes back.

mod frame;

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reconcile::own_process::OwnProcess;
use root::{Amount, Failure, Reader, Root, Stuck, stuck};

/// How long a reading process may take to start. Its disk may be busy, and its unit may get little time of a processor.
const START: Duration = Duration::from_secs(5);

/// How long a read of a driver's file may take: such a file answers within milliseconds.
const PATIENCE: Duration = Duration::from_millis(400);

/// How long a read may take once another file of the device hangs. A device that hangs has many files, and the next ones
/// are likely to hang too.
const SHORTEST: Duration = Duration::from_millis(100);

/// Once this many processes hang in a read, a device of which one file hangs is asked for no other file. The number is
/// half of the daemon's `TasksMax=`. A device that does not hang costs no process, and is read.
const MOST_HANGING: usize = 128;

/// What the process is called on its command line.
pub const COMMAND: &str = "read-files";

/// The processes that read files beneath a Root.
#[derive(Debug)]
pub struct Readers {
    /// The Root's path on this machine.
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Processes that wait for a request.
    idle: Vec<Process>,
    /// Processes whose read has not come back.
    hanging: Vec<(PathBuf, Process)>,
    /// Processes that were not ready in time.
    late: Vec<Process>,
    stuck: Stuck,
    /// Whether a process could not be started since [`Reader::ask_again`]: the caller reads by itself until then.
    is_unavailable: bool,
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
            hanging: Vec::new(),
            late: Vec::new(),
            stuck: Stuck::default(),
            is_unavailable: false,
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
        let mut process = Process { process: OwnProcess::start(&words, OwnedFd::from(its))?, stream };
        match frame::wait_until_ready(&mut process.stream, START) {
            Ok(()) => Ok(process),
            Err(error) if is_timeout(&error) => {
                self.state().late.push(process);
                Err(error)
            }
            Err(error) => {
                process.end();
                Err(error)
            }
        }
    }

    /// A process that is ready to be asked, and how long its answer may take.
    fn process(&self, path: &Path) -> Result<(Process, Duration), Failure> {
        let mut state = self.state();
        state.may_ask(path)?;
        let patience = state.patience(path);
        if let Some(process) = state.idle.pop() {
            return Ok((process, patience));
        }
        if state.is_unavailable {
            return Err(Failure::Unavailable);
        }
        drop(state);
        let process = self.start().map_err(|error| {
            tracing::debug!("no process of its own reads {}: {error}", path.display());
            self.state().is_unavailable = true;
            Failure::Unavailable
        })?;
        Ok((process, patience))
    }
}

impl State {
    fn may_ask(&self, path: &Path) -> Result<(), Failure> {
        match self.stuck.refuses(path) {
            Some(waited) => Err(Failure::NoAnswer(waited)),
            None if is_full(self.hanging.len(), self.hanging_with(path)) => Err(Failure::TooMany),
            None => Ok(()),
        }
    }

    /// How many files of the path's device hang. Files of no device count together.
    fn hanging_with(&self, path: &Path) -> usize {
        let device = stuck::device(path);
        self.hanging.iter().filter(|(other, _)| stuck::device(other) == device).count()
    }

    fn patience(&self, path: &Path) -> Duration {
        patience(self.hanging.len(), self.hanging_with(path))
    }
}

fn is_full(all: usize, of_the_device: usize) -> bool {
    all >= MOST_HANGING && of_the_device > 0
}

fn patience(all: usize, of_the_device: usize) -> Duration {
    // Where this many hang, whatever they are of, the answer shall not wait for each.
    let halvings = if all < 16 { u32::try_from(of_the_device).unwrap_or(u32::MAX) } else { u32::MAX };
    2_u32.checked_pow(halvings).map_or(SHORTEST, |parts| (PATIENCE / parts).max(SHORTEST))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Reader for Readers {
    fn read(&self, path: &Path, amount: Amount) -> Result<Vec<u8>, Failure> {
        // A process that was killed while it waited is replaced by the second round.
        for _ in 0..2 {
            let (mut process, patience) = self.process(path)?;
            let asked = Instant::now();
            let answer = process.ask(path, amount, patience);
            let mut state = self.state();
            match answer {
                Ok(read) => {
                    state.idle.push(process);
                    state.stuck.came_back(path, false);
                    return read;
                }
                Err(error) if is_timeout(&error) => {
                    state.stuck.hangs(path, asked);
                    state.hanging.push((path.to_owned(), process));
                    return Err(Failure::NoAnswer(asked.elapsed()));
                }
                Err(_) => process.end(),
            }
        }
        Err(Failure::Unavailable)
    }

    fn ask_again(&self) {
        let mut state = self.state();
        for (path, process) in std::mem::take(&mut state.hanging) {
            if process.has_answered() {
                state.stuck.came_back(&path, true);
                process.end();
            } else {
                state.hanging.push((path, process));
            }
        }
        for process in std::mem::take(&mut state.late) {
            if process.has_answered() {
                process.end();
            } else {
                state.late.push(process);
            }
        }
        state.is_unavailable = false;
        state.stuck.forget();
        state.idle.drain(..).for_each(Process::end);
    }

    fn stuck(&self) -> usize {
        self.state().hanging.len()
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

    /// Whether its read has come back, or it is ready at last, or it has ended.
    fn has_answered(&self) -> bool {
        let read = self.stream.set_nonblocking(true).and_then(|()| (&self.stream).read(&mut [0]));
        !read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Ends a process that has no read under way.
    fn end(self) {
        drop(self.stream);
        self.process.wait();
    }
}

/// What the reading process does: it reads what it is asked for, until the program that asks closes the socket.
///
/// # Errors
/// The socket fails.
pub fn serve(root: &Root, stream: &mut UnixStream) -> io::Result<()> {
    frame::say_ready(stream)?;
    while let Some((path, amount)) = frame::asked(stream)? {
        let read = match amount {
            Amount::Whole(limit) => root.read(path, limit),
            Amount::Start(count) => root.read_start(path, count),
        };
        frame::answer(stream, read)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_that_does_not_hang_is_read_however_many_files_of_others_do() {
        for (all, of_the_device, expected) in [
            (127, 0, false),
            (127, 127, false),
            (128, 0, false),
            (128, 1, true),
            (200, 0, false),
            (200, 6, true),
        ] {
            assert_eq!(is_full(all, of_the_device), expected, "{all} {of_the_device}");
        }
    }

    #[test]
    fn the_next_file_of_a_device_that_hangs_has_less_time() {
        for (all, of_the_device, expected) in [
            (0, 0, 400),
            (5, 0, 400),
            (1, 1, 200),
            (2, 2, 100),
            (5, 5, 100),
            (15, 0, 400),
            (16, 0, 100),
            (99, 99, 100),
        ] {
            assert_eq!(patience(all, of_the_device).as_millis(), expected, "{all} {of_the_device}");
        }
    }

    /// The program of this test is no reading process: it ends before it is ready.
    #[test]
    fn a_process_that_cannot_be_started_leaves_the_read_to_the_caller_until_the_next_look() {
        let readers = Readers::of(&Root::open(Path::new("/")).unwrap());
        let path = Path::new("/sys/kernel/mm/none");
        for _ in 0..2 {
            assert!(!readers.state().is_unavailable);
            assert_eq!(readers.read(path, Amount::Whole(1)), Err(Failure::Unavailable));
            assert!(readers.state().is_unavailable);
            // A file that is known to hang is not read by the caller either.
            let hangs = Path::new("/sys/kernel/mm/hangs");
            readers.state().stuck.hangs(hangs, Instant::now());
            assert!(matches!(readers.read(hangs, Amount::Whole(1)), Err(Failure::NoAnswer(_))));
            readers.ask_again();
        }
        assert!(readers.state().idle.is_empty() && readers.state().late.is_empty());
    }
}
