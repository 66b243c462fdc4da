//! Commands for one other machine.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use config::Host;
use fleet::frames::RemoteFiles;
use fleet::script::{Further, MOST_CONNECTIONS, Script, Wanted};
use fleet::ssh::{self, Request, Rights};
use printable::quoted;
use reconcile::command::{Programs, Stream};
use root::Asked;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use telemetry::exporter::Exporter;

use super::passed::EscapedLines;
use super::{Method, RemoteCommand};
use crate::cli::args::Person;
use crate::cli::hosts::Named;
use crate::cli::next::Options as Commands;
use crate::cli::options::{Format, Options};
use crate::cli::session::{Misuse, Session, interrupt};
use crate::cli::{Outcome, doctor};

/// The shell's answer where rocworker is not installed (127: no such command), and no exit code of rocworker's.
const NOT_INSTALLED: i32 = 127;

pub(super) fn run(
    programs: &Programs,
    options: &Options,
    Named { host, .. }: &Named,
    asked: &RemoteCommand,
    command: Person,
) -> anyhow::Result<Outcome> {
    let programs = programs.interrupted_by(interrupt()?);
    match &asked.method {
        Method::Read { wanted, since } => {
            let ended = default_from_then_on()?;
            let session = read(&programs, options, host, *wanted, since.as_deref())?;
            // Nothing polls the interrupt flag from here on.
            ended.store(true, Ordering::Relaxed);
            if programs.is_interrupted() {
                return Err(ssh::Error::Interrupted { host: host.clone() }.into());
            }
            super::super::for_person(&session, options, command).map_err(|error| {
                // The command line and stdout are this machine's.
                let is_own = error.is::<Misuse>() || error.is::<io::Error>();
                if is_own { error } else { error.context(host.to_string()) }
            })
        }
        Method::Installed => {
            let done = installed(&programs, options, host, asked);
            if !asked.writes {
                return done;
            }
            done.map_err(|error| match error.downcast_ref() {
                Some(
                    ssh::Error::TimedOut { .. } | ssh::Error::Lost { .. } | ssh::Error::Interrupted { .. },
                ) => {
                    anyhow!(
                        "{error}. apply may still be running there: check with `rocworker --host {host} status`"
                    )
                }
                _ => error,
            })
        }
    }
}

/// Reads the machine's files in one connection, and connects again for files that this answer lacks.
fn read(
    programs: &Programs,
    options: &Options,
    host: &Host,
    wanted: Wanted,
    since: Option<&str>,
) -> anyhow::Result<Session> {
    let began = Instant::now();
    let connect = |further: &Further| {
        let limit = ssh::LIMIT.saturating_sub(began.elapsed());
        reading(programs, host, &Script::new(wanted, since, further), limit)
    };
    let (first, stderr_line) = connect(&Further::default())?;
    if !first.as_root {
        let why = ssh::sudo_refused(host, &stderr_line);
        let text = "data that only root can read is unknown, such as the kernel's log";
        writeln!(anstream::stderr(), "{host}: {text}: {why}").ok();
    }
    let mut further = Further { asleep: first.asleep.clone(), ..Further::default() };
    let mut session = Session::of_reading(options, first);
    for made in 1.. {
        if !further.add(lacking(&session, wanted)) {
            break;
        }
        if made == MOST_CONNECTIONS {
            let text = "its files name others, and those name more";
            writeln!(anstream::stderr(), "{host}: {text}: after {made} connections the rest is unknown").ok();
            break;
        }
        match connect(&further) {
            Ok((next, _)) => {
                further.asleep.clone_from(&next.asleep);
                session = Session::of_reading(options, next);
            }
            Err(_) if programs.is_interrupted() => break,
            Err(error) => {
                let text = "This was a further connection: the files that it was to read are unknown";
                writeln!(anstream::stderr(), "{error}. {text}").ok();
                break;
            }
        }
    }
    Ok(session)
}

/// What the answer needs and the script did not read: what a configuration or a unit names, and partitions of the other
/// cards where one is suspended.
fn lacking(session: &Session, wanted: Wanted) -> BTreeMap<PathBuf, Asked> {
    match wanted {
        Wanted::Doctor => doctor::examine_for_paths(session),
        Wanted::Readings => drop(Exporter::default().scrape(&session.root, 0.0)),
        Wanted::Machine | Wanted::Health | Wanted::Journal => {}
    }
    session.root.not_read()
}

/// Runs the script and parses its output. The text is the last line of its stderr.
fn reading(
    programs: &Programs,
    host: &Host,
    script: &Script,
    limit: Duration,
) -> anyhow::Result<(RemoteFiles, String)> {
    let request = Request { script: &script.text, rights: Rights::RootIfAllowed, limit };
    let answer = ssh::run(programs, host, &request)?;
    let stderr_line = answer.last_stderr_line();
    if answer.code != 0 {
        let stderr_line = if stderr_line.is_empty() { stderr_line } else { format!(" ({stderr_line})") };
        bail!(
            "{host}: the script exited with code {}{stderr_line}: check the machine's free memory and disk space",
            answer.code
        );
    }
    let reading = script.parse(&answer.stdout).map_err(|problem| anyhow!("{host}: {problem}"))?;
    Ok((reading, stderr_line))
}

/// Once this is true, a signal to end ends the program at once.
fn default_from_then_on() -> anyhow::Result<Arc<AtomicBool>> {
    let is_default = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_default))?;
    }
    Ok(is_default)
}

/// Runs the rocworker there as root, and prints what it prints.
fn installed(
    programs: &Programs,
    options: &Options,
    host: &Host,
    asked: &RemoteCommand,
) -> anyhow::Result<Outcome> {
    let script = command_line(options, &asked.words);
    let commands = Commands::of(options);
    let request = Request { script: &script, rights: Rights::Root, limit: ssh::LIMIT };
    let mut stdout = EscapedLines::new(anstream::stdout(), options.output, &commands);
    // stderr is text for people, whatever the answer's format is.
    let mut stderr = EscapedLines::new(anstream::stderr(), Format::Table, &commands);
    let code = ssh::follow(programs, host, &request, &mut |stream, chunk| match stream {
        Stream::Stdout => stdout.take(chunk),
        Stream::Stderr => stderr.take(chunk),
    });
    stderr.end().ok();
    let written = stdout.end();
    let code = code?;
    written?;
    Ok(match code {
        0 => Outcome::Done,
        1 => Outcome::FellShort,
        3 => Outcome::Findings,
        NOT_INSTALLED => bail!(
            "{host}: {} needs rocworker on that machine: install its package there, or run `rocworker remote install \
             {host}`, which starts the exporter too",
            asked.words.first().map_or("this command", String::as_str)
        ),
        // A signal ended the process there.
        code => Outcome::RemoteExit(u8::try_from(code).unwrap_or(1)),
    })
}

/// The script that starts rocworker there. Its stdin is empty, so that it reads no line of the script.
fn command_line(options: &Options, words: &[String]) -> String {
    let mut argv = ["rocworker", "-o", options.output.name()].map(str::to_owned).to_vec();
    argv.extend((0..options.verbose).map(|_| "-v".to_owned()));
    argv.extend(words.iter().map(|word| quoted(word)));
    format!(
        "PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin\n\
         command -v rocworker > /dev/null || exit {NOT_INSTALLED}\n\
         exec {} < /dev/null",
        argv.join(" ")
    )
}
