//! Which version an engine has, asked once for each build of its program.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reconcile::command::Programs;
use root::Root;
use serde::{Deserialize, Serialize};

/// How long an engine may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// More than a machine with every package of Debian has.
const STATUS_LIMIT: usize = 256 << 20;

/// A release: what stands behind these three numbers is the distributor's.
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
}

/// A version, and the file that told it: another build at the same path is asked anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub identity: root::Identity,
    pub version: Version,
}

impl<'a> Versions<'a> {
    /// `programs`: `None` beneath another Root than `/`, where dpkg's records are read instead. `known`: what an
    /// earlier run was told.
    #[must_use]
    pub fn new(root: &'a Root, programs: Option<&'a Programs>, known: BTreeMap<PathBuf, Known>) -> Self {
        Self { root, programs, known }
    }

    /// What is known now, for the next run.
    #[must_use]
    pub fn known(&self) -> &BTreeMap<PathBuf, Known> {
        &self.known
    }

    /// The version of the program at `path`, which may also come from one of these Debian packages.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub fn of(&mut self, path: &Path, packages: &[&str]) -> Result<Version, String> {
        let Some(programs) = self.programs else { return self.of_package(path, packages) };
        let identity = self.root.identity(path).map_err(|error| error.to_string())?;
        if let Some(known) = self.known.get(path).filter(|known| known.identity == identity) {
            return Ok(known.version);
        }
        let argv = [&*path.to_string_lossy(), "--version"];
        let output = programs.run(&argv, PATIENCE).map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = Version::find(&said)
            .ok_or_else(|| format!("{} --version names no version: {:?}", path.display(), said.trim()))?;
        self.known.insert(path.to_owned(), Known { identity, version });
        Ok(version)
    }

    fn of_package(&self, path: &Path, packages: &[&str]) -> Result<Version, String> {
        let status = self.root.read("/var/lib/dpkg/status", STATUS_LIMIT).map_err(|_| {
            format!("{} is not run beneath another root, and no dpkg tells its version", path.display())
        })?;
        let status = String::from_utf8_lossy(&status);
        let installed = status.split("\n\n").filter(|entry| entry.contains("\nStatus: install ok installed"));
        let of = |entry: &str, key: &str| {
            entry.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()))
        };
        installed
            .filter(|entry| of(entry, "Package:").is_some_and(|name| packages.contains(&name.as_str())))
            .find_map(|entry| {
                let version = of(entry, "Version:")?;
                // An epoch stands in front of a colon (deb-version(7)).
                Version::find(version.split_once(':').map_or(version.as_str(), |(_, rest)| rest))
            })
            .ok_or_else(|| format!("{}: no package that is installed tells its version", path.display()))
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
        for (said, expected) in cases {
            let expected = expected.map(|(major, minor, patch)| Version { major, minor, patch });
            assert_eq!(Version::find(said), expected, "{said}");
        }
    }
}
