//! The command line: arguments in, an answer on stdout, talk on stderr, an exit code.

mod apply;
mod args;
mod boot;
mod cdi;
mod changes;
mod deb;
mod demo;
mod detect;
mod doctor;
mod history;
mod hook;
mod lease;
mod lxd;
mod manual;
mod output;
mod plan;
mod probe;
mod progress;
mod report;
mod serve;
mod session;
mod settle;
mod status;
mod table;
mod tags;
mod task_check;
mod therock;
mod undo;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;

use crate::printable::printable;
use crate::run::{self, Unreadable};
use crate::{config, desired};
use args::{Args, Command};
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
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    // Folders are made with the mode that engines need, at once: a caller's narrower one would be put right by a second
    // call, and a run that is killed between the two would leave them with the wrong mode.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers; anything else is a wrong argument.
            let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            error.print().ok();
            return ExitCode::from(if wanted { 0 } else { 2 });
        }
    };
    // What a daemon does is for the journal.
    let talk = u8::from(matches!(args.command, Command::Serve));
    session::log_to_stderr(args.verbose.saturating_add(talk));
    let verbose = args.verbose > 0;
    match run(args) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::from(3),
        Ok(Outcome::FellShort) => ExitCode::from(1),
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut stderr = anstream::stderr();
            let text = if verbose {
                format!("{error:?}")
            } else {
                printable(&format!("{error:#}").replace('\n', " "))
            };
            writeln!(stderr, "rocworker: {text}").ok();
            ExitCode::from(if is_misuse(&error) { 2 } else { 1 })
        }
    }
}

/// Whether the arguments or the configuration are wrong, rather than the machine.
fn is_misuse(error: &anyhow::Error) -> bool {
    let is_of_configuration = |cause: &(dyn std::error::Error + 'static)| {
        let unreadable = cause.downcast_ref().is_some_and(|it| !matches!(it, Unreadable::Memory(_)));
        let desired = matches!(cause.downcast_ref(), Some(run::Error::Desired(desired::Error::Config(_))));
        unreadable || desired || cause.is::<config::Error>()
    };
    error.is::<session::Misuse>() || error.chain().any(is_of_configuration)
}

fn run(args: Args) -> anyhow::Result<Outcome> {
    let session = Session::new(&args)?;
    match args.command {
        Command::Deb(command) => deb::run(&session, &command),
        Command::Demo => demo::run(),
        Command::Detect => detect::run(&session),
        Command::Plan { exit_code, out } => plan::run(&session, exit_code, out.as_deref()),
        Command::Apply { file, dry_run } => apply::run(&session, file.as_deref(), dry_run),
        Command::Boot => boot::run(&session),
        Command::Status => status::run(&session),
        Command::Undo { force } => undo::run(&session, force),
        Command::History => history::run(&session),
        Command::Hook { name, guest } => hook::run(&session, name.as_deref(), guest),
        Command::Cdi(command) => cdi::run(&session, &command),
        Command::Completions { shell } => manual::completions(shell),
        Command::Lease(command) => lease::run(&session, &command),
        Command::Lxd(command) => lxd::run(&session, &command),
        Command::Man { into } => manual::man(into.as_deref()),
        Command::Doctor { canary, canary_limit } => {
            doctor::run(&session, canary.then_some(Duration::from_secs(canary_limit)))
        }
        Command::Probe(args) => probe::run(&args),
        Command::Serve => serve::run(session),
        Command::Settle { unit } => settle::run(&session, &unit),
        Command::Report { file } => report::run(&session, file),
        Command::Tags { env } => tags::run(&session, env),
        Command::TaskCheck => task_check::run(&session),
        Command::Therock(archive) => therock::run(&session, &archive),
    }
}
