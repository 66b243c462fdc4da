//! `--host` and `--hosts`: the rocworker on other machines answers a command.

mod answers;
mod escaped;
mod one;
mod several;
mod watched;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{ArgMatches, CommandFactory as _};
use fleet::program::{self, Which};
use fleet::ssh;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::args::{Args, Command, Person};
use super::hosts::hosts;
use super::metrics::TextFormat;
use super::options::Options;
use super::output::has_colour;
use super::session::{Misuse, Session, caller};
use super::words::words;
use super::{Outcome, cdi, config, health, lease, lxd, partition, report};
use crate::health::rules;

/// Whether the command runs for other machines. `remote` takes their names itself.
pub(crate) fn is_meant(Args { options, command }: &Args) -> bool {
    let names_hosts = !options.host.is_empty() || options.hosts.is_some();
    names_hosts && !matches!(command, Command::Person(Person::Remote(_)))
}

/// Runs the command for the machines that the arguments name. `matches`: clap's, of the same arguments.
pub(crate) fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Outcome> {
    let Command::Person(command) = &args.command else { return Err(refused(HERE)) };
    let asked = RemoteCommand::of(command, matches)?;
    let session = Session::new(&args.options)?;
    let programs = session.programs.as_ref();
    let programs = programs.ok_or_else(|| Misuse("--host cannot be used with --root".to_owned()))?;
    if args.options.config.is_some() && args.options.hosts.is_none() && reads_configuration(command) {
        let text = "--config names a file of this machine, and --host has the other machine read its own: copy the file \
                    there, and give --config there";
        return Err(Misuse(text.to_owned()).into());
    }
    let hosts = hosts(&session, &args.options, &[])?;
    match (&*args.options.host, &*hosts, command) {
        ([_], [host], Person::Top(top)) if !top.once => {
            watched::run(programs.clone(), &session, host.host.clone(), top)
        }
        (_, _, Person::Top(top)) if !top.once => {
            Err(Misuse("top watches one machine: name one, or give --once".to_owned()).into())
        }
        ([_], [host], _) => one::run(programs, &args.options, host, &asked),
        _ => several::run(programs, &args.options, &hosts, &asked),
    }
}

/// A command as the rocworker on another machine gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RemoteCommand {
    which: Which,
    words: Vec<String>,
    /// What the program reads from stdin.
    input: Vec<u8>,
    /// The text that metrics of several machines become.
    metrics: Option<TextFormat>,
    /// Where this machine keeps the report.
    report: Option<report::Destination>,
    /// Whether it may change a machine.
    writes: bool,
}

impl RemoteCommand {
    fn of(command: &Person, matches: &ArgMatches) -> anyhow::Result<Self> {
        let which = which(command)?;
        let mut words = words(&Args::command(), matches)?;
        let mut input = Vec::new();
        if let Person::Health { rules: Some(rules) } = command {
            (_, input) = rules::named(&caller()?, &health::named(rules)?).map_err(Misuse)?;
            replace(&mut words, "--rules", "-");
        }
        let report = match command {
            Person::Report { file } => {
                replace(&mut words, "--file", "-");
                Some(report::Destination::of(file.as_deref())?)
            }
            _ => None,
        };
        let metrics = match command {
            Person::Metrics { format } => Some(format.unwrap_or(TextFormat::Prometheus)),
            _ => None,
        };
        let writes =
            matches!(command, Person::Apply { dry_run: false, .. } | Person::Undo { dry_run: false, .. });
        Ok(Self { which, words, input, metrics, report, writes })
    }

    /// What runs on a machine. `words`: those of [`Self::argv`].
    fn command<'w>(&self, options: &Options, words: &'w [String], most: usize) -> program::Command<'w> {
        let colour = has_colour(options);
        program::Command { which: self.which, words, colour, limit: ssh::LIMIT, most }
    }

    /// The words of the command line there.
    fn argv(&self, options: &Options, is_joined: bool) -> Vec<String> {
        // The metrics of several machines are joined from values.
        let format = if is_joined && self.metrics.is_some() { "json" } else { options.output.name() };
        let output = ["-o", format].map(str::to_owned);
        let verbose = (0..options.verbose).map(|_| "-v".to_owned());
        self.words.iter().cloned().chain(output).chain(verbose).collect()
    }
}

/// Becomes true with a signal. A second one ends this program, which may wait for whoever reads its output.
fn interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Whether the command's answer is about the configuration.
fn reads_configuration(command: &Person) -> bool {
    use Person::{Apply, Cdi, Config, Doctor, Partition, Plan, Report, Status, Tags, Undo};
    matches!(command, Cdi(_) | Config(_) | Doctor { .. } | Plan { .. } | Report { .. } | Status)
        || matches!(
            command,
            Apply { .. } | Tags { .. } | Undo { .. } | Partition(partition::Command::Plan(_))
        )
}

/// Gives an option another value, or adds it.
fn replace(words: &mut Vec<String>, option: &str, value: &str) {
    words.retain(|word| !word.starts_with(&format!("{option}=")));
    words.push(format!("{option}={value}"));
}

/// Which rocworker answers a command on another machine.
fn which(command: &Person) -> anyhow::Result<Which> {
    Ok(match command {
        Person::Detect
        | Person::Doctor { .. }
        | Person::Metrics { .. }
        | Person::Health { .. }
        | Person::Top(_)
        | Person::Topology(_)
        | Person::Labels
        | Person::Partition(
            partition::Command::Show
            | partition::Command::Devices
            | partition::Command::Env(_)
            | partition::Command::Fit(_),
        )
        | Person::Report { .. }
        | Person::Cdi(cdi::Command::List | cdi::Command::Validate { file: None })
        | Person::Config(config::Command::Validate { file: None })
        | Person::Lxd(lxd::Command::Advise { resources: None, .. }) => Which::Same,
        Person::Explain(args) if args.journal => Which::Same,
        Person::Status
        | Person::History
        | Person::Tags { .. }
        | Person::Lease(lease::Command::List)
        | Person::Partition(partition::Command::Plan(_))
        | Person::Plan { save: None, .. } => Which::Any,
        Person::Apply { file: None, .. } | Person::Undo { .. } => Which::Installed,
        Person::Cdi(cdi::Command::Validate { .. }) | Person::Config(config::Command::Validate { .. }) => {
            return Err(refused("a FILE is read on this machine only: leave FILE out, or remove --host"));
        }
        Person::Explain(_) => {
            return Err(refused("explain takes --host only with --journal: add --journal, or remove --host"));
        }
        Person::Plan { .. } => {
            return Err(refused(
                "plan --save works on this machine only: save the output of `rocworker --host HOST -o json plan`, and \
                 apply that file on HOST",
            ));
        }
        Person::Apply { .. } => {
            return Err(refused(
                "apply FILE works on this machine only: copy FILE to HOST, and run `apply FILE` there",
            ));
        }
        _ => return Err(refused(HERE)),
    })
}

const HERE: &str = "this command works on this machine only";

/// The commands for other machines, with the option without which one is not.
pub(super) const TAKE_HOST: &str = "detect, doctor, metrics, health, top, topology, labels, partition show, partition devices, partition env, partition fit, partition plan, explain --journal, report, status, plan, history, \
                         tags, lease list, cdi list, cdi validate, config validate, lxd advise, apply, undo";

fn refused(why: &str) -> anyhow::Error {
    Misuse(format!("{why}. Commands that take --host and --hosts: {TAKE_HOST}")).into()
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    fn asked(line: &str) -> RemoteCommand {
        let words = ["rocworker", "--host", "gpu1"].into_iter().chain(line.split(' '));
        let matches = Args::command().try_get_matches_from(words).unwrap();
        let Command::Person(command) = Args::from_arg_matches(&matches).unwrap().command else {
            panic!("{line} is a script's");
        };
        RemoteCommand::of(&command, &matches).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn each_command_that_is_said_to_take_host_takes_it() {
        for line in TAKE_HOST.split(", ") {
            let needed = match line {
                "partition env" => " 0",
                "partition fit" => " model --partition=0",
                _ => "",
            };
            let line = format!("{line}{needed}");
            let words = asked(&line).words.join(" ");
            assert!(line == "report" || words == line, "{line}: {words:?}");
        }
    }

    #[test]
    fn arguments_pass_and_options_of_this_program_and_files_of_this_machine_do_not() {
        for (line, words) in [
            ("explain --journal --since yesterday", "explain --journal --since=yesterday"),
            ("plan --exit-code --only exporter -o json", "plan --exit-code --only=exporter"),
            ("-v tags --env", "tags --env"),
            ("report --file /srv/x.tar.gz", "report --file=-"),
            ("doctor --canary --canary-limit 9", "doctor --canary --canary-limit=9"),
            ("lease list", "lease list"),
        ] {
            assert_eq!(asked(line).words.join(" "), words);
        }
        assert!(asked("undo --force").writes && !asked("undo --dry-run").writes);
    }
}
