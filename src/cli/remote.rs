//! The exporter on other machines. A failure on one machine does not stop the others.

use std::fmt::Display;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use config::{Host, listen_address};
use fleet::pool;
use fleet::program::Own;
pub(super) use fleet::remote::package::Package;
pub(super) use fleet::remote::scrape::scrape_by_name;
pub(super) use fleet::remote::{Error, Found, InstallOptions, Remote, Step, Unit};
use serde::Serialize;

use super::Outcome;
use super::hosts::{hosts as hosts_of, progress};
use super::options::Options;
use super::session::{Misuse, Session, absolute, caller, interrupt};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Install the exporter on these hosts, start it, and check that it answers
    Install {
        /// [user@]name, as ssh takes it
        #[arg(id = "machines", value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<Host>,
        /// Package to install [default: this version's, from this folder, target/dist or apt's archives]
        #[arg(long, value_name = "FILE")]
        package: Option<PathBuf>,
        /// Address on which the exporter listens [default: the host's configuration, or 0.0.0.0:9401 (every address)]
        #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
        listen: Option<SocketAddr>,
        /// Replace another tool's rocm-exporter.service without a question; uninstall restores it
        #[arg(long)]
        replace: bool,
    },
    /// Check the exporter on these hosts; exit with 3 if one has a problem
    Check {
        /// [user@]name, as ssh takes it
        #[arg(id = "machines", value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<Host>,
    },
    /// Remove what install added, and restore the previous state
    Uninstall {
        /// [user@]name, as ssh takes it
        #[arg(id = "machines", value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<Host>,
        /// Also revert a unit that was edited after the installation
        #[arg(long)]
        force: bool,
    },
}

/// The result for one machine. `remote --output json`, documented in docs/json.md.
#[derive(Debug, Clone, Serialize)]
struct Answer {
    host: String,
    /// The exit code that a command for this host alone would have.
    code: u8,
    /// The URL of the metrics; null where the command was not done.
    url: Option<String>,
    /// The version of rocworker's package on the machine.
    version: Option<String>,
    /// What `systemctl is-active` prints for the unit.
    active: Option<String>,
    unit: Option<&'static str>,
    listen: Option<SocketAddr>,
    /// Whether the exporter answers this machine; null if rocworker did not try.
    answers_here: Option<bool>,
    problems: Vec<String>,
    notes: Vec<String>,
    /// The lines that its programs wrote before it failed, for people.
    #[serde(skip)]
    stderr: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Answers {
    schema_version: u32,
    hosts: Vec<Answer>,
}

pub(crate) fn run(session: &Session, options: &Options, command: &Command) -> anyhow::Result<Outcome> {
    let programs = session
        .programs
        .as_ref()
        .ok_or_else(|| Misuse("remote cannot be used with --root: it asks other machines".to_owned()))?;
    let (Command::Install { hosts, .. } | Command::Check { hosts } | Command::Uninstall { hosts, .. }) =
        command;
    let hosts: Vec<Host> = hosts_of(session, options, hosts)?.into_iter().map(|named| named.host).collect();
    if hosts.is_empty() {
        return Err(Misuse("name the hosts, as in `gpu1 root@gpu2`, or give --hosts GROUP".to_owned()).into());
    }
    let remote = Remote { programs, own: &Own::read()?, say };
    let hosts = match command {
        Command::Install { package, listen, replace, .. } => {
            install(session, &remote, &hosts, package.as_ref(), *listen, *replace)?
        }
        Command::Check { .. } => each(&remote, &hosts, |host| host, checked)?,
        Command::Uninstall { force, .. } => {
            each(&remote, &hosts, |host| host, |remote, host| uninstalled(remote, host, *force))?
        }
    };
    let answers = Answers { schema_version: 1, hosts };
    session.format.print(&answers, || answers.shown(matches!(command, Command::Check { .. })))?;
    Ok(match () {
        () if answers.hosts.iter().any(|it| it.code == 1) => Outcome::FellShort,
        () if answers.hosts.iter().any(|it| it.code == 3) => Outcome::Findings,
        () => Outcome::Done,
    })
}

/// Runs `work` for each host and reports each as it ends. Returns the answers in the order of the hosts.
fn each<T: Sync>(
    remote: &Remote<'_>,
    all: &[T],
    host: impl Fn(&T) -> &Host,
    work: impl Fn(&Remote<'_>, &T) -> Answer + Sync,
) -> anyhow::Result<Vec<Answer>> {
    let stop = interrupt()?;
    let remote = Remote { programs: &remote.programs.interrupted_by(Arc::clone(&stop)), ..*remote };
    let mut ended = 0;
    let timed = |it: &T| {
        let before = Instant::now();
        (work(&remote, it), before.elapsed())
    };
    let answers = pool::each(all, pool::AT_ONCE, &stop, timed, |_, (answer, took)| {
        ended += 1;
        answer.report(*took, ended, all.len());
    });
    let answers = all.iter().zip(answers).map(|(it, answer)| match answer {
        Some((answer, _)) => answer,
        None => {
            let problem = "interrupted before it began; the machine is unchanged".to_owned();
            let answer = Answer::refused(host(it), problem);
            answer.report_lines();
            answer
        }
    });
    Ok(answers.collect())
}

fn install(
    session: &Session,
    remote: &Remote<'_>,
    hosts: &[Host],
    package: Option<&PathBuf>,
    listen: Option<SocketAddr>,
    replace: bool,
) -> anyhow::Result<Vec<Answer>> {
    let find = |named: Option<&Path>| anyhow::Ok(Package::find(&caller()?, named, &absolute(".".as_ref())?));
    // Report a wrong --package before asking any host.
    let named = package.map(|path| find(Some(&absolute(path)?))).transpose()?.transpose();
    let named = named.map_err(|error| Misuse(error.to_string()))?;
    // Looking changes nothing: a signal may end it, and the questions, at once.
    let look = |host: &Host| remote.look(host);
    let looked = pool::each(hosts, pool::AT_ONCE, &AtomicBool::new(false), look, |_, _| {});
    // Questions one after the other, before anything is changed.
    let decided = hosts.iter().zip(looked.into_iter().flatten()).map(|(host, looked)| {
        let step = match looked {
            Ok(found) => {
                let step = found.step(|what| if replace { Ok(true) } else { ask(host, what) });
                step.map_err(|problem| Answer::refused(host, problem))
            }
            Err(error) => Err(Answer::failed(host, error)),
        };
        (host, step)
    });
    let decided: Vec<(&Host, Result<Step, Answer>)> = decided.collect();
    let needs = decided.iter().any(|(_, step)| step.as_ref().is_ok_and(|step| step.needs_package));
    let package = match named {
        Some(package) => Some(Ok(package)),
        None if needs => Some(find(None)?.map_err(|error| error.to_string())),
        None => None,
    };
    each(
        remote,
        &decided,
        |(host, _)| host,
        |remote, (host, step)| {
            let Step { needs_package, replaces } = match step {
                Ok(step) => *step,
                Err(answer) => return answer.clone(),
            };
            let package = match package.as_ref().filter(|_| needs_package) {
                Some(Ok(package)) => Some(package),
                Some(Err(problem)) => return Answer::refused(host, problem.clone()),
                None => None,
            };
            if let (Some(package), false) = (package, session.format.is_json()) {
                say(host, &format!("copying {} ({} KiB)", package.path.display(), package.bytes.len() >> 10));
            }
            installed(remote, host, &InstallOptions { package, listen, replaces })
        },
    )
}

/// Asks the person at this terminal. Without a terminal it is an error.
fn ask(host: &Host, what: &str) -> Result<bool, String> {
    if !std::io::stdin().is_terminal() {
        return Err(format!(
            "{what}; rocworker needs a terminal to ask you: use --replace to replace it until uninstall"
        ));
    }
    let mut stderr = anstream::stderr();
    let question = "Replace it until rocworker remote uninstall restores it?";
    write!(stderr, "{host}: {what}\n{question} [y/N] ").ok();
    stderr.flush().ok();
    let mut reply = String::new();
    std::io::stdin().lock().read_line(&mut reply).map_err(|error| error.to_string())?;
    Ok(matches!(reply.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn installed(remote: &Remote<'_>, host: &Host, options: &InstallOptions<'_>) -> Answer {
    let found = match remote.install(host, options) {
        Ok(found) => found,
        Err(error) => return Answer::midway(host, error),
    };
    let mut answer = Answer::of(host, &found, 0);
    if let Some(listen) = answer.listen.filter(|listen| listen.ip().is_unspecified()) {
        let note =
            format!("the exporter listens on {listen}: anyone who can reach this host can read the metrics");
        answer.notes.push(note);
    }
    answer.try_from_here(host, &found);
    answer
}

fn checked(remote: &Remote<'_>, host: &Host) -> Answer {
    match remote.check(host) {
        Ok(found) => {
            let problems = found.problems();
            let mut answer = Answer::of(host, &found, if problems.is_empty() { 0 } else { 3 });
            answer.problems = problems;
            answer.try_from_here(host, &found);
            answer
        }
        Err(error) => Answer::failed(host, error),
    }
}

fn uninstalled(remote: &Remote<'_>, host: &Host, force: bool) -> Answer {
    match remote.uninstall(host, force) {
        Ok(found) => {
            let mut answer = Answer::of(host, &found, 0);
            let text = match () {
                () if found.is_nothing => "remote install did not set up this host; nothing to do",
                () if found.kept.is_empty() => "exporter removed, previous state restored",
                () => "exporter removed, previous state restored, except:",
            };
            answer.notes.insert(0, text.to_owned());
            answer
        }
        Err(error) => Answer::midway(host, error),
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
            listen: found.answer().map(|scrape| scrape.listen),
            answers_here: None,
            problems: Vec::new(),
            notes: found.kept.clone(),
            stderr: Vec::new(),
        }
    }

    fn refused(host: &Host, problem: String) -> Self {
        Self { problems: vec![problem], ..Self::of(host, &Found::default(), 1) }
    }

    fn failed(host: &Host, error: Error) -> Self {
        let text = error.to_string();
        let problem = text.strip_prefix(&format!("{host}: ")).unwrap_or(&text).to_owned();
        let stderr = if let Error::Refused { stderr, .. } = error { stderr } else { Vec::new() };
        Self { stderr, ..Self::refused(host, problem) }
    }

    /// The answer of a command that failed and may have changed the machine.
    fn midway(host: &Host, error: Error) -> Self {
        let is_midway = error.is_midway();
        let mut answer = Self::failed(host, error);
        if is_midway {
            answer.notes.push("the next install or uninstall finishes this one".to_owned());
        }
        answer
    }

    /// Prints the answer's lines on stderr. With several hosts, a line that counts the ended ones comes first.
    fn report(&self, took: Duration, ended: usize, of: usize) {
        if of > 1 {
            let line = progress(&self.host, self.code.into(), took, (ended, of));
            writeln!(anstream::stderr(), "{line}").ok();
        }
        self.report_lines();
    }

    fn report_lines(&self) {
        let problems = self.problems.iter().map(|problem| format!("problem: {problem}"));
        for line in self.stderr.iter().cloned().chain(problems).chain(self.notes.iter().cloned()) {
            say(&self.host, &line);
        }
    }

    /// A firewall in between is a note, not a failure: Prometheus may run elsewhere.
    fn try_from_here(&mut self, host: &Host, found: &Found) {
        let Some(scrape) = found.answer() else { return };
        let listen = scrape.listen;
        if listen.ip().is_loopback() {
            self.notes.push(format!("the exporter listens on {listen}: only its own host can reach it"));
            return;
        }
        let answered = scrape_by_name(&host.name, listen.port(), scrape.tls);
        self.answers_here = Some(answered.is_ok());
        if let Err(why) = answered {
            self.notes.push(format!(
                "the exporter answers on its host but not to this machine ({why}): a firewall may block the port, or only \
                 ~/.ssh/config knows the name"
            ));
        }
    }
}

impl Answers {
    fn shown(&self, is_check: bool) -> String {
        let mut text = String::new();
        for it in &self.hosts {
            if is_check && it.code != 1 {
                let version = it.version.as_deref().unwrap_or("not installed");
                let unit = it.unit.map_or_else(
                    || "no unit".to_owned(),
                    |unit| format!("unit {unit}, {}", it.active.as_deref().unwrap_or("state unknown")),
                );
                let listen =
                    it.listen.map_or_else(|| "no answer".to_owned(), |listen| format!("answers on {listen}"));
                text.push_str(&format!("{}: rocworker {version}, {unit}, {listen}\n", it.host));
            } else if let Some(url) = it.url.as_ref().filter(|_| it.code == 0) {
                text.push_str(&format!("Metrics available at: {url}\n"));
            }
        }
        text
    }
}

fn say(host: &impl Display, text: &str) {
    writeln!(anstream::stderr(), "{host}: {}", printable::printable(text)).ok();
}
