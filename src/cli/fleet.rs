//! `--host` and `--hosts`: a command for other machines.

mod answers;
mod one;
mod passed;
mod several;

use anyhow::anyhow;

use super::Outcome;
use super::args::{Args, Command, Only, Options, Person};
use super::metrics::TextFormat;
use super::session::{Misuse, Session};
use crate::fleet::host::Host;
use crate::fleet::script::Wanted;

/// Whether the arguments name other machines.
pub(crate) fn is_meant(options: &Options) -> bool {
    !options.host.is_empty() || options.hosts.is_some()
}

/// Does the command on the machines that the arguments name.
pub(crate) fn run(args: Args) -> anyhow::Result<Outcome> {
    let asked = Asked::of(&args.command)?;
    let session = Session::new(&args.options)?;
    let hosts = hosts(&session, &args.options)?;
    match (&*args.options.host, &*hosts) {
        ([_], [host]) => one::run(&session, &args.options, host, &asked, args.command),
        _ => several::run(&session, &args.options, &hosts, &asked),
    }
}

/// A machine, by the name that the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    name: String,
    pub(super) host: Host,
}

impl From<&Host> for Named {
    fn from(host: &Host) -> Self {
        Self { name: host.to_string(), host: host.clone() }
    }
}

fn hosts(session: &Session, options: &Options) -> anyhow::Result<Vec<Named>> {
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
    each_once(session, hosts)
}

/// Each machine once, in this order. A name without a user gets the inventory's.
pub(super) fn each_once(session: &Session, mut hosts: Vec<Named>) -> anyhow::Result<Vec<Named>> {
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

/// A configuration that only root may read is none for a user who names machines. A wrong one is an error: with another
/// user than the one that it means, a machine may lock the account.
fn may_read<T>(config: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    let is_denied = |error: &anyhow::Error| {
        error.chain().any(|cause| cause.downcast_ref().is_some_and(root::Error::is_denied))
    };
    match config {
        Ok(config) => Ok(Some(config)),
        Err(error) if is_denied(&error) => {
            tracing::info!("{error:#}: no user of its inventory is known");
            Ok(None)
        }
        Err(error) => {
            Err(error
                .context("whom to log in as stands in the configuration: name USER@HOST to do without it"))
        }
    }
}

/// How a command is done on another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    way: Way,
    /// Its arguments, as this program and the one there take them.
    words: Vec<String>,
    /// The text that metrics of several machines become.
    metrics: Option<TextFormat>,
    /// Whether it may change a machine.
    writes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// A shell there reads; this program answers.
    Read { wanted: Wanted, since: Option<String> },
    /// The rocworker there answers.
    Installed,
}

impl Asked {
    fn of(command: &Command) -> anyhow::Result<Self> {
        let Command::Person(command) = command else { return refused("this command is for this machine") };
        let read = |wanted| Way::Read { wanted, since: None };
        let mut metrics = None;
        let mut writes = false;
        let (way, words): (_, Vec<&str>) = match command {
            Person::Detect => (read(Wanted::Machine), vec!["detect"]),
            Person::Metrics { format } => {
                metrics = Some(format.unwrap_or(TextFormat::Prometheus));
                let format = match format {
                    None => vec![],
                    Some(TextFormat::Prometheus) => vec!["--format=prometheus"],
                    Some(TextFormat::Openmetrics) => vec!["--format=openmetrics"],
                };
                (read(Wanted::Readings), [vec!["metrics"], format].concat())
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
                (Way::Read { wanted: Wanted::Journal, since }, words)
            }
            Person::Explain(_) => {
                return refused(
                    "of explain only --journal asks a machine: leave --host out, or add --journal",
                );
            }
            Person::Status => (Way::Installed, vec!["status"]),
            Person::Plan { save: Some(_), .. } => {
                return refused(
                    "plan --save keeps a plan of this machine: save what `rocworker --host HOST -o json plan` \
                                prints, and apply that on HOST",
                );
            }
            Person::Plan { exit_code, save: None, only } => {
                (Way::Installed, given(&["plan"], &[(*exit_code, "--exit-code"), exporter(*only)]))
            }
            Person::Apply { file: Some(_), .. } => {
                return refused("a saved plan is for one machine: copy it there, and run apply FILE there");
            }
            Person::Apply { dry_run, file: None, only } => {
                writes = !dry_run;
                (Way::Installed, given(&["apply"], &[(*dry_run, "--dry-run"), exporter(*only)]))
            }
            _ => return refused("this command is for this machine"),
        };
        Ok(Self { way, words: words.into_iter().map(str::to_owned).collect(), metrics, writes })
    }
}

fn exporter(only: Option<Only>) -> (bool, &'static str) {
    match only {
        Some(Only::Exporter) => (true, "--only=exporter"),
        None => (false, ""),
    }
}

/// A command with those of its options that are given.
fn given<'w>(command: &[&'w str], options: &[(bool, &'w str)]) -> Vec<&'w str> {
    let options = options.iter().filter(|(is_given, _)| *is_given).map(|(_, option)| *option);
    command.iter().copied().chain(options).collect()
}

fn refused<T>(why: &str) -> anyhow::Result<T> {
    let text = format!(
        "{why}. --host and --hosts go with detect, metrics, health, doctor, explain --journal, status, plan and apply"
    );
    Err(Misuse(text).into())
}
