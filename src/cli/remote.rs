//! The exporter on other machines. A failure on one machine does not stop the others.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use config::{Host, listen_address};
use fleet::pool;
use fleet::program::{self, Event, Which};
use fleet::remote::package::Package;
use fleet::remote::scrape::scrape_by_name;
use fleet::ssh::{self, Error};
use printable::printable;
use reconcile::Digest;
use reconcile::command::{Programs, Stream};
use serde::Serialize;

use super::Outcome;
use super::hosts::{hosts as hosts_of, progress};
use super::options::Options;
use super::session::{Misuse, Session, absolute, caller, interrupt};
use crate::exporter_setup::{Found, Unit};

/// How many last lines of a machine's stderr a person is shown.
const LINES: usize = 40;
/// The most bytes of a machine's output. An answer has some hundred, and dpkg and apply print some kibibytes.
const MOST: usize = 4 << 20;

/// How many bytes at the end of stderr are kept for these lines.
const MOST_STDERR: usize = 1 << 20;

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
    #[serde(flatten)]
    found: Found,
    /// Whether the exporter answers this machine; null if rocworker did not try.
    answers_here: Option<bool>,
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
    let hosts = match command {
        Command::Install { package, listen, replace, .. } => {
            install(session, programs, &hosts, package.as_ref(), *listen, *replace)?
        }
        Command::Check { .. } => each(programs, &hosts, |host| host, checked)?,
        Command::Uninstall { force, .. } => {
            let words = if *force { &["uninstall", "--force"][..] } else { &["uninstall"] };
            each(programs, &hosts, |host| host, |programs, host| run_there(programs, host, words, &[]))?
        }
    };
    let answers = Answers { schema_version: 1, hosts };
    session.format.print(&answers, || answers.shown(matches!(command, Command::Check { .. })))?;
    if matches!(command, Command::Install { .. }) && !session.format.is_json() {
        answers.next().iter().for_each(|line| drop(writeln!(anstream::stderr(), "{line}")));
    }
    Ok(match () {
        () if answers.hosts.iter().any(|it| it.code == 1) => Outcome::FellShort,
        () if answers.hosts.iter().any(|it| it.code == 3) => Outcome::Findings,
        () => Outcome::Done,
    })
}

/// Runs `work` for each host and reports each as it ends. Returns the answers in the order of the hosts.
fn each<T: Sync>(
    programs: &Programs,
    all: &[T],
    host: impl Fn(&T) -> &Host,
    work: impl Fn(&Programs, &T) -> Answer + Sync,
) -> anyhow::Result<Vec<Answer>> {
    let stop = interrupt()?;
    let programs = programs.interrupted_by(Arc::clone(&stop));
    let mut ended = 0;
    let timed = |it: &T| {
        let before = Instant::now();
        (work(&programs, it), before.elapsed())
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
    programs: &Programs,
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
    let look = |host: &Host| run_there(programs, host, &["look"], &[]);
    let looked = pool::each(hosts, pool::AT_ONCE, &AtomicBool::new(false), look, |_, _| {});
    // Questions one after the other, before anything is changed.
    let decided = hosts.iter().zip(looked.into_iter().flatten()).map(|(host, answer)| {
        let may_replace = match &answer.found.foreign {
            Some(what) if !replace => ask(host, what),
            _ => Ok(()),
        };
        (host, may_replace.map_or_else(|problem| Answer::refused(host, problem), |()| answer))
    });
    let decided: Vec<(&Host, Answer)> = decided.collect();
    let needs = |looked: &Answer| looked.code == 0 && looked.found.version.is_none();
    let package = match named {
        Some(package) => Some(Ok(package)),
        None if decided.iter().any(|(_, looked)| needs(looked)) => {
            Some(find(None)?.map_err(|error| error.to_string()))
        }
        None => None,
    };
    let listen = listen.map(|listen| listen.to_string());
    each(
        programs,
        &decided,
        |(host, _)| host,
        |programs, (host, looked)| {
            if looked.code != 0 {
                return looked.clone();
            }
            let mut words = vec!["install"];
            words.extend(listen.iter().flat_map(|listen| ["--listen", listen]));
            words.extend(looked.found.foreign.is_some().then_some("--replace"));
            let package = match package.as_ref().filter(|_| needs(looked)) {
                Some(Err(problem)) => return Answer::refused(host, problem.clone()),
                Some(Ok(package)) => Some(package),
                None => None,
            };
            let digest = package.map(|package| Digest::of(&package.bytes));
            words.extend(digest.iter().flat_map(|digest| ["--package", digest.as_str()]));
            if let (Some(package), false) = (package, session.format.is_json()) {
                let (path, kib) = (package.path.display(), package.bytes.len() >> 10);
                say(&host.to_string(), &format!("copying {path} ({kib} KiB)"));
            }
            let bytes = package.map_or(&[][..], |package| &package.bytes);
            installed(host, run_there(programs, host, &words, bytes))
        },
    )
}

/// Asks the person at this terminal. Without a terminal, or after a no, it is an error.
fn ask(host: &Host, what: &str) -> Result<(), String> {
    if !std::io::stdin().is_terminal() {
        return Err(format!(
            "{what}; rocworker needs a terminal to ask you: use --replace to replace it until uninstall"
        ));
    }
    let mut stderr = anstream::stderr();
    let question = "Replace it until rocworker remote uninstall restores it?";
    write!(stderr, "{host}: {}\n{question} [y/N] ", printable(what)).ok();
    stderr.flush().ok();
    let mut reply = String::new();
    std::io::stdin().lock().read_line(&mut reply).map_err(|error| error.to_string())?;
    match reply.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err("you chose to keep rocm-exporter.service; the machine is unchanged".to_owned()),
    }
}

fn installed(host: &Host, mut answer: Answer) -> Answer {
    if let Some(listen) = answer.found.listen.filter(|listen| listen.ip().is_unspecified()) {
        let note =
            format!("the exporter listens on {listen}: anyone who can reach this host can read the metrics");
        answer.found.notes.push(note);
    }
    answer.try_from_here(host);
    answer
}

fn checked(programs: &Programs, host: &Host) -> Answer {
    let mut answer = run_there(programs, host, &["check"], &[]);
    if answer.code == 0 && !answer.found.problems.is_empty() {
        answer.code = 3;
    }
    answer.try_from_here(host);
    answer
}

/// Runs a command of `rocworker exporter` there.
fn run_there(programs: &Programs, host: &Host, words: &[&str], input: &[u8]) -> Answer {
    let argv: Vec<String> = ["exporter"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    let command =
        program::Command { which: Which::Root, words: &argv, colour: false, limit: ssh::LIMIT, most: MOST };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = program::run(programs, host, &command, &mut |event| {
        if let Some(text) = event.sentence() {
            say(&host.to_string(), &text);
        }
        match event {
            Event::Copying { .. } => {}
            // Where the connection has ended, ssh says so.
            Event::Begun { stdin, .. } => drop(stdin.send(input.to_vec())),
            Event::Output(Stream::Stdout, chunk) => stdout.extend(chunk),
            Event::Output(Stream::Stderr, chunk) => {
                stderr.extend(chunk);
                stderr.drain(..stderr.len().saturating_sub(MOST_STDERR));
            }
        }
        true
    });
    let mut stderr: Vec<String> = String::from_utf8_lossy(&stderr).lines().map(str::to_owned).collect();
    stderr.drain(..stderr.len().saturating_sub(LINES));
    let is_midway =
        matches!(ended, Err(Error::Interrupted { .. } | Error::Lost { .. } | Error::TimedOut { .. }));
    let problem = match ended.map(|code| (code, serde_json::from_slice::<Found>(&stdout))) {
        Ok((0, Ok(mut found))) => {
            let url = found.url(host);
            // The URL has it.
            found.tls = false;
            return Answer { code: 0, url, found, ..Answer::refused(host, String::new()) };
        }
        Ok((0, Err(error))) => format!("its answer is not this version's: {error}"),
        Ok((code, _)) => match stderr.pop() {
            Some(line) => line.strip_prefix("rocworker: ").unwrap_or(&line).to_owned(),
            None => format!("its rocworker ended with code {code}"),
        },
        Err(error) => error.to_string().trim_start_matches(&format!("{host}: ")).to_owned(),
    };
    let mut answer = Answer { stderr, ..Answer::refused(host, problem) };
    if is_midway && matches!(words, ["install" | "uninstall", ..]) {
        answer.found.notes.push("the next install or uninstall finishes this one".to_owned());
    } else if matches!(words, ["install", ..]) {
        let back =
            format!("if something is left of it, rocworker remote uninstall {host} restores what was before");
        answer.found.notes.push(back);
    }
    answer
}

impl Found {
    /// The URL at which Prometheus finds the metrics, with the host's name as it was given. `None`: it is unknown, or
    /// the exporter listens on loopback alone.
    fn url(&self, host: &Host) -> Option<String> {
        let listen = self.listen.filter(|listen| !listen.ip().is_loopback())?;
        let scheme = if self.tls { "https" } else { "http" };
        let name = &host.name;
        let name = if name.contains(':') { format!("[{name}]") } else { name.clone() };
        Some(format!("{scheme}://{name}:{}/metrics", listen.port()))
    }
}

impl Answer {
    fn refused(host: &Host, problem: String) -> Self {
        let found = Found { problems: vec![problem], ..Found::default() };
        Self { host: host.to_string(), code: 1, url: None, found, answers_here: None, stderr: Vec::new() }
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
        let problems = self.found.problems.iter().map(|problem| format!("problem: {problem}"));
        for line in self.stderr.iter().cloned().chain(problems).chain(self.found.notes.iter().cloned()) {
            say(&self.host, &line);
        }
    }

    /// A firewall in between is a note, not a failure: Prometheus may run elsewhere.
    fn try_from_here(&mut self, host: &Host) {
        let Some(listen) = self.found.listen else { return };
        let Some(url) = &self.url else {
            let note = format!("the exporter listens on {listen}: only its own host can reach it");
            self.found.notes.push(note);
            return;
        };
        let answered = scrape_by_name(&host.name, listen.port(), url.starts_with("https:"));
        self.answers_here = Some(answered.is_ok());
        if let Err(why) = answered {
            self.found.notes.push(format!(
                "the exporter answers on its host but not to this machine ({why}): a firewall may block the port, or only \
                 ~/.ssh/config knows the name"
            ));
        }
    }
}

impl Answers {
    /// What a person does after an installation. `None`: no machine has the exporter.
    fn next(&self) -> Option<String> {
        let done: Vec<&str> =
            self.hosts.iter().filter(|it| it.code == 0).map(|it| it.host.as_str()).collect();
        let hosts = done.join(" ");
        (!done.is_empty()).then(|| {
            format!(
                "Next: have Prometheus scrape it (docs/monitoring.md). rocworker remote check {hosts} checks it, rocworker \
                 remote uninstall {hosts} restores what was before."
            )
        })
    }

    fn shown(&self, is_check: bool) -> String {
        let mut text = String::new();
        for it in &self.hosts {
            if is_check && it.code != 1 {
                let Found { version, unit, active, listen, .. } = &it.found;
                let version = printable(version.as_deref().unwrap_or("not installed"));
                let state = printable(active.as_deref().unwrap_or("state unknown"));
                let unit = unit.map(|unit| if unit == Unit::Own { "own" } else { "foreign" });
                let unit = unit.map_or_else(|| "no unit".to_owned(), |unit| format!("unit {unit}, {state}"));
                let listen = listen.map_or_else(|| "no answer".to_owned(), |it| format!("answers on {it}"));
                text.push_str(&format!("{}: rocworker {version}, {unit}, {listen}\n", it.host));
            } else if let Some(url) = it.url.as_ref().filter(|_| it.code == 0) {
                text.push_str(&format!("Metrics available at: {url}\n"));
            }
        }
        text
    }
}

fn say(host: &str, text: &str) {
    writeln!(anstream::stderr(), "{host}: {}", printable(text)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_where_the_metrics_are() {
        for (listen, tls, name, url) in [
            ("0.0.0.0:9401", false, "gpu1", Some("http://gpu1:9401/metrics")),
            ("[::]:9500", true, "gpu1.example.org", Some("https://gpu1.example.org:9500/metrics")),
            ("0.0.0.0:9401", false, "fd00::1", Some("http://[fd00::1]:9401/metrics")),
            ("127.0.0.1:9401", false, "gpu1", None),
            ("[::1]:9401", true, "gpu1", None),
        ] {
            let found = Found { listen: Some(listen.parse().unwrap()), tls, ..Found::default() };
            let host = Host { user: Some("ops".to_owned()), name: name.to_owned() };
            assert_eq!(found.url(&host).as_deref(), url);
        }
    }

    #[test]
    fn an_installation_says_what_comes_next() {
        let answer =
            |host: &str, code| Answer { code, ..Answer::refused(&host.parse().unwrap(), String::new()) };
        let hosts = vec![answer("gpu1", 0), answer("gpu2", 1), answer("root@gpu3", 0)];
        let next = Answers { schema_version: 1, hosts }.next().unwrap();
        assert!(
            next.contains("rocworker remote check gpu1 root@gpu3 checks") && !next.contains("gpu2"),
            "{next}"
        );
        assert_eq!(Answers { schema_version: 1, hosts: vec![answer("gpu2", 1)] }.next(), None);
    }

    #[test]
    fn no_answer_steers_the_terminal() {
        let found =
            Found { active: Some("x\n\u{1b}[2J".to_owned()), unit: Some(Unit::Own), ..Found::default() };
        let answer = Answer { code: 3, found, ..Answer::refused(&"gpu1".parse().unwrap(), String::new()) };
        let shown = Answers { schema_version: 1, hosts: vec![answer] }.shown(true);
        assert!(shown.matches(char::is_control).eq(["\n"]), "{shown}");
    }
}
