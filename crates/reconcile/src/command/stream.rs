//! An answer of any length, read while the command writes it.

use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Error, GLANCE, LINGER, Programs, kill, reported};

/// util-linux's: its child ends with whoever started it, also if that is killed.
const WITH_ITS_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

impl Programs {
    /// Runs a command whose stdout `read` takes, for as long as the two need: a journal of years has no time limit. A
    /// command whose stdout is left before its end gets SIGPIPE. Gives the start of its stderr.
    ///
    /// # Errors
    /// When the command is not there, cannot be started, ends with anything but 0, does not end once `read`
    /// has, or leaves its stdout to a child that writes nothing.
    pub fn stream(&self, argv: &[&str], read: impl FnOnce(&mut dyn Read)) -> Result<Vec<u8>, Error> {
        let (program, words) = self.with_its_parent(argv)?;
        let name = argv.join(" ");
        let start = |cause| Error::Start { argv: name.clone(), cause };
        let (stdout, stdout_of_child) = pipe().map_err(start)?;
        let (stderr, stderr_of_child) = pipe().map_err(start)?;
        let stderr = kept(stderr, self.kept).map_err(start)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = self.command(program, &words, stdout_of_child, stderr_of_child);
        let handle = command.stdin_null().start().map_err(start)?;
        drop(command);
        let mut stdout = Stdout { pipe: stdout, of: &handle, is_held: false };
        read(&mut stdout);
        let is_held = stdout.is_held;
        drop(stdout);
        let Some(ended) = handle.wait_timeout(LINGER).map_err(start)? else {
            kill(&handle);
            handle.wait().map_err(start)?;
            return Err(Error::TimedOut { argv: name, limit: LINGER });
        };
        let stderr = if is_held { None } else { stderr.recv_timeout(LINGER).ok() };
        let Some(stderr) = stderr else {
            kill(&handle);
            return Err(Error::Held { argv: name });
        };
        if !ended.status.success() {
            return Err(Error::Failed { argv: name, status: ended.status, reported: reported(&stderr) });
        }
        Ok(stderr)
    }

    /// The command line that makes the command end with this program. Without setpriv, the command ends at
    /// its next write.
    pub(super) fn with_its_parent(&self, argv: &[&str]) -> Result<(PathBuf, Vec<String>), Error> {
        let program = self.program_of(argv)?;
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (Ok(setpriv), Some(path)) = (self.program_of(&WITH_ITS_PARENT), program.to_str()) else {
            return Ok((program, owned(argv)));
        };
        let rest = argv.get(1..).unwrap_or_default();
        Ok((setpriv, owned(&[&WITH_ITS_PARENT, &[path][..], rest].concat())))
    }
}

/// Reads a stream to its end on a thread of its own, and keeps its start.
fn kept(mut stream: PipeReader, most: usize) -> io::Result<Receiver<Vec<u8>>> {
    let (send, receive) = channel();
    thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = (&mut stream).take(most as u64).read_to_end(&mut bytes);
        read.and_then(|_| io::copy(&mut stream, &mut io::sink())).ok();
        // After a kill no thread listens.
        send.send(bytes).ok();
    })?;
    Ok(receive)
}

/// A command's stdout. It ends where the command has ended and nothing more comes, also if a child of the command's holds
/// it open.
struct Stdout<'h> {
    pipe: PipeReader,
    of: &'h duct::Handle,
    is_held: bool,
}

impl Read for Stdout<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let glance = PollTimeout::try_from(GLANCE).unwrap_or(PollTimeout::ZERO);
        let mut waited = Duration::ZERO;
        while poll(&mut [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)], glance)? == 0 {
            if self.of.try_wait()?.is_some() {
                waited += GLANCE;
            }
            if waited >= LINGER {
                self.is_held = true;
                return Ok(0);
            }
        }
        self.pipe.read(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Programs {
        Programs::in_folders("/usr/bin:/bin")
    }

    #[test]
    fn more_than_is_kept_arrives_and_stderr_comes_back() {
        let mut bytes = 0;
        let read = |stdout: &mut dyn Read| bytes = io::copy(stdout, &mut io::sink()).unwrap();
        let script = r#"BEGIN { print "word" > "/dev/stderr"; for (; i < 500000; i++) print "a line" }"#;
        assert_eq!(here().stream(&["awk", script], read).unwrap(), b"word\n");
        assert_eq!(bytes, 7 * 500_000);
    }

    #[test]
    fn one_that_is_left_ends_and_a_failure_tells_its_words() {
        let read = |stdout: &mut dyn Read| stdout.read_exact(&mut [0; 4]).unwrap();
        let left = here().stream(&["yes"], read).unwrap_err().to_string();
        assert!(left.starts_with("yes ended with signal: 13"), "{left}");
        let failed = here().stream(&["ls", "/no/such"], |_| {}).unwrap_err().to_string();
        assert!(failed.ends_with("No such file or directory"), "{failed}");
        let missing = here().stream(&["no-such-program"], |_| {}).unwrap_err().to_string();
        assert_eq!(missing, "no-such-program is not installed: it is in no folder of PATH");
    }

    #[test]
    fn one_that_leaves_its_stdout_to_a_child_has_an_end() {
        let before = std::time::Instant::now();
        let script = "echo first; sleep 600 2>&- & exit 0";
        let mut text = String::new();
        let read = |stdout: &mut dyn Read| {
            stdout.read_to_string(&mut text).unwrap();
        };
        let error = here().stream(&["sh", "-c", script], read).unwrap_err().to_string();
        assert!(error.ends_with("held its output open for 5 s more"), "{error}");
        assert_eq!(text, "first\n");
        assert!(before.elapsed() < Duration::from_secs(60), "it was waited for");
    }

    #[test]
    fn without_setpriv_the_command_is_started_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", dir.path().join("sh")).unwrap();
        let programs = Programs::in_folders(dir.path());
        assert_eq!(programs.stream(&["sh", "-c", "echo word >&2"], |_| {}).unwrap(), b"word\n");
    }
}
