//! One command on one machine, by the system's ssh.

mod attempt;
mod words;

use std::thread;
use std::time::Duration;

use reconcile::command::{Call, Error as CommandError, Programs, Stream};

use super::host::Host;
use attempt::Attempt;
use words::Meaning;

/// How long a command may take there.
pub const LIMIT: Duration = Duration::from_secs(300);

/// Of an answer. A machine whose GPUs have 64 partitions answers with one or two mebibytes.
pub const MOST: usize = 64 << 20;

/// The exit code of [`Rights::Root`] where sudo refuses.
const NO_ROOT: i32 = 77;

/// ssh's own exit code where there is no other (ssh(1), EXIT STATUS).
const OF_SSH: i32 = 255;

/// What is to run on a machine.
#[derive(Debug, Clone)]
pub struct Request<'r> {
    /// POSIX sh, which dash and busybox run: it comes to `sh -s` by stdin. None of it runs before all of it is there.
    pub script: &'r str,
    pub rights: Rights,
    pub limit: Duration,
}

/// As whom a script runs, where ssh's user is not root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// As root by `sudo -n`; as ssh's user where sudo refuses. The script sees by `id -u` which.
    RootIfAllowed,
    /// As root by `sudo -n`, or not at all.
    Root,
}

/// What came back from a command that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub stdout: Vec<u8>,
    /// Also what was said before the script began: why sudo refused.
    pub stderr: Vec<u8>,
    /// Its exit code there.
    pub code: i32,
}

impl Answer {
    /// The last line on stderr, as a terminal may be shown it; empty where there is none.
    #[must_use]
    pub fn last_said(&self) -> String {
        words::last_line(&String::from_utf8_lossy(&self.stderr))
    }
}

/// How a machine is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connecting {
    /// Until its sshd has said who it is and agreed on keys: whole seconds.
    pub limit: Duration,
    /// Before the second and the third try.
    pub pauses: [Duration; 2],
    /// A machine that is silent for three times as long has gone: whole seconds.
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
    #[error("{host}: cannot connect, after {tries} tries: {said}")]
    Connect { host: Host, tries: u32, said: String },
    #[error("{host}: {said}")]
    Refused { host: Host, said: String },
    #[error("{host}: the command had not ended after {} s: log in there, and see what hangs", limit.as_secs())]
    TimedOut { host: Host, limit: Duration },
    #[error("{host}: the connection ended before the command did: {said}")]
    Lost { host: Host, said: String },
    #[error("{host}: interrupted before the command had ended")]
    Interrupted { host: Host },
}

/// Runs a script there. Connecting is tried three times; a command that has begun is never run again.
///
/// # Errors
/// As [`Error`] has them.
pub fn run(programs: &Programs, host: &Host, request: &Request<'_>) -> Result<Answer, Error> {
    run_by(programs, &CONNECTING, host, request)
}

/// As [`run`], reaching the machine in this way.
///
/// # Errors
/// As [`Error`] has them.
pub fn run_by(
    programs: &Programs,
    connecting: &Connecting,
    host: &Host,
    request: &Request<'_>,
) -> Result<Answer, Error> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (code, before) = tried(programs, connecting, host, request, &mut |stream, chunk| {
        let (kept, most) = match stream {
            Stream::Stdout => (&mut stdout, MOST),
            Stream::Stderr => (&mut stderr, MOST / 64),
        };
        // An answer that is cut off is none; of the talk, the start is enough.
        let is_room = kept.len() + chunk.len() <= most;
        if is_room {
            kept.extend(chunk);
        }
        is_room || stream == Stream::Stderr
    })?;
    Ok(Answer { stdout, stderr: [before, stderr].concat(), code })
}

/// As [`run`], and hands over what the script prints as it comes. Gives its exit code.
///
/// # Errors
/// As [`Error`] has them; what came before has been handed over.
pub fn follow(
    programs: &Programs,
    host: &Host,
    request: &Request<'_>,
    take: &mut dyn FnMut(Stream, &[u8]),
) -> Result<i32, Error> {
    let (code, _) = tried(programs, &CONNECTING, host, request, &mut |stream, chunk| {
        take(stream, chunk);
        true
    })?;
    Ok(code)
}

/// The exit code, and what was said on stderr before the script began. `take`: false where it is too much.
fn tried(
    programs: &Programs,
    connecting: &Connecting,
    host: &Host,
    request: &Request<'_>,
    take: &mut dyn FnMut(Stream, &[u8]) -> bool,
) -> Result<(i32, Vec<u8>), Error> {
    let mut pauses = connecting.pauses.iter();
    for tries in 1.. {
        let said = match once(programs, connecting, host, request, take)? {
            Once::Ended(code, before) => return Ok((code, before)),
            Once::NoConnection(said) => said,
        };
        let Some(pause) = pauses.next() else {
            return Err(Error::Connect { host: host.clone(), tries, said });
        };
        tracing::debug!("{host}: {said}; trying again in {} ms", pause.as_millis());
        thread::sleep(*pause);
    }
    Err(Error::Interrupted { host: host.clone() })
}

enum Once {
    Ended(i32, Vec<u8>),
    /// Nothing has begun there: it can be tried again.
    NoConnection(String),
}

fn once(
    programs: &Programs,
    connecting: &Connecting,
    host: &Host,
    request: &Request<'_>,
    take: &mut dyn FnMut(Stream, &[u8]) -> bool,
) -> Result<Once, Error> {
    let refused = |said: String| Err(Error::Refused { host: host.clone(), said });
    let argv = argv(connecting, host, request.rights);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let input = attempt::input(request.script);
    let mut attempt = Attempt::new(take);
    let call = Call { argv: &argv, input: input.as_bytes(), limit: request.limit };
    let ended = programs.call(call, &mut |stream, chunk| attempt.take(stream, chunk));
    let Attempt { has_begun, is_flooded, .. } = attempt;
    let code = match ended {
        Ok(status) => status.code(),
        Err(_) if is_flooded && has_begun => {
            return refused(format!(
                "it answered with more than {} MiB, of which nothing is used",
                MOST >> 20
            ));
        }
        Err(_) if is_flooded => return refused(attempt.not_begun()),
        Err(CommandError::NotFound(_)) => return refused(words::NO_SSH.to_owned()),
        Err(CommandError::TimedOut { limit, .. }) => {
            return Err(Error::TimedOut { host: host.clone(), limit });
        }
        Err(CommandError::Interrupted { .. }) => return Err(Error::Interrupted { host: host.clone() }),
        Err(CommandError::Held { .. }) => {
            return refused("ssh has ended, and a process that it started holds its output open".to_owned());
        }
        Err(error) => return refused(error.to_string()),
    };
    match code {
        Some(OF_SSH) | None if has_begun => {
            Err(Error::Lost { host: host.clone(), said: words::of_lost(&attempt.last_line()) })
        }
        Some(code) if has_begun => Ok(Once::Ended(code, attempt.before)),
        Some(OF_SSH) => match words::meaning(host, &String::from_utf8_lossy(&attempt.before)) {
            Meaning::NoConnection(said) => Ok(Once::NoConnection(said)),
            Meaning::Refused(said) => refused(said),
        },
        Some(NO_ROOT) => refused(words::of_sudo(host, &attempt.last_line())),
        Some(_) | None => refused(attempt.not_begun()),
    }
}

/// What every login shell reads alike, csh and fish among them: one word in single quotes, in which there is no quote,
/// backslash, exclamation mark or line end.
fn argv(connecting: &Connecting, host: &Host, rights: Rights) -> Vec<String> {
    let otherwise = match rights {
        Rights::RootIfAllowed => "exec sh -s".to_owned(),
        Rights::Root => format!("exit {NO_ROOT}"),
    };
    let command = format!(
        "sh -c 'test \"$(id -u)\" = 0 && exec sh -s; \
         sudo -n sh -c : </dev/null && exec sudo -n sh -s; {otherwise}'"
    );
    let options = [
        "BatchMode=yes".to_owned(),
        format!("ConnectTimeout={}", connecting.limit.as_secs().max(1)),
        "ConnectionAttempts=1".to_owned(),
        format!("ServerAliveInterval={}", connecting.alive.as_secs().max(1)),
        "ServerAliveCountMax=3".to_owned(),
        // Without banners, and with every error, whatever the user's configuration says.
        "LogLevel=ERROR".to_owned(),
        // A master that stays would hold the streams open. One that is there is used.
        "ControlMaster=no".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
        "PermitLocalCommand=no".to_owned(),
        "RemoteCommand=none".to_owned(),
    ];
    // No terminal, agent or display.
    let mut argv: Vec<String> = ["ssh", "-T", "-a", "-x"].map(str::to_owned).to_vec();
    argv.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
    argv.extend(["--".to_owned(), host.to_string(), command]);
    argv
}
