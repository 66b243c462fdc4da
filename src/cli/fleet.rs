//! `--host` and `--hosts`: a command for other machines.

mod answers;
mod one;
mod passed;
mod several;

use std::time::Duration;

use anyhow::anyhow;
use config::Host;
use fleet::script::Wanted;

use super::Outcome;
use super::args::{Args, Command, Only, Options, Person};
use super::metrics::TextFormat;
use super::session::{Misuse, Session};

/// The commands for other machines.
pub(crate) const TAKE_HOST: [&str; 8] =
    ["detect", "metrics", "health", "doctor", "explain --journal", "status", "plan", "apply"];

/// Whether the command runs for other machines. `remote` takes their names itself.
pub(crate) fn is_meant(Args { options, command }: &Args) -> bool {
    let names_hosts = !options.host.is_empty() || options.hosts.is_some();
    names_hosts && !matches!(command, Command::Person(Person::Remote(_)))
}

/// Runs the command for the machines that the arguments name.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let Command::Person(command) = args.command else { return refused(HERE) };
    let asked = RemoteCommand::of(&command)?;
    let session = Session::new(&args.options)?;
    let programs = session.programs.as_ref();
    let programs = programs.ok_or_else(|| Misuse("--host cannot be used with --root".to_owned()))?;
    let hosts = hosts(&session, &args.options, &[])?;
    match (&*args.options.host, &*hosts) {
        ([_], [host]) => one::run(programs, &args.options, host, &asked, command),
        _ => several::run(programs, &args.options, &hosts, &asked),
    }
}

/// A machine, by the name that the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    name: String,
    pub(super) host: Host,
}

/// How a machine ended: so many of so many have.
pub(super) fn progress(name: &str, code: i32, took: Duration, (ended, of): (usize, usize)) -> String {
    let seconds = took.as_secs_f64();
    match code {
        0 => format!("[{ended}/{of}] {name}: done in {seconds:.1} s"),
        3 => format!("[{ended}/{of}] {name}: done in {seconds:.1} s, with findings"),
        _ => format!("[{ended}/{of}] {name}: failed after {seconds:.1} s"),
    }
}

/// The hosts that the options and the arguments name, each once. A name without a user gets the inventory's.
pub(super) fn hosts(session: &Session, options: &Options, arguments: &[Host]) -> anyhow::Result<Vec<Named>> {
    let misuse = |problem: String| anyhow!(Misuse(problem));
    let mut hosts = Vec::new();
    if let Some(group) = &options.hosts {
        let inventory = session.config()?.inventory;
        let group = inventory.group(group).map_err(|problem| misuse(format!("--hosts: {problem}")))?;
        for host in &group.hosts {
            hosts.push(Named { name: host.to_string(), host: inventory.with_user(host.clone()) });
        }
    }
    for name in &options.host {
        let host = name.parse().map_err(|problem| misuse(format!("--host: {problem}")))?;
        hosts.push(Named { name: name.clone(), host });
    }
    hosts.extend(arguments.iter().map(|host| Named { name: host.to_string(), host: host.clone() }));
    if hosts.iter().any(|named| named.host.user.is_none())
        && let Some(inventory) = may_read(session.config())?.map(|config| config.inventory)
    {
        hosts.iter_mut().for_each(|named| named.host = inventory.with_user(named.host.clone()));
    }
    let mut each_once: Vec<Named> = Vec::new();
    for named in hosts {
        if !each_once.iter().any(|known| known.host == named.host) {
            each_once.push(named);
        }
    }
    Ok(each_once)
}

/// `None` of a configuration that this user may not read. An invalid one is an error: if ssh tried another user than
/// `inventory.user`, a machine might lock the account.
fn may_read<T>(config: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    let is_denied = |error: &anyhow::Error| {
        error.chain().any(|cause| cause.downcast_ref().is_some_and(root::Error::is_denied))
    };
    match config {
        Ok(config) => Ok(Some(config)),
        Err(error) if is_denied(&error) => {
            tracing::info!("{error:#}; continuing without inventory.user");
            Ok(None)
        }
        Err(error) => {
            Err(error
                .context("cannot read inventory.user (write USER@HOST to log in without the configuration)"))
        }
    }
}

/// How a command runs for another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RemoteCommand {
    method: Method,
    /// Its arguments, for this program and for the one on that machine.
    words: Vec<String>,
    /// The text that metrics of several machines become.
    metrics: Option<TextFormat>,
    /// Whether it may change a machine.
    writes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Method {
    /// A shell there reads; this program answers.
    Read { wanted: Wanted, since: Option<String> },
    /// The rocworker there answers.
    Installed,
}

impl RemoteCommand {
    fn of(command: &Person) -> anyhow::Result<Self> {
        let read = |wanted| Method::Read { wanted, since: None };
        let mut metrics = None;
        let mut writes = false;
        let (method, words): (_, Vec<&str>) = match command {
            Person::Detect => (read(Wanted::Machine), vec!["detect"]),
            Person::Metrics { format } => {
                metrics = Some(format.unwrap_or(TextFormat::Prometheus));
                (read(Wanted::Readings), vec!["metrics"])
            }
            Person::Health { rules: None } => (read(Wanted::Health), vec!["health"]),
            Person::Health { rules: Some(rules) } => {
                let Some(rules) = rules.to_str() else { return refused("--rules: its name is no UTF-8") };
                (read(Wanted::Health), vec!["health", "--rules", rules])
            }
            Person::Doctor { canary: false, .. } => (read(Wanted::Doctor), vec!["doctor"]),
            Person::Doctor { .. } => {
                return refused("doctor --canary starts containers: run it on the machine itself");
            }
            Person::Explain(args) if args.journal => {
                let since = args.since.clone();
                let words = match &args.since {
                    Some(since) => vec!["explain", "--journal", "--since", since],
                    None => vec!["explain", "--journal"],
                };
                (Method::Read { wanted: Wanted::Journal, since }, words)
            }
            Person::Explain(_) => {
                return refused("explain takes --host only with --journal: add --journal, or remove --host");
            }
            Person::Status => (Method::Installed, vec!["status"]),
            Person::Plan { save: Some(_), .. } => {
                return refused(
                    "plan --save works on this machine only: save the output of `rocworker --host HOST -o json plan`, \
                     and apply that file on HOST",
                );
            }
            Person::Plan { exit_code, save: None, only } => {
                installed("plan", exit_code.then_some("--exit-code"), *only)
            }
            Person::Apply { file: Some(_), .. } => {
                return refused(
                    "apply FILE works on this machine only: copy FILE to HOST, and run `apply FILE` there",
                );
            }
            Person::Apply { dry_run, file: None, only } => {
                writes = !dry_run;
                installed("apply", dry_run.then_some("--dry-run"), *only)
            }
            _ => return refused(HERE),
        };
        Ok(Self { method, words: words.into_iter().map(str::to_owned).collect(), metrics, writes })
    }
}

fn installed<'w>(command: &'w str, option: Option<&'w str>, only: Option<Only>) -> (Method, Vec<&'w str>) {
    let only = only.map(|Only::Exporter| "--only=exporter");
    (Method::Installed, [command].into_iter().chain(option).chain(only).collect())
}

const HERE: &str = "this command works on this machine only";

fn refused<T>(why: &str) -> anyhow::Result<T> {
    let commands = TAKE_HOST.join(", ");
    Err(Misuse(format!("{why}. Commands that take --host and --hosts: {commands}")).into())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn each_command_that_is_said_to_take_host_takes_it() {
        for command in TAKE_HOST {
            let words = ["rocworker", "--host", "gpu1"].into_iter().chain(command.split(' '));
            let args = Args::try_parse_from(words).unwrap();
            let Command::Person(asked) = &args.command else { panic!("{command} is a script's") };
            let asked = RemoteCommand::of(asked).unwrap_or_else(|error| panic!("{command}: {error}"));
            assert_eq!(asked.words, command.split(' ').collect::<Vec<_>>());
        }
    }
}
