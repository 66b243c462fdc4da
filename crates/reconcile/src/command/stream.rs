//! An answer of any length, read while the command writes it.

use std::io::{PipeReader, pipe};
use std::sync::mpsc::channel;

use super::{Error, LINGER, Lines, Programs, Stream, kept, kill, said};

impl Programs {
    /// Runs a command whose stdout `read` takes, for as long as the two need: a journal of years has no time limit. A
    /// command whose stdout is left before its end gets SIGPIPE. Gives the start of its stderr.
    ///
    /// # Errors
    /// When it is not there, cannot be started, ends with anything but 0, or does not end once `read` has.
    pub fn stream(&self, argv: &[&str], read: impl FnOnce(PipeReader)) -> Result<Vec<u8>, Error> {
        let program = self.program_of(argv)?;
        let name = argv.join(" ");
        let start = |cause| Error::Start { argv: name.clone(), cause };
        let (stdout, stdout_of_child) = pipe().map_err(start)?;
        let (stderr, stderr_of_child) = pipe().map_err(start)?;
        let (send, _) = channel();
        let stderr = kept(stderr, self.kept, Lines { stream: Stream::Stderr, to: send }).map_err(start)?;
        let handle = self.start(program, argv, stdout_of_child, stderr_of_child).map_err(start)?;
        read(stdout);
        let Some(ended) = handle.wait_timeout(LINGER).map_err(start)? else {
            kill(&handle);
            handle.wait().map_err(start)?;
            return Err(Error::TimedOut { argv: name, limit: LINGER });
        };
        let Ok(stderr) = stderr.recv_timeout(LINGER) else {
            kill(&handle);
            return Err(Error::Held { argv: name });
        };
        if !ended.status.success() {
            return Err(Error::Failed { argv: name, status: ended.status, said: said(&stderr) });
        }
        Ok(stderr)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn here() -> Programs {
        Programs::in_folders("/usr/bin:/bin")
    }

    #[test]
    fn more_than_is_kept_arrives_and_stderr_comes_back() {
        let mut bytes = 0;
        let read = |mut stdout: PipeReader| {
            bytes = std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
        };
        let script = r#"BEGIN { print "word" > "/dev/stderr"; for (; i < 500000; i++) print "a line" }"#;
        assert_eq!(here().stream(&["awk", script], read).unwrap(), b"word\n");
        assert_eq!(bytes, 7 * 500_000);
    }

    #[test]
    fn one_that_is_left_ends_and_a_failure_tells_its_words() {
        let read = |mut stdout: PipeReader| stdout.read_exact(&mut [0; 4]).unwrap();
        let left = here().stream(&["yes"], read).unwrap_err().to_string();
        assert!(left.starts_with("yes ended with signal: 13"), "{left}");
        let failed = here().stream(&["ls", "/no/such"], |_| {}).unwrap_err().to_string();
        assert!(failed.ends_with("No such file or directory"), "{failed}");
        let missing = here().stream(&["no-such-program"], |_| {}).unwrap_err().to_string();
        assert_eq!(missing, "no-such-program is not installed: it is in no folder of PATH");
    }
}
