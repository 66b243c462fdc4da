//! Runs one command on one machine by the system's ssh.

mod attempt;
mod diagnosis;

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use config::Host;
use reconcile::command::{Call, Error as CommandError, Programs, Stream};

use attempt::Attempt;
use diagnosis::Diagnosis;

pub use diagnosis::sudo_refused;

/// How long a command may take on another machine.
pub const LIMIT: Duration = Duration::from_secs(300);

/// The most bytes of a machine's answer. The metrics of 64 partitions have less than a mebibyte, a report some mebibytes.
pub const MOST: usize = 64 << 20;

/// The pause between two looks at whether the caller has interrupted the command.
const GLANCE: Duration = Duration::from_millis(50);

/// ssh's exit code for its own errors (ssh(1), EXIT STATUS).
const SSH_ERROR: i32 = 255;

/// What is to run on a machine.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// POSIX sh, as dash and busybox run it. It is piped to `sh -s`, and starts after all of it has arrived.
    pub script: &'r str,
    pub limit: Duration,
    /// The most bytes of its output.
    pub most: usize,
    pub connecting: Connecting,
}

/// Receives a script's output as it comes, and may write to the script's stdin. Answers false to end the connection.
pub type Take<'t> = dyn FnMut(Stream, &[u8], &mut Stdin) -> bool + 't;

/// The script's stdin; it ends once the sender is dropped.
pub type Stdin = Option<Sender<Vec<u8>>>;

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connecting {
    /// Limit for connecting and key exchange, in whole seconds.
    pub limit: Duration,
    /// The pauses before the second and the third try.
    pub pauses: [Duration; 2],
    /// Keepalive interval in whole seconds; three unanswered ones mean a lost connection.
    pub alive: Duration,
}

/// 10 s for each try; a machine that dies in the middle is noticed within 40 s.
pub const CONNECTING: Connecting = Connecting {
    limit: Duration::from_secs(10),
    pauses: [Duration::from_secs(1), Duration::from_secs(3)],
    alive: Duration::from_secs(10),
};

/// Why there is no answer. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{host}: cannot connect, after {tries} tries: {problem}")]
    Connect { host: Host, tries: u32, problem: String },
    #[error("{host}: {problem}")]
    Refused { host: Host, problem: String },
    #[error("{host}: the command did not finish within {} s: log in and find what hangs", limit.as_secs())]
    TimedOut { host: Host, limit: Duration },
    #[error("{host}: connection lost while the command ran: {problem}")]
    Lost { host: Host, problem: String },
    #[error("{host}: interrupted before the command finished")]
    Interrupted { host: Host },
}

/// Runs a script on the machine, and hands its output to `take` as it comes. Returns the exit code. It tries three times to
/// connect, and never runs a script twice.
///
/// # Errors
/// [`Error`] names each; `take` has received what came before.
pub fn talk(
    programs: &Programs,
    host: &Host,
    request: &Request<'_>,
    take: &mut Take<'_>,
) -> Result<i32, Error> {
    // BatchMode does not reach the ssh that connects to a jump host. OpenSSH 8.4 and later ask this program alone.
    let programs =
        &programs.with_environment(&[("SSH_ASKPASS", "/bin/false"), ("SSH_ASKPASS_REQUIRE", "force")]);
    let mut pauses = request.connecting.pauses.iter();
    let mut tries = 0;
    loop {
        tries += 1;
        let problem = match once(programs, host, request, take)? {
            Ok(code) => return Ok(code),
            Err(problem) => problem,
        };
        let Some(pause) = pauses.next() else {
            return Err(Error::Connect { host: host.clone(), tries, problem });
        };
        tracing::debug!("{host}: {problem}; trying again in {} ms", pause.as_millis());
        let until = Instant::now() + *pause;
        while Instant::now() < until && !programs.is_interrupted() {
            thread::sleep(GLANCE);
        }
        if programs.is_interrupted() {
            return Err(Error::Interrupted { host: host.clone() });
        }
    }
}

/// The exit code, or why no script began, so that it can be tried again.
fn once(
    programs: &Programs,
    host: &Host,
    request: &Request<'_>,
    take: &mut Take<'_>,
) -> Result<Result<i32, String>, Error> {
    let refused = |problem: String| Err(Error::Refused { host: host.clone(), problem });
    let argv = argv(&request.connecting, host);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let (stdin, input) = channel();
    stdin.send(attempt::input(request.script).into_bytes()).ok();
    let mut attempt = Attempt::new(stdin, request.most, take);
    let call = Call { argv: &argv, input: Some(input), limit: request.limit };
    let ended = programs.call(call, &mut |stream, chunk| attempt.take(stream, chunk));
    let Attempt { has_begun, is_flooded, .. } = attempt;
    let code = match ended {
        Ok(status) => status.code(),
        Err(_) if is_flooded && has_begun => {
            return refused(format!(
                "its answer is larger than {} MiB, and the connection was closed: log in and run the command there",
                request.most >> 20
            ));
        }
        Err(_) if is_flooded => return refused(attempt.not_begun()),
        Err(CommandError::NotFound(_)) => return refused(diagnosis::NO_SSH.to_owned()),
        Err(CommandError::TimedOut { limit, .. }) => {
            return Err(Error::TimedOut { host: host.clone(), limit });
        }
        Err(CommandError::Interrupted { .. }) => return Err(Error::Interrupted { host: host.clone() }),
        Err(CommandError::Held { .. }) => {
            return refused("ssh exited, but a process that it started keeps its output open".to_owned());
        }
        Err(error) => return refused(error.to_string()),
    };
    match code {
        Some(SSH_ERROR) | None if has_begun => {
            Err(Error::Lost { host: host.clone(), problem: diagnosis::connection_lost(&attempt.last_line()) })
        }
        Some(code) if has_begun => Ok(Ok(code)),
        Some(SSH_ERROR) => match diagnosis::diagnose(host, &String::from_utf8_lossy(&attempt.before)) {
            Diagnosis::NoConnection(problem) => Ok(Err(problem)),
            Diagnosis::Refused(problem) => refused(problem),
        },
        Some(_) | None => refused(attempt.not_begun()),
    }
}

fn argv(connecting: &Connecting, host: &Host) -> Vec<String> {
    let options = [
        "BatchMode=yes".to_owned(),
        format!("ConnectTimeout={}", connecting.limit.as_secs().max(1)),
        "ConnectionAttempts=1".to_owned(),
        format!("ServerAliveInterval={}", connecting.alive.as_secs().max(1)),
        "ServerAliveCountMax=3".to_owned(),
        // Without banners, and with every error, whatever the user's configuration says.
        "LogLevel=ERROR".to_owned(),
        // A master that stays would hold the streams open. An existing master is used.
        "ControlMaster=no".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
        "PermitLocalCommand=no".to_owned(),
        "RemoteCommand=none".to_owned(),
    ];
    // No terminal, agent or display.
    let mut argv: Vec<String> = ["ssh", "-T", "-a", "-x"].map(str::to_owned).to_vec();
    argv.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
    // Every login shell reads this alike, csh and fish too, and prints nothing at its end. A restricted shell refuses exec.
    argv.extend(["--".to_owned(), host.to_string(), "exec sh -s || sh -s".to_owned()]);
    argv
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the test writes a program")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn an_interrupt_between_two_tries_ends_them() {
        let folder = tempfile::tempdir().unwrap();
        let (ssh, tries) = (folder.path().join("ssh"), folder.path().join("tries"));
        let script = format!(
            "#!/bin/sh\necho x >> {}\necho 'ssh: connect to host gpu1 port 22: Connection refused' >&2\nexit 255\n",
            tries.display()
        );
        std::fs::write(&ssh, script).unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let programs = Programs::in_folders(path).interrupted_by(Arc::clone(&stop));
        let connecting = Connecting { pauses: [Duration::from_secs(60); 2], ..CONNECTING };
        let request = Request { script: "true", limit: LIMIT, most: MOST, connecting };
        let before = Instant::now();
        let error = thread::scope(|scope| {
            let ran =
                scope.spawn(|| talk(&programs, &"gpu1".parse().unwrap(), &request, &mut |_, _, _| true));
            // Once it has tried, it pauses.
            while !tries.exists() && before.elapsed() < LIMIT {
                thread::sleep(GLANCE);
            }
            thread::sleep(Duration::from_millis(500));
            stop.store(true, Ordering::Relaxed);
            ran.join().unwrap().unwrap_err()
        });
        assert!(matches!(error, Error::Interrupted { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&tries).unwrap(), "x\n");
        assert!(before.elapsed() < Duration::from_secs(50), "it paused on");
    }
}
