//! The script that reads a machine's files, in POSIX sh.
//!
//! Its parts are under read/. Builtins collect paths; `ls` describes links and nodes; one `cat`, started by `env`, prints
//! all contents. See read/frames.sh for the format. A path that only a file's text names, such as an import of
//! containerd's, is known once that file was read: a second script asks for it.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

use super::frames::{self, Reading};
use crate::explain::journal::argv;
use crate::printable::quoted;

/// What a command reads there.
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

/// A script for one run.
#[derive(Debug, Clone)]
pub struct Script {
    /// For `sh -s`.
    pub text: String,
    /// Random for each run.
    token: String,
}

impl Script {
    /// `since`: as journalctl takes it, for [`Wanted::Journal`] alone. `named`: paths to read besides, for
    /// [`Wanted::Doctor`] alone; one that is not UTF-8 is left out.
    #[must_use]
    pub fn new(wanted: Wanted, since: Option<&str>, named: &[PathBuf]) -> Self {
        Self::beneath(Path::new(""), wanted, since, named)
    }

    /// The same for a machine that is laid out beneath a folder there, named by an absolute path.
    #[must_use]
    pub fn beneath(folder: &Path, wanted: Wanted, since: Option<&str>, named: &[PathBuf]) -> Self {
        let token = token();
        let (parts, calls): (&[&str], &str) = match wanted {
            Wanted::Machine => (&[MACHINE], "collected"),
            Wanted::Readings => (&[MACHINE, READINGS], "published; readings; processes; links; collected"),
            Wanted::Health => {
                (&[MACHINE, READINGS, LOG], "published; judged; readings; file /proc/uptime; collected; kmsg")
            }
            Wanted::Doctor => (&[MACHINE, UNITS, DOCTOR], "doctor; others; collected"),
            Wanted::Journal => (&[MACHINE, UNITS, LOG], "journal; here; collected; messages"),
        };
        let mut text = String::new();
        writeln!(text, "T={token} R={}", quoted(&folder.to_string_lossy())).ok();
        for part in [FRAMES].iter().chain(parts) {
            text.push_str(part);
        }
        if wanted == Wanted::Journal {
            let argv: Vec<String> = argv(since).iter().map(|word| quoted(word)).collect();
            writeln!(text, "messages() {{ printed {}; }}", argv.join(" ")).ok();
        }
        if wanted == Wanted::Doctor {
            let named: Vec<String> = named.iter().filter_map(|path| path.to_str()).map(quoted).collect();
            writeln!(text, "others() {{ named {}; }}", named.join(" ")).ok();
        }
        // Each process there takes as long as a card: ssh's command passes the uid, and detect needs no time.
        let time = if wanted == Wanted::Machine { "" } else { "$(date +%s)" };
        // The shell parses the whole script first; with </dev/null no child consumes stdin.
        writeln!(text, "main() {{ begin \"$@\"; machine; {calls}; end; }}").ok();
        writeln!(text, "main \"${{1:-$(id -u)}}\" \"{time}\" </dev/null").ok();
        Self { text, token }
    }

    /// What the script printed.
    ///
    /// # Errors
    /// Says in a sentence at which frame the output is no script's, or that it ended too early.
    pub fn parse(&self, stdout: &[u8]) -> Result<Reading, String> {
        frames::parse(&self.token, stdout)
    }
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
