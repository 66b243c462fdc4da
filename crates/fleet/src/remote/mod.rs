//! The exporter on another machine: installed, checked, removed. Scripts in POSIX sh carry the package there, and keep
//! how the machine was; the rocworker that is then there does the rest.

pub mod exporter_config;
pub mod package;
pub mod scrape;

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::Host;
use printable::printable;
use reconcile::Digest;
use reconcile::command::Programs;
use serde::{Deserialize, Serialize};

use super::ssh::{self, Request, Rights};
use package::Package;

const COMMON: &str = include_str!("common.sh");
const LOOK: &str = include_str!("look.sh");
const REVERT: &str = include_str!("revert.sh");
const INSTALL: &str = include_str!("install.sh");
const CHECK: &str = include_str!("check.sh");
const UNINSTALL: &str = include_str!("uninstall.sh");

/// How many last lines of the script's stderr a person is shown.
const LINES: usize = 40;

/// How the exporter answers on its own machine: what `rocworker exporter scrape` prints there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrape {
    /// The address that the machine's configuration names.
    pub listen: SocketAddr,
    pub tls: bool,
}

/// What a machine has of the exporter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The package's state by dpkg-query: `installed 0.1.0-1`, `not-installed`.
    pub package: String,
    /// The number of AMD's cards, by their PCI ids.
    pub cards: Option<u32>,
    /// Who wrote the machine's rocm-exporter.service.
    pub unit: Unit,
    /// What `systemctl is-active` prints for the unit.
    pub active: Option<String>,
    pub scrape: Option<Scrape>,
    /// Why the exporter does not answer on its own machine.
    pub no_scrape: Option<String>,
    /// Sentences on what was not restored, and why.
    pub kept: Vec<String>,
    pub is_nothing: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Unit {
    #[default]
    None,
    Own,
    Foreign {
        file: String,
        runs: String,
    },
}

/// Why the command failed on a machine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Ssh(#[from] ssh::Error),
    /// `stderr`: the lines that came before it, for a person.
    #[error("{host}: {problem}")]
    Refused { host: Host, problem: String, stderr: Vec<String> },
}

impl Error {
    /// Whether the command may have ended half-way there.
    pub fn is_midway(&self) -> bool {
        use ssh::Error::{Interrupted, Lost, TimedOut};
        matches!(self, Self::Ssh(Interrupted { .. } | Lost { .. } | TimedOut { .. }))
    }
}

/// What `install` puts on a machine.
#[derive(Debug)]
pub struct InstallOptions<'w> {
    /// The package; `None`: the machine has rocworker already.
    pub package: Option<&'w Package>,
    /// `None`: what the configuration there says, and else `DEFAULT_LISTEN`.
    pub listen: Option<&'w str>,
    /// Whether a foreign unit is replaced.
    pub replaces: bool,
}

/// What install is to do with a machine that can have the exporter.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub needs_package: bool,
    /// Whether a foreign unit is replaced.
    pub replaces: bool,
}

/// Every address: Prometheus runs on another machine.
pub(crate) const DEFAULT_LISTEN: &str = "0.0.0.0:9401";

/// What the machine has, and whether the exporter can be installed there. Changes nothing.
///
/// # Errors
/// The machine cannot be asked, or lacks what the exporter needs.
pub fn look(programs: &Programs, host: &Host) -> Result<Found, Error> {
    run(programs, host, &[COMMON, LOOK].concat())
}

/// Asks the machine how its exporter is. Changes nothing.
///
/// # Errors
/// The machine cannot be asked.
pub fn check(programs: &Programs, host: &Host) -> Result<Found, Error> {
    run(programs, host, &[COMMON, CHECK].concat())
}

/// Installs and starts the exporter. A second time changes nothing.
///
/// # Errors
/// The error says what has failed on the machine, and whether it was reverted.
pub fn install(programs: &Programs, host: &Host, wanted: &InstallOptions<'_>) -> Result<Found, Error> {
    run(programs, host, &install_script(wanted))
}

fn install_script(wanted: &InstallOptions<'_>) -> String {
    let mut options = match wanted.listen {
        Some(listen) => format!("--listen {listen}"),
        None => format!("--listen {DEFAULT_LISTEN} --unless-set"),
    };
    if wanted.replaces {
        options.push_str(" --replace");
    }
    let (bytes, sum) = match wanted.package {
        Some(package) => (package.bytes.as_slice(), Digest::of(&package.bytes).as_str().to_owned()),
        None => (&[][..], String::new()),
    };
    let mut text = [COMMON, REVERT, INSTALL].concat();
    // An address has no quote.
    text.push_str(&format!(
        "options='{options}' size={} sha256='{sum}'\npayload() {{\nbase64 -d <<'END'\n",
        bytes.len()
    ));
    for line in STANDARD.encode(bytes).as_bytes().chunks(76) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str("END\n}\ninstall\n");
    text
}

/// Removes what install has brought, and restores what was there before. `force`: also where the unit has been edited.
///
/// # Errors
/// The error says what stays on the machine, and why.
pub fn uninstall(programs: &Programs, host: &Host, force: bool) -> Result<Found, Error> {
    let call = if force { "uninstall --force\n" } else { "uninstall\n" };
    run(programs, host, &[COMMON, REVERT, UNINSTALL, call].concat())
}

fn run(programs: &Programs, host: &Host, script: &str) -> Result<Found, Error> {
    let request = Request { script, rights: Rights::Root, limit: ssh::LIMIT };
    let answer = ssh::run(programs, host, &request)?;
    let stderr_lines: Vec<String> = String::from_utf8_lossy(&answer.stderr).lines().map(printable).collect();
    let stderr_lines =
        stderr_lines.get(stderr_lines.len().saturating_sub(LINES)..).unwrap_or_default().to_vec();
    let refused = |problem| Err(Error::Refused { host: host.clone(), problem, stderr: stderr_lines.clone() });
    match Found::parse(&String::from_utf8_lossy(&answer.stdout)) {
        // Each script says which package is there.
        Ok(found) if answer.code == 0 && found.package.is_empty() => {
            refused("the script printed nothing: log in and try its /bin/sh".to_owned())
        }
        Ok(found) if answer.code == 0 => Ok(found),
        Ok(_) => {
            let last = stderr_lines.last().map_or_else(String::new, |line| format!(": {line}"));
            refused(format!("the script exited with code {}{last}", answer.code))
        }
        Err(problem) => refused(problem),
    }
}

impl Found {
    /// Reads a script's answer.
    ///
    /// # Errors
    /// The problem that the script's answer names.
    fn parse(stdout: &str) -> Result<Self, String> {
        let mut found = Self::default();
        let (mut file, mut runs, mut is_foreign) = (String::new(), String::new(), false);
        for line in stdout.lines() {
            let Some((key, value)) = line.split_once('\t') else {
                return Err(format!("unexpected line in the script's output: {}", printable(line)));
            };
            let value = printable(value);
            match key {
                "problem" => return Err(value),
                "package" => found.package = value.trim().to_owned(),
                "cards" => found.cards = value.parse().ok(),
                "unit" if value == "own" => found.unit = Unit::Own,
                "unit" => is_foreign = true,
                "unit-file" => file = value,
                "unit-runs" => runs = value,
                "active" => found.active = Some(value),
                "scrape" => found.scrape = serde_json::from_str(&value).ok(),
                "no-scrape" => found.no_scrape = Some(value),
                "kept" => found.kept.push(value),
                "nothing" => found.is_nothing = true,
                // A later version may print further keys.
                _ => {}
            }
        }
        if is_foreign {
            found.unit = Unit::Foreign { file, runs };
        }
        Ok(found)
    }

    /// What install is to do. `may_replace` answers for a foreign unit, of which it gets a description.
    ///
    /// # Errors
    /// Why nothing is to be done.
    pub fn step(
        &self,
        host: &Host,
        may_replace: impl FnOnce(&str) -> Result<bool, String>,
    ) -> Result<Step, String> {
        if self.cards == Some(0) {
            return Err(format!("it has no AMD GPU: `rocworker --host {host} detect` lists what it has"));
        }
        let needs_package = self.version().is_none();
        let Unit::Foreign { file, runs } = &self.unit else {
            return Ok(Step { needs_package, replaces: false });
        };
        if may_replace(&format!("rocm-exporter.service is not rocworker's. {file} runs: {runs}"))? {
            Ok(Step { needs_package, replaces: true })
        } else {
            Err("you chose to keep rocm-exporter.service; the machine is unchanged".to_owned())
        }
    }

    /// The version that dpkg has as installed.
    pub fn version(&self) -> Option<&str> {
        self.package.strip_prefix("installed ").map(str::trim)
    }

    /// The problems that the check found, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.version().is_none() {
            problems.push("rocworker's package is not installed".to_owned());
        }
        match (&self.unit, self.active.as_deref()) {
            (Unit::None, _) => problems.push("there is no rocm-exporter.service".to_owned()),
            (Unit::Foreign { file, runs }, _) => {
                problems.push(format!("rocm-exporter.service is not rocworker's: {file} runs {runs}"));
            }
            (Unit::Own, Some("active")) => {}
            (Unit::Own, state) => {
                problems.push(format!("rocm-exporter.service is {}", state.unwrap_or("in an unknown state")));
            }
        }
        if self.unit == Unit::Own && self.scrape.is_none() {
            let why = self.no_scrape.as_deref().unwrap_or("the reason is unknown");
            problems.push(format!("the exporter does not answer on its host: {why}"));
        }
        problems
    }

    /// The URL at which Prometheus finds the metrics, with the host's name as it was given. `None`: it is unknown, or
    /// the exporter listens on loopback alone.
    pub fn url(&self, host: &Host) -> Option<String> {
        let scrape = self.scrape.as_ref().filter(|scrape| !scrape.listen.ip().is_loopback())?;
        let port = scrape.listen.port();
        let scheme = if scrape.tls { "https" } else { "http" };
        let name = &host.name;
        let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        Some(format!("{scheme}://{name}:{port}/metrics"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(scrape: &str) -> Found {
        Found::parse(&format!("package\tinstalled 0.1.0-1\nunit\town\nactive\tactive\nscrape\t{scrape}\n"))
            .unwrap()
    }

    #[test]
    fn an_answer_says_what_is_there_and_where_the_metrics_are() {
        for (listen, tls, name, url) in [
            ("0.0.0.0:9401", false, "gpu1", Some("http://gpu1:9401/metrics")),
            ("[::]:9500", true, "gpu1.example.org", Some("https://gpu1.example.org:9500/metrics")),
            ("0.0.0.0:9401", false, "fd00::1", Some("http://[fd00::1]:9401/metrics")),
            ("127.0.0.1:9401", false, "gpu1", None),
            ("[::1]:9401", true, "gpu1", None),
        ] {
            // An earlier version also says the status.
            let found = found(&format!("{{\"listen\":\"{listen}\",\"tls\":{tls},\"status\":null}}"));
            let host = Host { user: Some("ops".to_owned()), name: name.to_owned() };
            assert_eq!(found.url(&host).as_deref(), url);
            assert_eq!((found.version(), found.problems()), (Some("0.1.0-1"), Vec::new()));
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_sentences() {
        let problem = |text: &str| Found::parse(text).unwrap().problems().join("; ");
        assert_eq!(
            problem("package\tnot-installed\n"),
            "rocworker's package is not installed; there is no rocm-exporter.service"
        );
        assert_eq!(
            problem(
                "package\tinstalled 1\nunit\tforeign\nunit-file\t/etc/x\nunit-runs\t/bin/y\u{1b}[2J\nactive\tactive\n"
            ),
            format!("rocm-exporter.service is not rocworker's: /etc/x runs {}", printable("/bin/y\u{1b}[2J"))
        );
        assert!(problem("package\tinstalled 1\nunit\town\nactive\tfailed\n").contains("is failed"));
        assert_eq!(Found::parse("problem\tthe disk is full\n").unwrap_err(), "the disk is full");
        assert!(Found::parse("Welcome!\n").is_err());
    }
}
