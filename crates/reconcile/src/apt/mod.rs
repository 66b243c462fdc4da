//! apt and dpkg, run without questions: never more than was asked for, and what they say is kept. Knows no plan and no
//! receipt.

mod doing;
pub mod dpkg;
pub(crate) mod fetch;
mod installer;
pub(crate) mod lists;
pub mod sources;
mod stanza;
mod whole;

use std::path::Path;
use std::time::Duration;

use crate::command::{Error, Programs, Stream};

pub(crate) use doing::{SIMULATED, Simulated, automatic, going, install, wanted};
pub use fetch::{Check, openpgp};
pub use installer::Installer;
pub(crate) use installer::repositories;
pub(crate) use lists::update;

/// How long to wait for another program that holds dpkg's lock: `unattended-upgrades` takes minutes.
pub const DPKG_LOCK: Duration = Duration::from_secs(300);

/// The time limit for a run of apt or dpkg: ROCm has 30 GB to fetch, and the run compiles a driver.
const PATIENCE: Duration = Duration::from_secs(4 * 60 * 60);

/// apt asks nothing, and needrestart(1) restarts nothing. What apt and
/// dpkg say is read: LANGUAGE, which Ubuntu sets for everybody, would win over LC_ALL (gettext's manual, "The LANGUAGE
/// variable").
const ENVIRONMENT: [(&str, &str); 4] = [
    ("LANGUAGE", ""),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("NEEDRESTART_SUSPEND", "1"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
];

/// apt's options in every run, also by a program that runs apt.
const ALWAYS: [&str; 6] = [
    "Dpkg::Use-Pty=0",
    // Packages stay that no other package needs any more.
    "APT::Get::AutomaticRemove=0",
    // ROCm's archives would fill the disk once more.
    "APT::Keep-Downloaded-Packages=0",
    AS_IT_IS,
    // dpkg's answer where it would ask what becomes of a changed conffile: it stays, unless the package itself says what
    // to do (dpkg(1)).
    "Dpkg::Options::=--force-confdef",
    "Dpkg::Options::=--force-confold",
];

/// apt is to read dpkg's status as it is. apt identifies its cached copy by size and by the second in which dpkg wrote it
/// (apt's apt-pkg/pkgcachegen.cc). Within a second dpkg writes several of one size: apt would hand dpkg an older
/// selection.
const AS_IT_IS: &str = "Dir::Cache::pkgcache=";

/// A step of something that takes long.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// "Unpacking rocm-core (amd64)".
    pub text: String,
    /// From 0 to 100. It may begin at 0 again, since apt counts fetching and installing apart. `None`: apt
    /// does not tell.
    pub percent: Option<f32>,
}

/// Runs apt and dpkg.
#[derive(Debug, Clone)]
pub struct PackageManager {
    programs: Programs,
    /// How long to wait for another program that holds dpkg's lock: [`DPKG_LOCK`].
    lock: Duration,
    /// Options for apt's fetchers: only on the command line does a proxy take precedence over the one in
    /// apt's configuration (apt-transport-http(1)).
    proxy: Vec<String>,
}

impl PackageManager {
    /// Runs `programs`. `lock`: how long to wait for another program that holds dpkg's lock. `proxy`: fetches
    /// everything through it, whatever apt's configuration and the environment name.
    #[must_use]
    pub fn new(programs: &Programs, lock: Duration, proxy: Option<&str>) -> Self {
        let option = |proxy| ["http", "https"].map(|scheme| format!("Acquire::{scheme}::Proxy={proxy}"));
        let proxy = proxy.into_iter().flat_map(option).collect();
        Self { programs: programs.with_environment(&ENVIRONMENT), lock, proxy }
    }

    /// Runs a command of apt's or dpkg's. `hear` gets its steps as they come.
    pub(crate) fn run(&self, argv: &[&str], hear: &mut dyn FnMut(Step)) -> Result<String, String> {
        self.run_for(argv, PATIENCE, hear)
    }

    /// Runs a command of apt's or dpkg's, and kills it after `patience`.
    pub(crate) fn run_for(
        &self,
        argv: &[&str],
        patience: Duration,
        hear: &mut dyn FnMut(Step),
    ) -> Result<String, String> {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let ran = self.programs.follow(argv, patience, &mut |stream, line| match (stream, step(line)) {
            (Stream::Stdout, Some(step)) => hear(step),
            (Stream::Stdout, None) => stdout.extend([line, "\n"]),
            (Stream::Stderr, _) => stderr.extend([line, "\n"]),
        });
        match ran {
            Ok(_) => Ok(stdout),
            Err(Error::Failed { argv, status, .. }) => {
                let why = errors_of(&stderr).map(|it| format!("apt: {it}"));
                Err(why.unwrap_or_else(|| format!("{argv} ended with {status}")))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Runs `apt-get` with what every run of it is given.
    pub(crate) fn apt_get(&self, rest: &[&str], hear: &mut dyn FnMut(Step)) -> Result<String, String> {
        let options = self.options();
        // Recommended packages are not what was asked for; where ROCm or the driver wants one, the configuration names
        // it.
        let own = ["-o", "APT::Status-Fd=1", "-o", "APT::Install-Recommends=0"];
        self.run(&[&["apt-get", "-q", "-y"], &argv(&options)[..], &own, rest].concat(), hear)
    }

    /// The options of every run of apt.
    fn options(&self) -> Vec<String> {
        let mut options: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
        options.push(format!("DPkg::Lock::Timeout={}", self.lock.as_secs()));
        options.extend_from_slice(&self.proxy);
        options
    }

    /// Has apt read what the repositories of one list of sources offer, and of no other. `options`: where it keeps that, or
    /// that it only prints addresses and names.
    pub(crate) fn update(&self, list: &Path, options: &[&str]) -> Result<String, String> {
        let list = format!("Dir::Etc::SourceList={}", list.display());
        let only = ["-o", &list, "-o", "Dir::Etc::SourceParts=-"];
        // apt's lists of all other sources stay, and a source that cannot be fetched is an error, not a
        // warning.
        let rest = ["-o", "APT::Get::List-Cleanup=0", "-o", "APT::Update::Error-Mode=any", "update"];
        self.apt_get(&[options, &only, &rest].concat(), &mut |_| {})
    }
}

/// Options as a command line has them.
fn argv(options: &[String]) -> Vec<&str> {
    options.iter().flat_map(|option| ["-o", option]).collect()
}

/// Parses a line of apt's status: `pmstatus:PACKAGE:PERCENT:TEXT`, and `dlstatus` while apt fetches. The
/// status may stand behind the start of another line: dpkg writes to the same pipe.
fn step(line: &str) -> Option<Step> {
    let at = ["pmstatus:", "dlstatus:"].iter().find_map(|kind| line.find(kind))?;
    let mut parts = line[at..].splitn(4, ':').skip(2);
    let percent = parts.next()?.parse().ok();
    Some(Step { text: parts.next()?.to_owned(), percent })
}

/// The errors in stderr, in a sentence: what dpkg says of each package it could not process, else apt's errors,
/// else the last line.
fn errors_of(stderr: &str) -> Option<String> {
    let lines: Vec<&str> = stderr.lines().collect();
    let behind = |prefix: &'static str| lines.iter().filter_map(move |line| line.strip_prefix(prefix));
    let mut problems: Vec<String> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(what) = line.strip_prefix("dpkg: error processing ") {
            let further = lines.iter().skip(at + 1).take_while(|line| line.starts_with(' '));
            let problem: Vec<&str> = further.map(|line| line.trim()).collect();
            let sentence = format!("{}: {}", what.trim_end_matches(':'), problem.join(" "));
            problems.push(sentence.trim_end_matches(": ").to_owned());
        } else if let Some(rest) = line.strip_prefix("dpkg: error: ") {
            problems.push(rest.trim().to_owned());
        }
    }
    if problems.is_empty() {
        // apt's line about the failed dpkg is left out: dpkg's own lines give the reason.
        let errors = behind("E: ").filter(|line| !line.starts_with("Sub-process "));
        // apt's error says that a list is not signed; only a warning says why gpgv thinks so.
        problems.extend(errors.chain(behind("W: GPG error: ")).map(|line| line.trim().to_owned()));
    }
    if problems.is_empty() {
        problems.extend(lines.iter().rfind(|line| !line.trim().is_empty()).map(|line| (*line).to_owned()));
    }
    problems.dedup();
    (!problems.is_empty()).then(|| problems.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apts_status_comes_from_what_it_prints() {
        let fetching = step("dlstatus:1:20.5:Retrieving file 1 of 3 (2s remaining)").unwrap();
        assert_eq!(fetching.percent, Some(20.5));
        assert_eq!(fetching.text, "Retrieving file 1 of 3 (2s remaining)");
        let unpacking = step("(Reading database ... pmstatus:rocm-core:40:Unpacking rocm-core: now").unwrap();
        assert_eq!((unpacking.text.as_str(), unpacking.percent), ("Unpacking rocm-core: now", Some(40.0)));
        assert_eq!(step("Setting up rocm-core (6.3.2) ..."), None);
        assert_eq!(step("pmstatus:cut"), None);
    }

    #[test]
    fn of_many_lines_the_telling_ones_are_kept() {
        for (stderr, expected) in [
            (
                "E: Unable to locate package rocm\nE: Couldn't find any package by glob 'rocm'\n",
                Some("Unable to locate package rocm; Couldn't find any package by glob 'rocm'"),
            ),
            (
                "debconf: delaying package configuration\ndpkg: error processing package broken (--configure):\n \
                 installed broken package post-installation script subprocess returned error exit status 3\nErrors were \
                 encountered while processing:\n broken\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n",
                Some(
                    "package broken (--configure): installed broken package post-installation script subprocess \
                     returned error exit status 3",
                ),
            ),
            (
                "W: GPG error: http://a jammy InRelease: The following signatures were invalid: EXPKEYSIG 1A AMD\nE: The \
                 repository 'http://a jammy InRelease' is not signed.\n",
                Some(
                    "The repository 'http://a jammy InRelease' is not signed.; http://a jammy InRelease: The following \
                     signatures were invalid: EXPKEYSIG 1A AMD",
                ),
            ),
            ("something odd\n\n", Some("something odd")),
            ("", None),
        ] {
            assert_eq!(errors_of(stderr).as_deref(), expected);
        }
    }
}
