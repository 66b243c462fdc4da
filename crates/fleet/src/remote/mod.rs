//! The exporter on another machine: installed, checked, removed. The rocworker of this version that runs there does it
//! (`rocworker exporter`, src/exporter_setup), and answers with [`Found`] as JSON.

pub mod exporter_config;
pub mod package;
pub mod scrape;

use std::net::SocketAddr;
use std::path::PathBuf;

use config::Host;
use printable::printable;
use reconcile::Digest;
use reconcile::command::{Programs, Stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::program::{self, Command, Event, Own, Which};
use super::ssh::{self, MOST};
use package::Package;

/// How many last lines of rocworker's stderr a person is shown.
const LINES: usize = 40;

/// How many bytes at the end of stderr are kept for these lines.
const MOST_STDERR: usize = 1 << 20;

/// How the exporter answers on its own machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scrape {
    /// The address that the machine's configuration names.
    pub listen: SocketAddr,
    pub tls: bool,
}

/// What a machine has of the exporter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The package's state and version by dpkg-query: `installed 0.1.0-1`, `not-installed`.
    pub package: String,
    /// Who wrote the machine's rocm-exporter.service.
    pub unit: Unit,
    /// The unit's state, as `systemctl is-active` prints it.
    pub active: Option<String>,
    /// How the exporter answers on its own machine, or why it does not; `None`: it was not asked.
    pub scrape: Option<Result<Scrape, String>>,
    /// Sentences on what was not restored, and why.
    pub kept: Vec<String>,
    pub is_nothing: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    #[default]
    None,
    Own,
    Foreign {
        file: PathBuf,
        /// `runs /usr/local/bin/rocm_smi_exporter`
        what: String,
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
    pub listen: Option<SocketAddr>,
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
const DEFAULT_LISTEN: &str = "0.0.0.0:9401";

/// How other machines are asked.
#[derive(Debug)]
pub struct Remote<'r> {
    pub programs: &'r Programs,
    pub own: &'r Own,
    /// Gets a sentence about a machine while the command runs there.
    pub say: fn(&Host, &str),
}

impl Remote<'_> {
    /// What the machine has. Changes nothing.
    ///
    /// # Errors
    /// The machine cannot be asked, or lacks what the exporter needs.
    pub fn look(&self, host: &Host) -> Result<Found, Error> {
        self.run(host, &["look"], &[])
    }

    /// Asks the machine how its exporter is. Changes nothing.
    ///
    /// # Errors
    /// The machine cannot be asked.
    pub fn check(&self, host: &Host) -> Result<Found, Error> {
        self.run(host, &["check"], &[])
    }

    /// Installs and starts the exporter. A second time changes nothing.
    ///
    /// # Errors
    /// The error says what has failed on the machine, and whether it was reverted.
    pub fn install(&self, host: &Host, wanted: &InstallOptions<'_>) -> Result<Found, Error> {
        let listen = wanted.listen.map_or_else(|| DEFAULT_LISTEN.to_owned(), |listen| listen.to_string());
        let mut words = vec!["install", "--listen", &listen];
        words.extend(wanted.listen.is_none().then_some("--unless-set"));
        words.extend(wanted.replaces.then_some("--replace"));
        let package = wanted.package.map(|package| (Digest::of(&package.bytes), package.bytes.as_slice()));
        if let Some((digest, _)) = &package {
            words.extend(["--package", digest.as_str()]);
        }
        self.run(host, &words, package.as_ref().map_or(&[], |(_, bytes)| bytes))
    }

    /// Removes what install has brought, and restores what was there before. `force`: also where the unit has been edited.
    ///
    /// # Errors
    /// The error says what stays on the machine, and why.
    pub fn uninstall(&self, host: &Host, force: bool) -> Result<Found, Error> {
        self.run(host, if force { &["uninstall", "--force"] } else { &["uninstall"] }, &[])
    }

    fn run(&self, host: &Host, words: &[&str], input: &[u8]) -> Result<Found, Error> {
        let words: Vec<String> = ["exporter"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        let command = Command { which: Which::Same, words: &words, colour: false, limit: ssh::LIMIT };
        let (mut stdout, mut stderr, mut no_root) = (Vec::new(), Vec::new(), None);
        let code = program::run(self.programs, self.own, host, &command, &mut |event| match event {
            Event::Copying { folder, kib } => {
                (self.say)(host, &format!("copying this rocworker to {folder} ({kib} KiB)"));
                true
            }
            Event::Begun { unprivileged: Some(why), .. } => {
                no_root = Some(why);
                false
            }
            // Where the connection has ended, ssh says so.
            Event::Begun { stdin, .. } => {
                stdin.send(input.to_vec()).ok();
                true
            }
            Event::Output(Stream::Stdout, chunk) => {
                stdout.extend(chunk);
                stdout.len() <= MOST
            }
            Event::Output(Stream::Stderr, chunk) => {
                stderr.extend(chunk);
                stderr.drain(..stderr.len().saturating_sub(MOST_STDERR));
                true
            }
        });
        let mut lines: Vec<String> = String::from_utf8_lossy(&stderr).lines().map(printable).collect();
        lines.drain(..lines.len().saturating_sub(LINES));
        let problem = match no_root.map_or_else(|| code.map(Ok), |why| Ok(Err(why)))? {
            Err(why) => why,
            Ok(0) => match Found::parse(&stdout) {
                Ok(found) => return Ok(found),
                Err(error) => format!("its rocworker printed another answer than this version's: {error}"),
            },
            Ok(code) => match lines.pop() {
                Some(line) => line.strip_prefix("rocworker: ").unwrap_or(&line).to_owned(),
                None => format!("its rocworker ended with code {code}"),
            },
        };
        Err(Error::Refused { host: host.clone(), problem, stderr: lines })
    }
}

impl Found {
    /// Reads a machine's answer, whose strings are made safe for a terminal.
    fn parse(stdout: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_value(safe(serde_json::from_slice(stdout)?))
    }

    /// What install is to do. `may_replace` answers for a foreign unit, of which it gets a description.
    ///
    /// # Errors
    /// Why nothing is to be done.
    pub fn step(&self, may_replace: impl FnOnce(&str) -> Result<bool, String>) -> Result<Step, String> {
        let needs_package = self.version().is_none();
        let Unit::Foreign { file, what } = &self.unit else {
            return Ok(Step { needs_package, replaces: false });
        };
        if may_replace(&format!("rocm-exporter.service is not rocworker's: {} {what}", file.display()))? {
            Ok(Step { needs_package, replaces: true })
        } else {
            Err("you chose to keep rocm-exporter.service; the machine is unchanged".to_owned())
        }
    }

    /// The version that dpkg has as installed.
    pub fn version(&self) -> Option<&str> {
        self.package.strip_prefix("installed ").map(str::trim)
    }

    /// How the exporter answers on its own machine.
    pub fn answer(&self) -> Option<&Scrape> {
        self.scrape.as_ref()?.as_ref().ok()
    }

    /// The problems that the check found, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.version().is_none() {
            problems.push("rocworker's package is not installed".to_owned());
        }
        match (&self.unit, self.active.as_deref()) {
            (Unit::None, _) => problems.push("there is no rocm-exporter.service".to_owned()),
            (Unit::Foreign { file, what }, _) => {
                problems.push(format!("rocm-exporter.service is not rocworker's: {} {what}", file.display()));
            }
            (Unit::Own, Some("active")) => {}
            (Unit::Own, state) => {
                problems.push(format!("rocm-exporter.service is {}", state.unwrap_or("in an unknown state")));
            }
        }
        if let (Unit::Own, Some(Err(why))) = (&self.unit, &self.scrape) {
            problems.push(format!("the exporter does not answer on its host: {why}"));
        }
        problems
    }

    /// The URL at which Prometheus finds the metrics, with the host's name as it was given. `None`: it is unknown, or
    /// the exporter listens on loopback alone.
    pub fn url(&self, host: &Host) -> Option<String> {
        let scrape = self.answer().filter(|scrape| !scrape.listen.ip().is_loopback())?;
        let port = scrape.listen.port();
        let scheme = if scrape.tls { "https" } else { "http" };
        let name = &host.name;
        let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        Some(format!("{scheme}://{name}:{port}/metrics"))
    }
}

fn safe(answer: Value) -> Value {
    match answer {
        Value::String(text) => Value::String(printable(&text)),
        Value::Array(all) => all.into_iter().map(safe).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, safe(value))).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(unit: Unit, active: &str) -> Found {
        let package = "installed 0.1.0-1".to_owned();
        Found { package, unit, active: Some(active.to_owned()), ..Found::default() }
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
            let scrape = Some(Ok(Scrape { listen: listen.parse().unwrap(), tls }));
            let found = Found { scrape, ..installed(Unit::Own, "active") };
            let found = Found::parse(&serde_json::to_vec(&found).unwrap()).unwrap();
            let host = Host { user: Some("ops".to_owned()), name: name.to_owned() };
            assert_eq!(found.url(&host).as_deref(), url);
            assert_eq!((found.version(), found.problems()), (Some("0.1.0-1"), Vec::new()));
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_sentences_that_steer_no_terminal() {
        let problem =
            |found: &Found| Found::parse(&serde_json::to_vec(found).unwrap()).unwrap().problems().join("; ");
        assert_eq!(
            problem(&Found { package: "not-installed".to_owned(), ..Found::default() }),
            "rocworker's package is not installed; there is no rocm-exporter.service"
        );
        let unit = Unit::Foreign { file: "/etc/x".into(), what: "runs /bin/y\u{1b}[2J".to_owned() };
        assert_eq!(
            problem(&installed(unit, "active")),
            format!("rocm-exporter.service is not rocworker's: /etc/x runs {}", printable("/bin/y\u{1b}[2J"))
        );
        let scrape = Some(Err("0.0.0.0:9401: Connection refused".to_owned()));
        assert_eq!(
            problem(&Found { scrape, ..installed(Unit::Own, "failed") }),
            "rocm-exporter.service is failed; the exporter does not answer on its host: 0.0.0.0:9401: Connection refused"
        );
        assert!(Found::parse(b"Welcome!\n").is_err());
    }
}
