//! apt and dpkg, run without questions: never more than was asked for, and what they say is kept. Knows no plan and no
//! receipt.

mod doing;
pub mod dpkg;
pub(crate) mod fetch;
mod installer;
pub(crate) mod lists;
mod marks;
mod said;
pub mod sources;
mod whole;

use std::path::Path;
use std::time::Duration;

use crate::command::{Error, Programs, Stream};

pub(crate) use doing::{SIMULATED, Simulated, install, wanted};
pub use fetch::{Check, openpgp};
pub use installer::Installer;
pub(crate) use installer::repositories;
pub(crate) use lists::update;
pub(crate) use marks::automatic;

use fetch::HELPER;
use said::telling;

/// How long another who holds dpkg's lock is waited for: `unattended-upgrades` is done in minutes.
pub const DPKG_LOCK: Duration = Duration::from_secs(300);

/// How long one run of apt or dpkg may take: ROCm has 30 GB to be fetched, and a driver is compiled meanwhile.
const PATIENCE: Duration = Duration::from_secs(4 * 60 * 60);

/// Nobody is there to be asked, and nothing is restarted behind the back of who runs this (needrestart(1)). What apt and
/// dpkg say is read: LANGUAGE, which Ubuntu sets for everybody, would win over LC_ALL (gettext's manual, "The LANGUAGE
/// variable").
const ENVIRONMENT: [(&str, &str); 4] = [
    ("LANGUAGE", ""),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("NEEDRESTART_SUSPEND", "1"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
];

/// dpkg's answer where it would ask what becomes of a conffile that somebody has changed: theirs stays, and where the
/// package says what to do by itself, that is done (dpkg(1)).
const KEEP_THEIRS: [&str; 4] =
    ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"];

/// apt is to read dpkg's status as it stands. What it keeps of it from one run to the next it tells from another by its
/// size and the second in which it was written (apt's apt-pkg/pkgcachegen.cc), and within a second dpkg writes several of
/// one size: apt has then given dpkg back a selection that was another by now.
const AS_IT_STANDS: [&str; 2] = ["-o", "Dir::Cache::pkgcache="];

/// A step of something that takes long.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// "Unpacking rocm-core (amd64)".
    pub text: String,
    /// From 0 to 100; it may begin at 0 again: fetching is counted, and so is installing. `None`: nobody knows.
    pub percent: Option<f32>,
}

/// Who runs apt and dpkg.
#[derive(Debug, Clone)]
pub struct PackageManager {
    programs: Programs,
    /// How long another who holds dpkg's lock is waited for: [`DPKG_LOCK`].
    lock: Duration,
    /// Options for who fetches: a proxy comes before that of apt's configuration as one of these only
    /// (apt-transport-http(1)).
    proxy: Vec<String>,
}

impl PackageManager {
    /// By these programs. `lock`: how long another who holds dpkg's lock is waited for. `proxy`: through which everything
    /// is fetched, whatever apt and the environment say.
    #[must_use]
    pub fn new(programs: &Programs, lock: Duration, proxy: Option<&str>) -> Self {
        let option = |scheme, proxy| ["-o".to_owned(), format!("Acquire::{scheme}::Proxy={proxy}")];
        let proxy = proxy.iter().flat_map(|proxy| [option("http", proxy), option("https", proxy)]);
        Self { programs: programs.with_environment(&ENVIRONMENT), lock, proxy: proxy.flatten().collect() }
    }

    /// Runs a command of apt's or dpkg's. `hear` is told its steps as they come.
    pub(crate) fn run(&self, argv: &[&str], hear: &mut dyn FnMut(Step)) -> Result<String, String> {
        self.run_for(argv, PATIENCE, hear)
    }

    /// The same, for so long at most.
    pub(crate) fn run_for(
        &self,
        argv: &[&str],
        patience: Duration,
        hear: &mut dyn FnMut(Step),
    ) -> Result<String, String> {
        let program = argv.first().unwrap_or(&"");
        let fetches = *program == "apt-get" || argv.contains(&HELPER);
        let proxy: Vec<&str> = self.proxy.iter().filter(|_| fetches).map(String::as_str).collect();
        // Behind the program that fetches, which another may start.
        let behind = argv.iter().position(|it| *it == HELPER).unwrap_or(0).min(argv.len());
        let (start, rest) = argv.split_at((behind + 1).min(argv.len()));
        let argv: Vec<&str> = [start, &proxy, rest].concat();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let ran = self.programs.follow(&argv, patience, &mut |stream, line| match (stream, step(line)) {
            (Stream::Stdout, Some(step)) => hear(step),
            (Stream::Stdout, None) => stdout.extend([line, "\n"]),
            (Stream::Stderr, _) => stderr.extend([line, "\n"]),
        });
        match ran {
            Ok(_) => Ok(stdout),
            Err(Error::Failed { argv, status, .. }) => {
                let told = telling(&stderr).map(|it| format!("apt: {it}"));
                Err(told.unwrap_or_else(|| format!("{argv} ended with {status}")))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Runs `apt-get` with what every run of it is given.
    pub(crate) fn apt_get(&self, rest: &[&str], hear: &mut dyn FnMut(Step)) -> Result<String, String> {
        let lock = format!("DPkg::Lock::Timeout={}", self.lock.as_secs());
        let begin = ["apt-get", "-q", "-y", "-o", &lock, "-o", "APT::Status-Fd=1", "-o", "Dpkg::Use-Pty=0"];
        // Recommended packages are not what was asked for; where ROCm or the driver wants one, the configuration names
        // it. And nobody's packages go because nothing needs them any more.
        let never = ["-o", "APT::Install-Recommends=0", "-o", "APT::Get::AutomaticRemove=0"];
        // ROCm's archives would fill the disk once more.
        let archives = ["-o", "APT::Keep-Downloaded-Packages=0"];
        let argv =
            [&begin[..], &never[..], &archives[..], &AS_IT_STANDS[..], &KEEP_THEIRS[..], rest].concat();
        self.run(&argv, hear)
    }

    /// Has apt read what the repositories of one list of sources offer, and of no other. `options`: where it keeps that.
    pub(crate) fn update(&self, list: &Path, options: &[&str]) -> Result<(), String> {
        let list = format!("Dir::Etc::SourceList={}", list.display());
        let only = ["-o", &list, "-o", "Dir::Etc::SourceParts=-"];
        // Those of all other sources stay, and one that could not be fetched is an error, not a warning.
        let rest = ["-o", "APT::Get::List-Cleanup=0", "-o", "APT::Update::Error-Mode=any", "update"];
        self.apt_get(&[options, &only, &rest].concat(), &mut |_| {}).map(drop)
    }
}

/// A line of apt's status: `pmstatus:PACKAGE:PERCENT:TEXT`, and `dlstatus` while it fetches. It may come behind the
/// start of another line: dpkg writes to the same pipe.
fn step(line: &str) -> Option<Step> {
    let at = ["pmstatus:", "dlstatus:"].iter().find_map(|kind| line.find(kind))?;
    let mut parts = line[at..].splitn(4, ':').skip(2);
    let percent = parts.next()?.parse().ok();
    Some(Step { text: parts.next()?.to_owned(), percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apts_status_is_told_from_what_it_prints() {
        let fetching = step("dlstatus:1:20.5:Retrieving file 1 of 3 (2s remaining)").unwrap();
        assert_eq!(fetching.percent, Some(20.5));
        assert_eq!(fetching.text, "Retrieving file 1 of 3 (2s remaining)");
        let unpacking = step("(Reading database ... pmstatus:rocm-core:40:Unpacking rocm-core: now").unwrap();
        assert_eq!((unpacking.text.as_str(), unpacking.percent), ("Unpacking rocm-core: now", Some(40.0)));
        assert_eq!(step("Setting up rocm-core (6.3.2) ..."), None);
        assert_eq!(step("pmstatus:cut"), None);
    }
}
