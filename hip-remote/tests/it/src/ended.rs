//! A command that has run to its end.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::spawn;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// # Panics
    /// The program failed.
    #[track_caller]
    pub fn well(self) -> String {
        assert!(self.status.success(), "{}: {}{}", self.status, self.stdout, self.stderr);
        self.stdout
    }
}

/// Runs a command, at most two minutes.
///
/// # Panics
/// The command cannot be executed, or hangs.
#[track_caller]
pub fn ended(command: &mut Command) -> Ended {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let [stdout, stderr] = [reader(child.stdout.take().unwrap()), reader(child.stderr.take().unwrap())];
    let begin = Instant::now();
    let mut hangs = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(120) {
            hangs = true;
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
    assert!(!hangs, "{command:?} hangs: {stdout}{stderr}");
    Ended { status, stdout, stderr }
}

fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
