//! The one doorway to commands: argv in, both streams and the status out. No shell, and an
//! end to every command's patience: a tool that hangs on a sick driver must not hang what asks it.

mod call;

use std::ffi::OsString;
use std::io::PipeWriter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use root::Root;

pub use call::Call;

/// How many bytes of each stream are kept by default. The rest is read and dropped, so that the command can
/// end.
const KEPT: usize = 1 << 20;

/// How long the streams may stay open after the command has ended: a child of the command may hold them. On a
/// machine under load, reading the rest takes a second.
const LINGER: Duration = Duration::from_secs(5);

/// The pause between two looks at whether the caller wants the command to end, and at the lines that have
/// come.
const GLANCE: Duration = Duration::from_millis(50);

/// The folders of administration that an ordinary user's PATH leaves out, and ROCm's own, which no PATH has by itself.
const FURTHER: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/rocm/bin"];

/// The commands of this machine.
#[derive(Debug, Clone)]
pub struct Programs {
    path: OsString,
    interrupt: Option<Arc<AtomicBool>>,
    environment: Vec<(String, String)>,
    /// Bytes of each stream.
    kept: usize,
}

/// The stream of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The output of a command that ended with 0: of each stream the first mebibyte, or as much as
/// [`Programs::keeping`] allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// A command that failed, and how.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} is not installed: it is in no folder of PATH")]
    NotFound(String),
    #[error("cannot run {argv}: {cause}")]
    Start { argv: String, cause: std::io::Error },
    /// `reported`: what [`reported`] makes of its stderr.
    #[error("{argv} ended with {status}{reported}")]
    Failed { argv: String, status: std::process::ExitStatus, reported: String },
    #[error("{argv} was killed: after {} s it had not ended", limit.as_secs())]
    TimedOut { argv: String, limit: Duration },
    #[error("{argv} has ended, and what it had started held its output open for {} s more", LINGER.as_secs())]
    Held { argv: String },
    #[error("{argv} was killed: it was interrupted")]
    Interrupted { argv: String },
}

impl Programs {
    /// The commands on PATH, in the sbin folders and in ROCm's; `None` beneath another Root than `/`, where no command
    /// is run.
    #[must_use]
    pub fn of(root: &Root) -> Option<Self> {
        root.is_host().then(Self::here)
    }

    /// The commands of this machine, whichever Root is meant: for programs that only read, such as dpkg-query.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "PATH alone says where programs are")]
    pub fn here() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(FURTHER.map(PathBuf::from));
        // A folder with a colon in its name cannot be joined, but PATH cannot have named it either.
        Self::in_folders(std::env::join_paths(folders).unwrap_or(path))
    }

    /// The commands in these folders, given as PATH gives them.
    #[must_use]
    pub fn in_folders(path: impl Into<OsString>) -> Self {
        Self { path: path.into(), interrupt: None, environment: Vec::new(), kept: KEPT }
    }

    /// Makes each command end, with its children, once `interrupt` is true.
    #[must_use]
    pub fn interrupted_by(&self, interrupt: Arc<AtomicBool>) -> Self {
        Self { interrupt: Some(interrupt), ..self.clone() }
    }

    /// Whether the caller wants the command to end.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.as_deref().is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }

    /// Adds variables to the environment of each command.
    #[must_use]
    pub fn with_environment(&self, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut same = self.clone();
        same.environment.extend(variables);
        same
    }

    /// Limits what is kept of each stream of a command to `bytes`.
    #[must_use]
    pub fn keeping(&self, bytes: usize) -> Self {
        Self { kept: bytes, ..self.clone() }
    }

    /// The path of a command.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        which::which_in(name, Some(&self.path), "/").ok()
    }

    /// Runs a command to its end, or kills it with its children after `limit`.
    ///
    /// # Errors
    /// When the command is not there, cannot be started, ends with anything but 0, does not end, or is
    /// interrupted.
    pub fn run(&self, argv: &[&str], limit: Duration) -> Result<Output, Error> {
        self.follow(argv, limit, &mut |_, _| {})
    }

    /// Runs as [`Programs::run`] does, and passes each line of both streams to `hear` as it comes, without
    /// the line feed or carriage return that ends it.
    ///
    /// # Errors
    /// Fails where [`Programs::run`] fails.
    pub fn follow(
        &self,
        argv: &[&str],
        limit: Duration,
        hear: &mut dyn FnMut(Stream, &str),
    ) -> Result<Output, Error> {
        let program = self.program_of(argv)?;
        let (mut stdout, mut stderr) = (Kept::default(), Kept::default());
        let call = Call { argv, input: None, limit };
        let status = self.attend(program, argv, call, &mut |stream, chunk| {
            let kept = if stream == Stream::Stdout { &mut stdout } else { &mut stderr };
            kept.take(chunk, self.kept, &mut |line| hear(stream, line));
            ControlFlow::Continue(())
        })?;
        stdout.end_line(&mut |line| hear(Stream::Stdout, line));
        stderr.end_line(&mut |line| hear(Stream::Stderr, line));
        if !status.success() {
            return Err(Error::Failed { argv: argv.join(" "), status, reported: reported(&stderr.bytes) });
        }
        Ok(Output { stdout: stdout.bytes, stderr: stderr.bytes })
    }

    fn program_of(&self, argv: &[&str]) -> Result<PathBuf, Error> {
        let name = argv.first().copied().unwrap_or_default();
        self.find(name).ok_or_else(|| Error::NotFound(name.to_owned()))
    }

    fn command(
        &self,
        program: PathBuf,
        argv: &[&str],
        stdout: PipeWriter,
        stderr: PipeWriter,
    ) -> duct::Expression {
        let mut command = duct::cmd(program, argv.iter().skip(1));
        for (name, value) in &self.environment {
            command = command.env(name, value);
        }
        command
            // Messages and numbers as programs read them.
            .env("LC_ALL", "C.UTF-8")
            .stdout_file(stdout)
            .stderr_file(stderr)
            .unchecked()
            // A group of its own, so that its children can be killed with it.
            .before_spawn(|command| {
                std::os::unix::process::CommandExt::process_group(command, 0);
                Ok(())
            })
    }
}

fn kill(handle: &duct::Handle) {
    for pid in handle.pids() {
        // Only a group that has ended by itself is not there to be killed.
        i32::try_from(pid).map(|pid| killpg(Pid::from_raw(pid), Signal::SIGKILL)).ok();
    }
}

/// What is kept of a stream, and its line that has not ended yet.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    line: Vec<u8>,
}

impl Kept {
    /// Of a line without an end, a part is heard.
    fn take(&mut self, chunk: &[u8], most: usize, hear: &mut dyn FnMut(&str)) {
        self.bytes.extend(chunk.iter().take(most - self.bytes.len()));
        for byte in chunk {
            if matches!(byte, b'\n' | b'\r') || self.line.len() >= KEPT {
                self.end_line(hear);
            } else {
                self.line.push(*byte);
            }
        }
    }

    fn end_line(&mut self, hear: &mut dyn FnMut(&str)) {
        if !self.line.is_empty() {
            hear(&String::from_utf8_lossy(&self.line));
            self.line.clear();
        }
    }
}

/// The end of a sentence on a command that failed: the last line of its stderr that does not only point to its `--help`,
/// in front of it a colon; empty when it wrote none.
#[must_use]
pub fn reported(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    // docker, and coreutils of a wrong option, end with a word on where to read more.
    let last = lines().rfind(|line| !line.contains("--help")).or_else(|| lines().next_back());
    last.map_or_else(String::new, |line| {
        let line: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
        format!(": {line}")
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::thread;
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn here() -> Programs {
        Programs::in_folders("/usr/bin:/bin")
    }

    #[test]
    fn arguments_arrive_as_they_are_and_both_streams_come_back() {
        let output = here().run(&["printf", "%s|", "a b", "$(id)", ";"], LONG).unwrap();
        assert_eq!(output, Output { stdout: b"a b|$(id)|;|".to_vec(), stderr: Vec::new() });
    }

    #[test]
    fn a_failure_tells_argv_status_and_the_last_line_of_stderr() {
        let missing = here().run(&["no-such-program"], LONG).unwrap_err().to_string();
        assert_eq!(missing, "no-such-program is not installed: it is in no folder of PATH");
        let failed = here().run(&["ls", "/no/such"], LONG).unwrap_err().to_string();
        assert!(failed.starts_with("ls /no/such ended with exit status: 2: "), "{failed}");
        assert!(failed.ends_with("No such file or directory"), "{failed}");
        let wrong = here().run(&["ls", "--no-such"], LONG).unwrap_err().to_string();
        assert!(wrong.ends_with("ls: unrecognized option '--no-such'"), "{wrong}");
    }

    #[test]
    fn a_command_that_does_not_end_is_killed_with_its_children() {
        let limit = Duration::from_millis(50);
        for argv in [&["sleep", "600"][..], &["yes"], &["timeout", "600", "sleep", "600"]] {
            let before = std::time::Instant::now();
            let error = here().run(argv, limit).unwrap_err().to_string();
            assert!(error.contains("was killed"), "{argv:?}: {error}");
            assert!(before.elapsed() < LONG, "{argv:?} was waited for");
        }
    }

    #[test]
    fn what_has_ended_and_left_a_child_with_its_output_has_its_own_error() {
        let error = here().run(&["setsid", "--fork", "sleep", "8"], LONG).unwrap_err().to_string();
        let expected =
            "setsid --fork sleep 8 has ended, and what it had started held its output open for 5 s more";
        assert_eq!(error, expected);
    }

    #[test]
    fn each_line_is_reported_as_it_comes_and_variables_are_set() {
        let programs = here().with_environment(&[("FIRST", "one"), ("SECOND", "two")]);
        let mut heard = Vec::new();
        let script = r#"BEGIN { printf "%s\r%s\n\nlast", ENVIRON["FIRST"], ENVIRON["SECOND"]; print "bad" > "/dev/stderr" }"#;
        let output = programs
            .follow(&["awk", script], LONG, &mut |stream, line| heard.push((stream, line.to_owned())))
            .unwrap();
        assert_eq!(output.stdout, b"one\rtwo\n\nlast");
        let of = |stream| {
            heard.iter().filter(move |it| it.0 == stream).map(|it| it.1.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of(Stream::Stdout), ["one", "two", "last"]);
        assert_eq!(of(Stream::Stderr), ["bad"]);
    }

    #[test]
    fn a_command_ends_when_its_caller_is_interrupted() {
        let interrupt = Arc::new(AtomicBool::new(false));
        let programs = here().interrupted_by(Arc::clone(&interrupt));
        assert_eq!(programs.run(&["printf", "x"], LONG).unwrap().stdout, b"x");
        let before = Instant::now();
        thread::scope(|scope| {
            let ran = scope.spawn(|| programs.run(&["timeout", "600", "sleep", "600"], LONG));
            interrupt.store(true, Ordering::Relaxed);
            let reported = ran.join().unwrap().unwrap_err().to_string();
            assert_eq!(reported, "timeout 600 sleep 600 was killed: it was interrupted");
        });
        assert!(before.elapsed() < LONG, "it was waited for");
    }

    #[test]
    fn of_an_endless_answer_the_start_is_kept() {
        let output = here().run(&["head", "-c", "5000000", "/dev/zero"], LONG).unwrap();
        assert_eq!(output.stdout.len(), KEPT);
        let output = here().keeping(5).run(&["head", "-c", "5000000", "/dev/zero"], LONG).unwrap();
        assert_eq!(output.stdout.len(), 5);
    }

    #[test]
    fn beneath_another_root_there_is_no_command() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Programs::of(&Root::open(dir.path()).unwrap()).is_none());
        assert!(Programs::of(&Root::open(Path::new("/")).unwrap()).unwrap().find("ls").is_some());
    }
}
