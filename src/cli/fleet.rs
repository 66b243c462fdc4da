//! `--host` and `--hosts`: a command for other machines.

mod answers;
mod one;
mod passed;
mod several;

use fleet::script::Wanted;

use super::Outcome;
use super::args::{Args, Command, Person};
use super::hosts::hosts;
use super::metrics::TextFormat;
use super::next::TAKE_HOST;
use super::options::Only;
use super::session::{Misuse, Session};

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

/// How a command runs for another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RemoteCommand {
    method: Method,
    /// The command's arguments, which this program and the one on the other machine both get.
    words: Vec<String>,
    /// The text that metrics of several machines become.
    metrics: Option<TextFormat>,
    /// Whether it may change a machine.
    writes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Method {
    /// A shell on the other machine reads its files, and this program answers from them.
    Read { wanted: Wanted, since: Option<String> },
    /// The rocworker that the other machine has answers.
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
