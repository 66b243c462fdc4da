//! A question to a file system that may never answer, asked by a process of its own: this program, executed with a name and
//! arguments that no caller of runc uses.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::close;
use rustix::fs::statvfs;
use rustix::process::{Signal, set_parent_process_death_signal};

/// The pause between two looks at a process that has been asked.
pub(crate) const PAUSE: Duration = Duration::from_micros(500);

/// The name of a process that asks a file system, as its first argument.
const NAME: &str = "runc-amd-wrapper: asks a file system";

/// A question to a file system: its program may answer one question and not another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Metadata, including a link's target and how the file system is mounted.
    Kind,
    /// A folder's names, which are asked for only where they are needed: a cloud's folder takes long to list.
    Names,
}

impl Question {
    fn word(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Names => "names",
        }
    }
}

pub(crate) fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer: see `journalctl -k`")
}

/// Returns once the file system has answered, whatever its answer. `own`: the wrapper's program.
///
/// # Errors
/// There was no answer in time, or no process to ask.
pub(crate) fn in_a_process(own: &Path, path: &Path, question: Question, until: Instant) -> io::Result<()> {
    let mut command = Command::new(own);
    command.arg0(NAME).arg(question.word()).arg(path).env_clear();
    // A reader of the wrapper's output waits until the last process has closed it, so the child must not keep
    // it open.
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // An error says that the caller has had the kernel reap the child.
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= until {
            let _ = child.kill();
            return Err(no_answer());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Whether this process was started to ask a file system.
#[must_use]
pub fn is_question(argv: &[OsString]) -> bool {
    argv.first().is_some_and(|name| name == NAME)
}

/// Asks. The answer is that this returns.
pub fn answer(argv: &[OsString]) {
    // The process ends with the thread that waits for it, which execve ends.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // Descriptors that the wrapper's caller passed on: the caller may wait until the last process has closed
    // them.
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        let _ = close(descriptor);
    }
    let [_, question, path] = argv else { return };
    let path = Path::new(path);
    if question == OsStr::new(Question::Names.word()) {
        std::fs::read_dir(path).into_iter().flatten().for_each(drop);
    } else {
        let _ = (path.symlink_metadata(), std::fs::read_link(path), statvfs(path));
    }
}
