//! Which version an engine has, asked once for each build of its program.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use reconcile::Status;
use reconcile::command::{Error, Programs};
use reconcile::dpkg::{self, Database};
use root::{Identity, Root};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// How long an engine may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a program that did not tell its version in time is left alone, in seconds: waiting for it again would keep
/// every plan, status and hook as long.
const LEFT_ALONE_S: u64 = 60 * 60;

/// A release: what follows these three numbers is the distributor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// The first word of a text that begins as a version does: `1.7.24~ds1`, `v2.1.9`, `26.1.5+dfsg1,`.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        text.split_whitespace().find_map(|word| Self::parse(word.strip_prefix('v').unwrap_or(word)))
    }

    fn parse(word: &str) -> Option<Self> {
        let mut numbers = word.splitn(3, '.');
        let mut number = |last: bool| {
            let part = numbers.next()?;
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (digits, rest) = part.split_at(digits);
            (last || rest.is_empty()).then(|| digits.parse().ok())?
        };
        Some(Self { major: number(false)?, minor: number(false)?, patch: number(true)? })
    }
}

/// Versions by program. What was asked is kept, so that asking again starts no process.
#[derive(Debug)]
pub struct Versions<'a> {
    root: &'a Root,
    programs: Option<&'a Programs>,
    known: BTreeMap<PathBuf, Known>,
    patience: Duration,
    now: Option<Timestamp>,
}

/// A program's answer, and the identity of the file that gave it: another build at that path is asked anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub identity: Identity,
    #[serde(flatten)]
    pub answer: Answer,
}

/// What a program answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Version(Version),
    /// No version: the program is missing, or did not answer in time.
    Late {
        /// Seconds since 1970.
        at: u64,
        problem: String,
    },
}

impl<'a> Versions<'a> {
    /// `programs`: `None` beneath another Root than `/`, where dpkg-query is asked instead. `known`: what an
    /// earlier run heard.
    #[must_use]
    pub fn new(root: &'a Root, programs: Option<&'a Programs>, known: BTreeMap<PathBuf, Known>) -> Self {
        Self { root, programs, known, patience: PATIENCE, now: None }
    }

    /// Gives the time, so that a program that did not print its version in time is not asked again within the hour.
    /// Without a time the program is asked in every run.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        Self { now: Some(now), ..self }
    }

    /// What is known now, for the next run.
    #[must_use]
    pub fn known(&self) -> &BTreeMap<PathBuf, Known> {
        &self.known
    }

    /// The version of the program at `path`, which may also come from one of these Debian packages.
    ///
    /// # Errors
    /// Why the version is unknown.
    pub fn of(&mut self, path: &Path, packages: &[&str]) -> Result<Version, String> {
        let Some(programs) = self.programs else { return self.of_package(path, packages) };
        let identity = self.root.identity(path).map_err(|error| error.to_string())?;
        match self.known.get(path).filter(|known| known.identity == identity).map(|known| &known.answer) {
            Some(Answer::Version(version)) => return Ok(*version),
            Some(Answer::Late { at, problem }) if self.is_left_alone(*at) => {
                return Err(format!(
                    "{problem}, at {}; it is asked again an hour after that, or once another build of it is there",
                    Timestamp::of(UNIX_EPOCH + Duration::from_secs(*at))
                ));
            }
            _ => {}
        }
        let argv = [&*path.to_string_lossy(), "--version"];
        let output = programs.run(&argv, self.patience).map_err(|error| {
            let problem = error.to_string();
            if matches!(error, Error::TimedOut { .. } | Error::Held { .. }) {
                self.remember_late(path, identity, &problem);
            }
            problem
        })?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let version = Version::find(&printed)
            .ok_or_else(|| format!("{} --version names no version: {:?}", path.display(), printed.trim()))?;
        self.known.insert(path.to_owned(), Known { identity, answer: Answer::Version(version) });
        Ok(version)
    }

    /// Whether a program runs at all: it prints a version, or fails with a message of its own that contains `own`. Each
    /// build is run once. Beneath another Root than `/` nothing is run.
    ///
    /// # Errors
    /// Why the program does not run.
    pub fn run(&mut self, path: &Path, own: &str) -> Result<(), String> {
        if self.programs.is_none() {
            return Ok(());
        }
        let identity = self.root.identity(path).map_err(|error| error.to_string())?;
        let is_known = |known: &Known| {
            known.identity == identity
                && matches!(&known.answer, Answer::Late { problem, .. } if problem.contains(own))
        };
        if self.known.get(path).is_some_and(is_known) {
            return Ok(());
        }
        let Err(problem) = self.of(path, &[]) else { return Ok(()) };
        if !problem.contains(own) {
            return Err(problem);
        }
        self.remember_late(path, identity, &problem);
        Ok(())
    }

    fn remember_late(&mut self, path: &Path, identity: Identity, problem: &str) {
        if let Some(now) = self.now {
            let answer = Answer::Late { at: now.seconds(), problem: problem.to_owned() };
            self.known.insert(path.to_owned(), Known { identity, answer });
        }
    }

    /// A time that is still to come is from a clock that was wrong.
    fn is_left_alone(&self, since: u64) -> bool {
        let age = self.now.and_then(|now| now.seconds().checked_sub(since));
        age.is_some_and(|age| age < LEFT_ALONE_S)
    }

    /// dpkg-query's answer, which counts until dpkg's status file is another.
    fn of_package(&mut self, path: &Path, packages: &[&str]) -> Result<Version, String> {
        let unknown = |why: &str| format!("{} is not run beneath another root, and {why}", path.display());
        if packages.is_empty() {
            return Err(unknown("no package records its version"));
        }
        let identity = self.root.identity(dpkg::STATUS);
        let identity = identity.map_err(|error| unknown(&format!("no dpkg records its version: {error}")))?;
        if let Some(Known { identity: of, answer: Answer::Version(version) }) = self.known.get(path)
            && *of == identity
        {
            return Ok(*version);
        }
        let database = Database::read(self.root).map_err(|error| unknown(&error.to_string()))?;
        let installed = packages.iter().filter_map(|name| database.there(name));
        let version = installed
            .filter(|package| package.status == Status::Installed)
            // An epoch precedes a colon (deb-version(7)).
            .find_map(|it| Version::find(it.version.split_once(':').map_or(&*it.version, |(_, rest)| rest)))
            .ok_or_else(|| format!("{}: no installed package records its version", path.display()))?;
        self.known.insert(path.to_owned(), Known { identity, answer: Answer::Version(version) });
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let cases = [
            ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u1", Some((1, 6, 20))),
            ("containerd github.com/containerd/containerd/v2 2.1.9 2.1.9-1", Some((2, 1, 9))),
            ("containerd containerd.io v1.7.24 88bf19b2105c8b17560993bee28a01ddc2f97182", Some((1, 7, 24))),
            ("Docker version 26.1.5+dfsg1, build a72d7cd", Some((26, 1, 5))),
            ("7.14.2\n", Some((7, 14, 2))),
            ("no version, build 2024", None),
        ];
        for (printed, expected) in cases {
            let expected = expected.map(|(major, minor, patch)| Version { major, minor, patch });
            assert_eq!(Version::find(printed), expected, "{printed}");
        }
    }
    /// Put in place whole: a test that forks meanwhile would inherit a descriptor, and the kernel runs no file that is
    /// open for writing (ETXTBSY).
    #[allow(clippy::disallowed_methods, reason = "the test makes the program that is then run")]
    fn put(path: &Path, script: &str) {
        let text = path.with_extension("text");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        let installed = std::process::Command::new("install").arg(text).arg(path).status().unwrap();
        assert!(installed.success());
    }

    #[test]
    fn a_program_that_does_not_answer_is_left_alone_for_an_hour_or_until_it_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("engine");
        let (root, programs) = (Root::open(Path::new("/")).unwrap(), Programs::in_folders("/usr/bin:/bin"));
        let mut known = BTreeMap::new();
        let mut ask = |at: u64, patience: Duration| {
            let now = Timestamp::of(UNIX_EPOCH + Duration::from_secs(at));
            let versions = Versions::new(&root, Some(&programs), std::mem::take(&mut known)).at(now);
            let mut versions = Versions { patience, ..versions };
            let answer = versions.of(&program, &[]);
            known.clone_from(versions.known());
            answer
        };
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(60));
        let late = format!("{} --version was killed: after 0 s it had not ended", program.display());
        let left_alone = format!(
            "{late}, at 1970-01-12T13:46:40Z; it is asked again an hour after that, or once another build of it is there"
        );
        put(&program, "exec sleep 600");
        assert_eq!(ask(1_000_000, short), Err(late.clone()));
        assert_eq!(ask(1_003_599, long), Err(left_alone));
        // An hour later, and where the clock was set back.
        assert_eq!(ask(1_003_600, short), Err(late.clone()));
        assert_eq!(ask(1_000_000, short), Err(late));
        put(&program, "echo engine 1.2.3");
        assert_eq!(ask(1_000_001, long), Ok(Version { major: 1, minor: 2, patch: 3 }));

        // What fails at once costs nothing to ask again.
        put(&program, "echo no >&2; exit 1");
        for at in [1_000_002, 1_000_003] {
            assert!(ask(at, long).unwrap_err().ends_with("ended with exit status: 1: no"));
        }
    }
}
