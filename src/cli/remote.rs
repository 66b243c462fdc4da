//! The exporter on other machines. Each is asked for itself: what one lacks stops no other.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::anyhow;
use reconcile::command::Programs;
use serde::Serialize;

use super::Outcome;
use super::session::{Misuse, Session, absolute, caller};
use crate::fleet::host::Host;
use crate::fleet::remote::package::Package;
use crate::fleet::remote::scrape::scrape_by_name;
use crate::fleet::remote::{self, DEFAULT_LISTEN, Error, Found, Unit, Wanted};

/// At a time: sshd refuses many of 100 connections that come at once.
const AT_ONCE: usize = 8;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Install the exporter there, start it, and check that it answers
    Install {
        /// [user@]name, as ssh takes it
        #[arg(id = "machines", required = true, value_name = "HOST")]
        hosts: Vec<Host>,
        /// rocworker's package; left out, the one of this version here, in target/dist or in apt's archives
        #[arg(long, value_name = "FILE")]
        package: Option<PathBuf>,
        /// Where it listens there. Left out: what the configuration there says, or 0.0.0.0:9401, which is every address
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<SocketAddr>,
        /// Replace another tool's rocm-exporter.service without a question; uninstall restores it
        #[arg(long)]
        replace: bool,
    },
    /// Check the exporter there; ends with 3 where something is not in order
    Check {
        /// [user@]name, as ssh takes it
        #[arg(id = "machines", required = true, value_name = "HOST")]
        hosts: Vec<Host>,
    },
    /// Remove what install has brought, and restore what was there before
    Uninstall {
        /// [user@]name, as ssh takes it
        #[arg(id = "machines", required = true, value_name = "HOST")]
        hosts: Vec<Host>,
        /// Also where the unit has been edited since
        #[arg(long)]
        force: bool,
    },
}

/// What came of one machine. `remote --output json`, documented in docs/json.md.
#[derive(Debug, Serialize)]
struct Answer {
    host: String,
    /// As the exit code of a command for this host alone.
    code: u8,
    /// Null where it was not done.
    url: Option<String>,
    /// rocworker's package there.
    version: Option<String>,
    /// As `systemctl is-active` says.
    active: Option<String>,
    unit: Option<&'static str>,
    listen: Option<String>,
    /// Whether it answers this machine; null where that was not tried.
    answers_here: Option<bool>,
    problems: Vec<String>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Answers {
    schema_version: u32,
    hosts: Vec<Answer>,
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    let programs = session
        .programs
        .as_ref()
        .ok_or_else(|| Misuse("remote asks other machines: leave --root out".to_owned()))?;
    let (Command::Install { hosts, .. } | Command::Check { hosts } | Command::Uninstall { hosts, .. }) =
        command;
    let hosts = named(session, hosts);
    let each = match command {
        Command::Install { package, listen, replace, .. } => {
            install(session, programs, &hosts, package.as_ref(), *listen, *replace)?
        }
        Command::Check { .. } => at_once(&hosts, |host| checked(programs, host)),
        Command::Uninstall { force, .. } => at_once(&hosts, |host| uninstalled(programs, host, *force)),
    };
    let answers = Answers { schema_version: 1, hosts: each };
    session.format.print(&answers, || answers.shown(matches!(command, Command::Check { .. })))?;
    Ok(match () {
        () if answers.hosts.iter().any(|it| it.code == 1) => Outcome::FellShort,
        () if answers.hosts.iter().any(|it| it.code == 3) => Outcome::Findings,
        () => Outcome::Done,
    })
}

/// Each host once, with the inventory's user. No configuration that is wrong here hinders what is done there.
fn named(session: &Session, hosts: &[Host]) -> Vec<Host> {
    let inventory = session.config().map(|config| config.inventory).unwrap_or_default();
    let mut named: Vec<Host> = Vec::new();
    for host in hosts {
        let host = inventory.with_user(host.clone());
        if !named.contains(&host) {
            named.push(host);
        }
    }
    named
}

fn install(
    session: &Session,
    programs: &Programs,
    hosts: &[Host],
    package: Option<&PathBuf>,
    listen: Option<SocketAddr>,
    replace: bool,
) -> anyhow::Result<Vec<Answer>> {
    if let Some(listen) = listen.filter(|listen| listen.port() < 1024) {
        return Err(Misuse(format!("--listen {listen}: name a port from 1024 to 65535")).into());
    }
    // A file that is named and wrong is said at once; one that no host needs is not searched.
    let named =
        package.map(|path| Package::find(&caller()?, Some(&absolute(path)?), &here()?).map_err(wrong));
    let named = named.transpose()?;
    let looked = at_once(hosts, |host| remote::look(programs, host));
    let needs = looked.iter().flatten().any(|found| found.version().is_none());
    let package = match named {
        None if needs => Some(Package::find(&caller()?, None, &here()?).map_err(wrong)?),
        named => named,
    };
    let listen_text = listen.map(|listen| listen.to_string());
    // Questions one after the other, before anything is changed.
    let decided: Vec<_> = hosts
        .iter()
        .zip(looked)
        .map(|(host, looked)| {
            let found = looked.map_err(|error| failure(host, &error))?;
            decide(host, &found, replace)
        })
        .collect();
    let pairs: Vec<_> = hosts.iter().cloned().zip(decided).collect();
    let every = session.format.is_json();
    let each = at_once(&pairs, |(host, decided)| match decided {
        Err(problem) => Answer::refused(host, problem.clone()),
        Ok(step) => {
            let package = package.as_ref().filter(|_| step.needs_package);
            if let (Some(package), false) = (package, every) {
                say(host, &format!("copying {} ({} KiB)", package.path.display(), package.bytes.len() >> 10));
            }
            let wanted = Wanted { package, listen: listen_text.as_deref(), replaces: step.replaces };
            installed(programs, host, &wanted)
        }
    });
    Ok(each)
}

/// What is to be done with a machine that can have the exporter.
struct Step {
    needs_package: bool,
    replaces: bool,
}

fn decide(host: &Host, found: &Found, replace: bool) -> Result<Step, String> {
    if found.architecture.as_deref().is_some_and(|it| it != "amd64") {
        let there = found.architecture.as_deref().unwrap_or_default();
        return Err(format!("its architecture is {there}, and rocworker's package is for amd64"));
    }
    if found.cards == Some(0) {
        return Err("it has no AMD GPU: rocworker detect there says what it sees".to_owned());
    }
    let step = Step { needs_package: found.version().is_none(), replaces: false };
    let Unit::Foreign { file, runs } = &found.unit else { return Ok(step) };
    let is_agreed = replace || {
        let question = format!("{host}: rocm-exporter.service is not rocworker's. {file} runs: {runs}");
        ask(&question, "Replace it until rocworker remote uninstall restores it?")?
    };
    if is_agreed {
        Ok(Step { replaces: true, ..step })
    } else {
        Err("you kept its rocm-exporter.service: nothing was changed there".to_owned())
    }
}

/// Asks the person at this terminal; without one nobody can agree.
fn ask(what: &str, question: &str) -> Result<bool, String> {
    if !std::io::stdin().is_terminal() {
        let what = what.split_once(": ").map_or(what, |(_, rest)| rest);
        return Err(format!(
            "{what}; nobody is asked without a terminal: --replace replaces it until uninstall"
        ));
    }
    let mut stderr = anstream::stderr();
    write!(stderr, "{what}\n{question} [y/N] ").ok();
    stderr.flush().ok();
    let mut reply = String::new();
    std::io::stdin().lock().read_line(&mut reply).map_err(|error| error.to_string())?;
    Ok(matches!(reply.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn installed(programs: &Programs, host: &Host, wanted: &Wanted<'_>) -> Answer {
    let found = match remote::install(programs, host, wanted) {
        Ok(found) => Found { unit: Unit::Own, ..found },
        Err(error) => return Answer::failed(host, &error),
    };
    let mut answer = Answer::of(host, &found, 0);
    if answer.listen.as_deref().is_some_and(|it| it.starts_with("0.0.0.0:") || it.starts_with("[::]:")) {
        let listen = answer.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
        answer.notes.push(format!(
            "it listens on {listen}: whoever reaches an address of this host can read the metrics"
        ));
    }
    answer.try_from_here(host, &found);
    answer
}

fn checked(programs: &Programs, host: &Host) -> Answer {
    match remote::check(programs, host) {
        Ok(found) => {
            let problems = found.problems();
            let mut answer = Answer::of(host, &found, if problems.is_empty() { 0 } else { 3 });
            answer.problems = problems;
            answer.try_from_here(host, &found);
            answer
        }
        Err(error) => Answer::failed(host, &error),
    }
}

fn uninstalled(programs: &Programs, host: &Host, force: bool) -> Answer {
    match remote::uninstall(programs, host, force) {
        Ok(found) => {
            let mut answer = Answer::of(host, &found, 0);
            let text = if found.is_nothing {
                "remote install has brought nothing here: nothing to do"
            } else {
                "removed; what was there before is restored"
            };
            answer.notes.insert(0, text.to_owned());
            answer
        }
        Err(error) => Answer::failed(host, &error),
    }
}

impl Answer {
    fn of(host: &Host, found: &Found, code: u8) -> Self {
        Self {
            host: host.to_string(),
            code,
            url: found.url(host),
            version: found.version().map(str::to_owned),
            active: found.active.clone(),
            unit: match found.unit {
                Unit::None => None,
                Unit::Own => Some("own"),
                Unit::Foreign { .. } => Some("foreign"),
            },
            listen: found.scrape.as_ref().map(|scrape| scrape.listen.clone()),
            answers_here: None,
            problems: Vec::new(),
            notes: found.kept.clone(),
        }
    }

    fn refused(host: &Host, problem: String) -> Self {
        Self { problems: vec![problem], ..Self::of(host, &Found::default(), 1) }
    }

    fn failed(host: &Host, error: &Error) -> Self {
        Self::refused(host, failure(host, error))
    }

    /// A firewall between is no fault of the machine: Prometheus may stand elsewhere.
    fn try_from_here(&mut self, host: &Host, found: &Found) {
        let Some(scrape) = &found.scrape else { return };
        let address: Option<SocketAddr> = scrape.listen.parse().ok();
        let Some(address) = address else { return };
        if address.ip().is_loopback() {
            self.notes.push(format!("it listens on {address}: only that machine itself can reach it"));
            return;
        }
        let answered = scrape_by_name(&host.name, address.port(), scrape.tls);
        self.answers_here = Some(answered.is_ok());
        if let Err(why) = answered {
            self.notes.push(format!(
                "it answers on its own machine, and not to this one ({why}): a firewall may be between, or ssh's configuration \
                 has another name"
            ));
        }
    }
}

impl Answers {
    fn shown(&self, is_check: bool) -> String {
        let mut text = String::new();
        for it in &self.hosts {
            for problem in &it.problems {
                say_of(&it.host, &format!("problem: {problem}"));
            }
            for note in &it.notes {
                say_of(&it.host, note);
            }
            if is_check && it.code != 1 {
                let version = it.version.as_deref().unwrap_or("not installed");
                let active = it.active.as_deref().unwrap_or("unknown");
                let listen = it.listen.as_deref().unwrap_or("nothing");
                let unit = it.unit.unwrap_or("none");
                text.push_str(&format!(
                    "{}: rocworker {version}, unit {unit}, {active}, answers on {listen}\n",
                    it.host
                ));
            } else if let Some(url) = it.url.as_ref().filter(|_| it.code == 0) {
                text.push_str(&format!("Metrics available at: {url}\n"));
            }
        }
        text
    }
}

/// Says what the machine said before it failed. Gives the problem, without the host's name.
fn failure(host: &Host, error: &Error) -> String {
    if let Error::Refused { said, .. } = error {
        said.iter().for_each(|line| say(host, line));
    }
    let text = error.to_string();
    text.strip_prefix(&format!("{host}: ")).unwrap_or(&text).to_owned()
}

fn here() -> anyhow::Result<PathBuf> {
    absolute(std::path::Path::new("."))
}

fn wrong(error: remote::package::Error) -> anyhow::Error {
    anyhow!(Misuse(error.to_string()))
}

fn say(host: &Host, text: &str) {
    say_of(&host.to_string(), text);
}

fn say_of(host: &str, text: &str) {
    writeln!(anstream::stderr(), "{host}: {}", crate::printable::printable(text)).ok();
}

/// Asks all, eight at a time, and gives what each said in the order of the list.
fn at_once<A: Sync, T: Send>(all: &[A], ask: impl Fn(&A) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<(usize, T)>> = Mutex::default();
    std::thread::scope(|threads| {
        for _ in 0..all.len().min(AT_ONCE) {
            threads.spawn(|| {
                while let Some((number, one)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|number| Some((number, all.get(number)?)))
                {
                    let answer = ask(one);
                    if let Ok(mut answers) = answers.lock() {
                        answers.push((number, answer));
                    }
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
