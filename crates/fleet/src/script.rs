//! The script that reads a machine's files, in POSIX sh.
//!
//! The script's parts are under read/. Builtins collect paths; `ls` describes links and nodes; one `cat`, started by
//! `env`, prints all contents. See read/frames.sh for the format. Some paths are known only by an answer, such as an
//! import that containerd's configuration names: a further script reads them too.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

use explain::journal::argv;
use printable::quoted;
use root::Asked;

use super::frames::{self, RemoteFiles};

/// How often one command connects to a machine: a file may name a folder, whose files name others.
pub const MOST_CONNECTIONS: usize = 4;

/// What a command reads on another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// `detect`
    Machine,
    /// `metrics`
    Readings,
    /// `health`
    Health,
    /// `doctor`
    Doctor,
    /// `explain --journal`, from this time on, or this boot's
    Journal,
}

const FRAMES: &str = include_str!("read/frames.sh");
const MACHINE: &str = include_str!("read/machine.sh");
const READINGS: &str = include_str!("read/readings.sh");
const LOG: &str = include_str!("read/log.sh");
const DOCTOR: &str = include_str!("read/doctor.sh");
const UNITS: &str = include_str!("read/units.sh");

/// What an answer lacks and a further script is to read.
#[derive(Debug, Clone, Default)]
pub struct Further {
    /// Paths that the script reads; a path that is not UTF-8 is left out.
    pub paths: BTreeMap<PathBuf, Asked>,
    /// [`RemoteFiles::asleep`] of the answer that lacks them: if other cards are suspended now, the script reads no
    /// partition in `paths`.
    pub asleep: String,
}

impl Further {
    /// False where nothing is new.
    pub fn add(&mut self, lacking: BTreeMap<PathBuf, Asked>) -> bool {
        let mut is_new = false;
        for (path, asked) in lacking {
            if self.paths.get(&path) < Some(&asked) {
                is_new = true;
                self.paths.insert(path, asked);
            }
        }
        is_new
    }
}

/// A script for one run.
#[derive(Debug, Clone)]
pub struct Script {
    /// What `sh -s` reads from stdin.
    pub text: String,
    /// A random text, so that no file's contents can look like the end of a frame.
    token: String,
}

impl Script {
    /// `since`: as journalctl takes it, for [`Wanted::Journal`] alone.
    #[must_use]
    pub fn new(wanted: Wanted, since: Option<&str>, further: &Further) -> Self {
        Self::beneath(Path::new(""), wanted, since, further)
    }

    /// The script for a machine that is laid out beneath a folder of the host, named by an absolute path.
    #[must_use]
    pub fn beneath(folder: &Path, wanted: Wanted, since: Option<&str>, further: &Further) -> Self {
        let token = token();
        let (parts, paths): (&[&str], &str) = match wanted {
            Wanted::Machine => (&[MACHINE], ""),
            Wanted::Readings => (&[MACHINE, READINGS], "published; readings; processes; links; "),
            Wanted::Health => (&[MACHINE, READINGS, LOG], "published; judged; readings; file /proc/uptime; "),
            Wanted::Doctor => (&[MACHINE, UNITS, DOCTOR], "doctor; "),
            Wanted::Journal => (&[MACHINE, UNITS, LOG], "journal; here; "),
        };
        let log = match wanted {
            Wanted::Machine | Wanted::Readings | Wanted::Doctor => String::new(),
            Wanted::Health => "kmsg; ".to_owned(),
            Wanted::Journal => format!("printed {}; ", words(argv(since).iter().map(AsRef::as_ref))),
        };
        let mut text = String::new();
        let (root, asleep) = (quoted(&folder.to_string_lossy()), quoted(&further.asleep));
        writeln!(text, "T={token} R={root} asleep={asleep}").ok();
        for part in [FRAMES].iter().chain(parts) {
            text.push_str(part);
        }
        let those = |wish| {
            let those = further.paths.iter().filter(move |(_, asked)| **asked == wish);
            words(those.filter_map(|(path, _)| path.to_str()))
        };
        let further = format!("described {}; named {}", those(Asked::Meta), those(Asked::Content));
        // Each process there takes as long as a card: ssh's command passes the uid, and detect needs no time.
        let time = if wanted == Wanted::Machine { "" } else { "$(date +%s)" };
        // The shell parses the whole script first; with </dev/null no child consumes stdin.
        writeln!(text, "main() {{ begin \"$@\"; machine; {paths}{further}; collected; {log}end; }}").ok();
        writeln!(text, "main \"${{1:-$(id -u)}}\" \"{time}\" </dev/null").ok();
        Self { text, token }
    }

    /// What the script printed.
    ///
    /// # Errors
    /// Says in a sentence at which frame the output is no script's, or that it ended too early.
    pub fn parse(&self, stdout: &[u8]) -> Result<RemoteFiles, String> {
        frames::parse(&self.token, stdout)
    }
}

/// Quotes the words as arguments of a shell command.
fn words<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// 128 unpredictable bits, from the standard library's hash keys.
fn token() -> String {
    let state = RandomState::new();
    let half = |n: u8| {
        let mut hasher = state.build_hasher();
        hasher.write_u8(n);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_runs_have_the_same_word() {
        let tokens: std::collections::BTreeSet<String> = (0..100).map(|_| token()).collect();
        assert_eq!(tokens.len(), 100);
        assert!(tokens.iter().all(|token| token.len() == 32));
    }
}
