//! A command that gets an input, and whose end is an answer whatever its exit code: `ssh` ends with that of another
//! machine's command.

use std::io::{self, PipeReader, PipeWriter, Read, Write as _, pipe};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::{Error, GLANCE, LINGER, Programs, Stream, kill};

/// util-linux's: its child ends with whoever started it, also if that is killed.
const WITH_ITS_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];

/// Chunks that wait to be taken: a command that writes faster than they are taken waits.
const WAITING: usize = 16;

/// A command with its input and its time limit.
#[derive(Debug)]
pub struct Call<'c> {
    pub argv: &'c [&'c str],
    /// The standard input of the command, which ends once all senders are gone; `None`: there is none.
    pub input: Option<Receiver<Vec<u8>>>,
    /// The time after which the command is killed with its children.
    pub limit: Duration,
}

impl Programs {
    /// Runs a command, and passes its output on as it comes. The command ends with this program, where
    /// setpriv is there.
    ///
    /// # Errors
    /// When the command is not there, cannot be started, does not end, or is interrupted, also by `take` with
    /// `Break`. An exit code is no error.
    pub fn call(
        &self,
        call: Call<'_>,
        take: &mut dyn FnMut(Stream, &[u8]) -> ControlFlow<()>,
    ) -> Result<ExitStatus, Error> {
        let (program, words) = self.with_its_parent(call.argv)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.attend(program, &words, call, take)
    }

    /// The command line that makes the command end with this program. Without setpriv, the command ends at
    /// its next write.
    fn with_its_parent(&self, argv: &[&str]) -> Result<(PathBuf, Vec<String>), Error> {
        let program = self.program_of(argv)?;
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (Ok(setpriv), Some(path)) = (self.program_of(&WITH_ITS_PARENT), program.to_str()) else {
            return Ok((program, owned(argv)));
        };
        let rest = argv.get(1..).unwrap_or_default();
        Ok((setpriv, owned(&[&WITH_ITS_PARENT, &[path][..], rest].concat())))
    }

    /// Runs `program` with these words for the call, until it and its two streams have ended.
    pub(super) fn attend(
        &self,
        program: PathBuf,
        words: &[&str],
        call: Call<'_>,
        take: &mut dyn FnMut(Stream, &[u8]) -> ControlFlow<()>,
    ) -> Result<ExitStatus, Error> {
        let argv = call.argv.join(" ");
        let start = |cause| Error::Start { argv: argv.clone(), cause };
        let (stdout, stdout_of_child) = pipe().map_err(start)?;
        let (stderr, stderr_of_child) = pipe().map_err(start)?;
        let (send, chunks) = sync_channel(WAITING);
        // Before the command starts: where the kernel gives no thread, there is nothing to kill.
        read(Stream::Stdout, stdout, send.clone()).map_err(start)?;
        read(Stream::Stderr, stderr, send).map_err(start)?;
        let mut command = self.command(program, words, stdout_of_child, stderr_of_child);
        command = match call.input {
            None => command.stdin_null(),
            Some(input) => {
                let (stdin_of_child, stdin) = pipe().map_err(start)?;
                write(stdin, input).map_err(start)?;
                command.stdin_file(stdin_of_child)
            }
        };
        let handle = command.start().map_err(start)?;
        // duct keeps its ends of both pipes for further starts.
        drop(command);
        let ended = self.until_its_end(&handle, call.limit, &chunks, take).map_err(start)?;
        if let Attended::Ended = ended {
            return Ok(handle.wait().map_err(start)?.status);
        }
        kill(&handle);
        // A process that a sick driver holds does not end.
        handle.wait_timeout(LINGER).map_err(start)?;
        let argv = argv.clone();
        Err(match ended {
            Attended::TimedOut => Error::TimedOut { argv, limit: call.limit },
            Attended::Held => Error::Held { argv },
            Attended::Ended | Attended::Interrupted => Error::Interrupted { argv },
        })
    }

    fn until_its_end(
        &self,
        handle: &duct::Handle,
        limit: Duration,
        chunks: &Receiver<(Stream, Vec<u8>)>,
        take: &mut dyn FnMut(Stream, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<Attended> {
        let until = Instant::now() + limit;
        let mut ended_at: Option<Instant> = None;
        loop {
            match chunks.recv_timeout(GLANCE) {
                Ok((stream, chunk)) => {
                    if take(stream, &chunk).is_break() {
                        return Ok(Attended::Interrupted);
                    }
                    // However long the caller needed: more may be on its way.
                    ended_at = None;
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The command's two streams have ended, and the command is about to end.
                Err(RecvTimeoutError::Disconnected) => {
                    let left = until.saturating_duration_since(Instant::now()).min(GLANCE);
                    if handle.wait_timeout(left)?.is_some() {
                        return Ok(Attended::Ended);
                    }
                }
            }
            if ended_at.is_none() && handle.try_wait()?.is_some() {
                ended_at = Some(Instant::now());
            }
            if ended_at.is_some_and(|at| at.elapsed() > LINGER) {
                return Ok(Attended::Held);
            }
            if self.is_interrupted() {
                return Ok(Attended::Interrupted);
            }
            if Instant::now() >= until {
                return Ok(Attended::TimedOut);
            }
        }
    }
}

enum Attended {
    Ended,
    TimedOut,
    Held,
    Interrupted,
}

/// Reads a stream to its end on a thread of its own, so that neither stream waits for the other.
fn read(stream: Stream, mut pipe: PipeReader, to: SyncSender<(Stream, Vec<u8>)>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        let mut chunk = [0_u8; 16 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            // After a kill no thread listens.
            if to.send((stream, chunk.get(..count).unwrap_or_default().to_vec())).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// Writes the input on a thread of its own. A command that reads no input leaves the rest unwritten.
fn write(mut stdin: PipeWriter, input: Receiver<Vec<u8>>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        for bytes in input {
            if stdin.write_all(&bytes).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn here() -> Programs {
        Programs::in_folders("/usr/bin:/bin")
    }

    fn of(input: &[u8]) -> Receiver<Vec<u8>> {
        let (send, receive) = channel();
        send.send(input.to_vec()).unwrap();
        receive
    }

    fn call(argv: &[&str], input: &[u8], limit: Duration) -> (Result<ExitStatus, Error>, Vec<u8>, Vec<u8>) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let ended = here().call(Call { argv, input: Some(of(input)), limit }, &mut |stream, chunk| {
            match stream {
                Stream::Stdout => stdout.extend(chunk),
                Stream::Stderr => stderr.extend(chunk),
            }
            ControlFlow::Continue(())
        });
        (ended, stdout, stderr)
    }

    #[test]
    fn an_input_goes_in_and_an_exit_code_comes_back_with_both_streams() {
        let (ended, stdout, stderr) = call(&["sh", "-s"], b"echo out; echo err >&2; exit 7", LONG);
        assert_eq!((ended.unwrap().code(), &*stdout, &*stderr), (Some(7), &b"out\n"[..], &b"err\n"[..]));
        let large = vec![b'x'; 3 << 20];
        assert!(call(&["cat"], &large, LONG).1 == large, "an input larger than pipes comes back");
        let (ended, ..) = call(&["true"], &large, LONG);
        assert!(ended.unwrap().success(), "an input that nobody reads is no error");
    }

    #[test]
    fn a_later_input_may_answer_what_the_command_printed() {
        let (send, input) = channel();
        let mut send = Some(send);
        let mut stdout: Vec<u8> = Vec::new();
        let argv = ["sh", "-c", "echo first; read -r word; echo second $word"];
        let ended = here().call(Call { argv: &argv, input: Some(input), limit: LONG }, &mut |_, chunk| {
            if let Some(send) = send.take() {
                send.send(b"asked\n".to_vec()).unwrap();
            }
            stdout.extend(chunk);
            ControlFlow::Continue(())
        });
        assert!(ended.unwrap().success());
        assert_eq!(stdout, b"first\nsecond asked\n");
    }

    #[test]
    fn one_without_an_end_is_killed_at_its_limit_and_when_no_more_is_taken() {
        let before = Instant::now();
        let (ended, stdout, _) =
            call(&["sh", "-c", "echo begun; sleep 600"], b"", Duration::from_millis(300));
        assert!(matches!(ended, Err(Error::TimedOut { .. })), "{ended:?}");
        assert_eq!(stdout, b"begun\n");
        let mut taken = 0;
        let ended = here().call(Call { argv: &["yes"], input: None, limit: LONG }, &mut |_, chunk| {
            taken += chunk.len();
            if taken > 1 << 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(ended, Err(Error::Interrupted { .. })), "{ended:?}");
        assert!(before.elapsed() < LONG, "they were waited for");
    }

    #[test]
    fn a_caller_may_take_longer_than_a_child_may_hold_the_streams() {
        let pauses = [Duration::from_millis(300), LINGER + Duration::from_millis(300)];
        let (mut pauses, mut taken) = (pauses.into_iter(), 0);
        let argv = ["head", "-c", "200000", "/dev/zero"];
        let ended = here().call(Call { argv: &argv, input: None, limit: LONG }, &mut |_, chunk| {
            taken += chunk.len();
            pauses.next().into_iter().for_each(thread::sleep);
            ControlFlow::Continue(())
        });
        assert!(ended.unwrap().success() && taken == 200_000, "{taken}");
    }

    #[test]
    fn without_setpriv_the_command_is_started_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/true", dir.path().join("true")).unwrap();
        let call = Call { argv: &["true"], input: None, limit: LONG };
        let ended = Programs::in_folders(dir.path()).call(call, &mut |_, _| ControlFlow::Continue(()));
        assert!(ended.unwrap().success());
    }

    #[test]
    fn one_that_leaves_its_streams_to_a_child_has_an_end() {
        let (ended, ..) = call(&["setsid", "--fork", "sleep", "8"], b"", LONG);
        assert!(matches!(ended, Err(Error::Held { .. })), "{ended:?}");
    }
}
