//! The command line: arguments in, an answer on stdout, talk on stderr, an exit code.

mod apply;
mod args;
mod boot;
mod boot_partitions;
mod cdi;
mod changes;
mod config;
mod deb;
mod demo;
mod detect;
mod doctor;
mod explain;
mod exporter;
mod fleet;
mod health;
mod help;
mod history;
mod hook;
mod hosts;
mod labels;
mod lease;
mod lxd;
mod manual;
mod metrics;
mod options;
mod output;
mod partition;
mod plan;
mod probe;
mod progress;
mod read_files;
mod remote;
mod report;
mod rights;
mod serve;
mod session;
mod settle;
mod status;
mod table;
mod tags;
mod task_check;
mod therock;
mod top;
mod topology;
mod undo;
mod visible;
mod words;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use printable::printable;

use crate::desired;
use crate::run::{self, Unreadable};
use args::{Args, Command, Person, Script};
use options::Format;
use session::Session;

/// How a command ended, when nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Done, or nothing to do.
    Done,
    /// Changes pending, drift, or a failed check.
    Findings,
    /// Something could not be applied or reverted; the answer says what.
    FellShort,
    /// A person has to write something into the configuration first; the answer asks for it.
    Undecided,
    /// Another exit code of a rocworker on another machine.
    RemoteExit(u8),
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    // Folders are made with the mode that engines need, at once: a caller's narrower one would be put right by a second
    // call, and a run that is killed between the two would leave them with the wrong mode.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    // A write beyond a limit on the size of files then fails with EFBIG, and its temporary file is removed (setrlimit(2)).
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).ok();
    let parsed = help::shown(Args::command()).try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Args::from_arg_matches(&matches)?, matches)));
    let (mut args, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are answers; anything else is a wrong argument.
            let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            visible::only(error).print().ok();
            return ExitCode::from(if wanted { 0 } else { 2 });
        }
    };
    if args.options.json {
        args.options.output = Format::Json;
    }
    args.options.color.write_global();
    // What a daemon does is for the journal.
    let talk = u8::from(matches!(args.command, Command::Person(Person::Serve)));
    session::log_to_stderr(args.options.verbose.saturating_add(talk));
    let verbose = args.options.verbose > 0;
    match run(args, &matches) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(3),
        Ok(Outcome::FellShort) => ExitCode::from(1),
        Ok(Outcome::Undecided) => ExitCode::from(2),
        Ok(Outcome::RemoteExit(code)) => ExitCode::from(code),
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut stderr = anstream::stderr();
            let text = printable(&format!("{error:#}").replace('\n', " "));
            writeln!(stderr, "rocworker: {text}").ok();
            if verbose && error.source().is_some() {
                writeln!(stderr, "{error:?}").ok();
            }
            ExitCode::from(if is_misuse(&error) { 2 } else { 1 })
        }
    }
}

/// Whether the arguments or the configuration are wrong, rather than the machine.
fn is_misuse(error: &anyhow::Error) -> bool {
    let is_of_configuration = |cause: &(dyn std::error::Error + 'static)| {
        let unreadable = cause.downcast_ref().is_some_and(|it| !matches!(it, Unreadable::Memory(_)));
        let desired = matches!(
            cause.downcast_ref(),
            Some(run::Error::Desired(desired::Error::Config(_) | desired::Error::Undecided { .. }))
        );
        unreadable || desired || cause.is::<::config::Error>()
    };
    error.is::<session::Misuse>() || error.chain().any(is_of_configuration)
}

fn run(args: Args, matches: &ArgMatches) -> anyhow::Result<Outcome> {
    if fleet::is_meant(&args) {
        return fleet::run(&args, matches);
    }
    if let Command::Script(Script::ReadFiles) = args.command {
        return read_files::run(&args.options.root);
    }
    rights::require_root(&args.options, &args.command, matches)?;
    let session = Session::new(&args.options)?;
    let readers = session.readers.clone();
    let outcome = match args.command {
        Command::Person(Person::Serve) => return serve::run(session),
        Command::Person(command) => for_person(&session, &args.options, command),
        Command::Script(command) => for_script(&session, command),
    };
    // The answer is there, without what these files would say.
    for text in readers.iter().flat_map(|readers| readers.complaints()) {
        writeln!(anstream::stderr(), "{}", printable(&text)).ok();
    }
    outcome
}

/// What plan, status and doctor answer of a report differs from what they answered on its machine.
fn warn_of_report(session: &Session, command: &Person) {
    if session.root.taken_at().is_none()
        || !matches!(command, Person::Plan { .. } | Person::Status | Person::Doctor { .. })
    {
        return;
    }
    tracing::warn!(
        "this is a report, which lacks files of its machine (capture.json lists them); plan.json, status.json and \
         doctor.json have what the machine itself answered"
    );
}

fn for_person(session: &Session, options: &options::Options, command: Person) -> anyhow::Result<Outcome> {
    warn_of_report(session, &command);
    if matches!(session.format, Format::Yaml | Format::Nfd) && !matches!(command, Person::Labels) {
        let name = session.format.name();
        return Err(session::Misuse(format!(
            "-o {name} is of `rocworker labels` alone: take table, wide or json"
        ))
        .into());
    }
    match command {
        Person::Demo(args) => demo::run(&args),
        Person::Detect => detect::run(session),
        Person::Plan { exit_code, save, only } => plan::run(session, exit_code, save.as_deref(), only),
        Person::Apply { file, dry_run, only } => apply::run(session, file.as_deref(), dry_run, only),
        Person::Status => status::run(session),
        Person::Undo { force, dry_run, only } => undo::run(session, force, dry_run, only),
        Person::Explain(args) => explain::run(session, &args),
        Person::ListErrors => explain::list_errors(session),
        Person::Health { rules } => health::run(session, rules.as_deref()),
        Person::History => history::run(session),
        Person::Config(command) => config::run(session, &command),
        Person::Cdi(command) => cdi::run(session, &command),
        Person::Completions { shell } => manual::completions(shell),
        Person::Lease(command) => lease::run(session, &command),
        Person::Lxd(command) => lxd::run(session, &command),
        Person::Man { into } => manual::man(into.as_deref()),
        Person::Doctor { canary, canary_limit } => {
            doctor::run(session, canary.then_some(Duration::from_secs(canary_limit)))
        }
        Person::Partition(command) => partition::run(session, &command),
        Person::Metrics { format } => metrics::run(session, format),
        Person::Report { file } => report::run(session, file.as_deref()),
        Person::Tags { env } => tags::run(session, env),
        Person::Top(args) => top::run(session, &args),
        Person::Topology(args) => topology::run(session, &args),
        Person::Labels => labels::run(session),
        Person::Remote(command) => remote::run(session, options, &command),
        Person::TaskCheck => task_check::run(session),
        // `run` has dealt with it.
        Person::Serve => Ok(Outcome::Done),
    }
}

fn for_script(session: &Session, command: Script) -> anyhow::Result<Outcome> {
    match command {
        Script::Boot => boot::run(session),
        Script::BootPartitions => boot_partitions::run(session),
        Script::Exporter(command) => exporter::run(session, &command),
        Script::Deb(command) => deb::run(session, &command),
        Script::Hook { name, guest } => hook::run(session, name.as_deref(), guest),
        Script::Probe(args) => probe::run(&args),
        Script::Snapshots => top::print_snapshots(session),
        Script::Settle { unit } => settle::run(session, &unit),
        Script::Therock(archive) => therock::run(session, &archive),
        // `run` has dealt with it.
        Script::ReadFiles => Ok(Outcome::Done),
    }
}
