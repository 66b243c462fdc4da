//! Runs rocworker on another machine: the installed one, or a copy of this program.

use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{LazyLock, OnceLock};
use std::thread;
use std::time::Duration;

use config::Host;
use flate2::Compression;
use flate2::write::GzEncoder;
use printable::{printable, quoted, shortened};
use reconcile::Digest;
use reconcile::command::{Programs, Stream};
use root::Root;

use super::ssh::{self, CONNECTING, Error, Request, Stdin, sudo_refused};

const SCRIPT: &str = include_str!("program.sh");

/// What `--version` prints.
const VERSION: &str = concat!("rocworker ", env!("CARGO_PKG_VERSION"));

/// The most bytes of a program: far more than one that is built without optimization has.
const LARGEST: usize = 512 << 20;

/// The most bytes of a line of the script's.
const LONGEST: usize = 64 << 10;

/// Exit codes by which a shell reports that a program cannot be executed, and that it is not there (sh(1)). rocworker has
/// neither.
const NOT_EXECUTED: i32 = 126;
const NOT_THERE: i32 = 127;

/// Which rocworker runs on the other machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The installed one where it has this program's version, or else a copy of this program.
    Same,
    /// The installed one where it has this program's version, or else a copy of this program; as root.
    Root,
    /// The installed one of any version, which knows its own state, or else a copy of this program.
    Any,
    /// The installed one, as root.
    Installed,
}

/// A command for the rocworker on another machine.
#[derive(Debug, Clone)]
pub struct Command<'c> {
    pub which: Which,
    /// The command's arguments.
    pub words: &'c [String],
    /// Whether the answer is for a terminal with colours.
    pub colour: bool,
    pub limit: Duration,
    /// The most bytes of output.
    pub most: usize,
}

/// What comes from the other machine.
#[derive(Debug)]
pub enum Event<'e> {
    /// This program is copied into a folder there.
    Copying { folder: String, kib: usize },
    /// rocworker begins to run there. Its stdin ends once the sender is dropped. `unprivileged`: why it is not root's.
    Begun { stdin: Sender<Vec<u8>>, unprivileged: Option<String> },
    /// Output of rocworker's, as it comes.
    Output(Stream, &'e [u8]),
}

impl Event<'_> {
    /// What a person is to know of the event.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Copying { folder, kib } => Some(format!("copying this rocworker to {folder} ({kib} KiB)")),
            Self::Begun { unprivileged, .. } => unprivileged.as_ref().map(|why| {
                format!("data that only root can read is unknown, such as the kernel's log: {why}")
            }),
            Self::Output(..) => None,
        }
    }
}

/// This program's file, as it is copied to other machines.
static OWN: LazyLock<Result<File, root::Error>> = LazyLock::new(File::read);

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    digest: Digest,
    packed: OnceLock<Vec<u8>>,
}

impl File {
    fn read() -> Result<Self, root::Error> {
        let bytes = Root::open(Path::new("/"))?.read("/proc/self/exe", LARGEST)?;
        Ok(Self { digest: Digest::of(&bytes), bytes, packed: OnceLock::new() })
    }

    /// The program's bytes by gzip, as fast as it goes: the network is seldom slower.
    fn packed(&self) -> &[u8] {
        self.packed.get_or_init(|| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            // A vector takes every byte.
            packed.write_all(&self.bytes).ok();
            packed.finish().unwrap_or_default()
        })
    }
}

/// Runs a command of rocworker's on a machine, and hands what comes from there to `take`, which answers false to end the
/// connection. Returns the exit code.
///
/// # Errors
/// [`Error`] names each.
pub fn run(
    programs: &Programs,
    host: &Host,
    command: &Command<'_>,
    take: &mut dyn FnMut(Event<'_>) -> bool,
) -> Result<i32, Error> {
    let script = script(host, command);
    let request =
        Request { script: &script, limit: command.limit, most: command.most, connecting: CONNECTING };
    if command.which != Which::Installed {
        // The digest is ready once ssh has connected.
        thread::spawn(|| OWN.is_ok());
    }
    let mut talk = Talk { host, begun: Vec::new(), state: State::Asked, take };
    let ended =
        ssh::talk(programs, host, &request, &mut |stream, chunk, stdin| talk.hear(stream, chunk, stdin));
    let refused = |problem: String| Err(Error::Refused { host: host.clone(), problem });
    match (talk.state, ended) {
        (State::Failed(problem), Ok(_) | Err(Error::Refused { .. })) => refused(problem),
        (State::Copied, Err(Error::TimedOut { limit, .. })) => refused(format!(
            "the copy of rocworker did not arrive within {} s: install its package there",
            limit.as_secs()
        )),
        (State::Running, Ok(NOT_THERE)) => {
            refused("rocworker went while it was starting: run the command again".to_owned())
        }
        (State::Running, Ok(NOT_EXECUTED)) => refused(format!(
            "rocworker cannot be executed there, maybe from a file system mounted noexec: install its package there, or set \
             XDG_CACHE_HOME for {} to another folder",
            host.user.as_deref().unwrap_or("ssh's user")
        )),
        (State::Asked | State::Named(_) | State::Copied, Ok(code)) => refused(format!(
            "the script that starts rocworker ended with code {code}: log in and try its /bin/sh, find, sha256sum and gzip"
        )),
        (_, ended) => ended,
    }
}

fn script(host: &Host, command: &Command<'_>) -> String {
    let which = match command.which {
        Which::Same => "same root=''",
        Which::Root => "same root=yes",
        Which::Any => "any root=''",
        Which::Installed => "installed root=yes",
    };
    let words: Vec<String> = command.words.iter().map(|word| quoted(word)).collect();
    format!(
        "which={which} version={} machine={} colour={} host={}\n{SCRIPT}main {}",
        quoted(VERSION),
        std::env::consts::ARCH,
        if command.colour { "yes" } else { "''" },
        quoted(&host.to_string()),
        words.join(" ")
    )
}

enum State {
    Asked,
    /// The script has the program's digest.
    Named(&'static File),
    /// The program was sent.
    Copied,
    Running,
    Failed(String),
}

/// The script's lines until rocworker runs, and its output from then on.
struct Talk<'t> {
    host: &'t Host,
    /// A line of the script's that has not ended.
    begun: Vec<u8>,
    state: State,
    take: &'t mut dyn FnMut(Event<'_>) -> bool,
}

impl Talk<'_> {
    fn hear(&mut self, stream: Stream, chunk: &[u8], stdin: &mut Stdin) -> bool {
        if stream == Stream::Stderr || matches!(self.state, State::Running) {
            return (self.take)(Event::Output(stream, chunk));
        }
        self.begun.extend(chunk);
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let rest = self.begun.split_off(end + 1);
            let line = std::mem::replace(&mut self.begun, rest);
            let line = String::from_utf8_lossy(&line);
            let (key, value) = line.trim_end_matches('\n').split_once('\t').unwrap_or_default();
            if !self.line(key, shortened(printable(value), 1000), stdin) {
                return false;
            }
            if matches!(self.state, State::Running) {
                let rest = std::mem::take(&mut self.begun);
                return rest.is_empty() || (self.take)(Event::Output(stream, &rest));
            }
        }
        self.begun.len() <= LONGEST || self.fail("its script printed a line without an end".to_owned())
    }

    fn line(&mut self, key: &str, value: String, stdin: &mut Stdin) -> bool {
        match (key, &self.state) {
            ("digest", State::Asked) => match &*OWN {
                Ok(file) => {
                    self.state = State::Named(file);
                    if let Some(stdin) = stdin {
                        stdin.send(format!("{}\n", file.digest.as_str()).into_bytes()).ok();
                    }
                    true
                }
                Err(error) => self.fail(error.to_string()),
            },
            ("upload", State::Named(file)) => {
                let packed = file.packed();
                self.state = State::Copied;
                if let Some(stdin) = stdin {
                    // Where the connection has ended, ssh says so.
                    stdin.send(format!("{}\n", packed.len()).into_bytes()).ok();
                    stdin.send(packed.to_vec()).ok();
                }
                (self.take)(Event::Copying { folder: value, kib: packed.len() >> 10 })
            }
            ("run", _) => {
                self.state = State::Running;
                let unprivileged = (!value.is_empty()).then(|| sudo_refused(self.host, &value));
                stdin.take().is_none_or(|stdin| (self.take)(Event::Begun { stdin, unprivileged }))
            }
            ("refused", _) => self.fail(sudo_refused(self.host, &value)),
            ("problem", _) => self.fail(value),
            _ => {
                let key = shortened(printable(key), 100);
                self.fail(format!("its script printed an unexpected line: {key}"))
            }
        }
    }

    fn fail(&mut self, problem: String) -> bool {
        self.state = State::Failed(problem);
        false
    }
}
