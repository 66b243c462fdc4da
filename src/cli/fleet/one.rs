//! A command for one other machine.

use std::io::Write as _;

use anyhow::{Context as _, anyhow};
use config::Host;
use fleet::program::{self, Command, Event};
use fleet::ssh;
use printable::printable;
use reconcile::command::{Programs, Stream};

use super::escaped::EscapedLines;
use super::{RemoteCommand, interrupt};
use crate::cli::Outcome;
use crate::cli::hosts::Named;
use crate::cli::options::{Format, Options};
use crate::cli::output::print_text;

pub(super) fn run(
    programs: &Programs,
    options: &Options,
    Named { host, .. }: &Named,
    asked: &RemoteCommand,
) -> anyhow::Result<Outcome> {
    let programs = programs.interrupted_by(interrupt()?);
    // A report's bytes are for a file.
    let mut saved = Vec::new();
    let mut stdout = EscapedLines::new(anstream::stdout(), options.output);
    // stderr is text for people, whatever the answer's format is.
    let mut stderr =
        EscapedLines::new(anstream::stderr(), Format::Table).naming(printable(&host.to_string()));
    let words = asked.argv(options, false);
    let command = asked.command(options, &words, ssh::MOST);
    let code = ask(&programs, host, &command, &asked.input, &mut |heard| match heard {
        Heard::Word(text) => {
            writeln!(anstream::stderr(), "{}: {}", printable(&host.to_string()), printable(&text)).ok();
        }
        Heard::Output(Stream::Stdout, chunk) if asked.report.is_some() => saved.extend(chunk),
        Heard::Output(Stream::Stdout, chunk) => stdout.take(chunk),
        Heard::Output(Stream::Stderr, chunk) => stderr.take(chunk),
    });
    stderr.end().ok();
    let written = stdout.end();
    let code = code.map_err(|error| with_advice(error, host, asked))?;
    written.context("cannot write the answer to stdout")?;
    if let (Some(report), 0) = (&asked.report, code) {
        print_text(&report.save(&host.to_string(), &saved, options.output)?)?;
    }
    Ok(match code {
        0 => Outcome::Done,
        1 => Outcome::FellShort,
        3 => Outcome::Findings,
        // A signal ended the process there.
        code => Outcome::RemoteExit(u8::try_from(code).unwrap_or(1)),
    })
}

/// What a person hears of another machine while its rocworker runs.
pub(super) enum Heard<'h> {
    /// A sentence of this program's about the machine.
    Word(String),
    Output(Stream, &'h [u8]),
}

/// Asks the rocworker on a machine. Returns its exit code. `input`: what it reads from stdin.
pub(super) fn ask(
    programs: &Programs,
    host: &Host,
    command: &Command<'_>,
    input: &[u8],
    heard: &mut dyn FnMut(Heard<'_>),
) -> Result<i32, ssh::Error> {
    program::run(programs, host, command, &mut |event| {
        if let Some(text) = event.sentence() {
            heard(Heard::Word(text));
        }
        match event {
            Event::Copying { .. } => {}
            Event::Begun { stdin, .. } => {
                // Where the connection has ended, ssh says so.
                stdin.send(input.to_vec()).ok();
            }
            Event::Output(stream, chunk) => heard(Heard::Output(stream, chunk)),
        }
        true
    })
}

/// What a person is to do where a command that writes may still run.
fn with_advice(error: ssh::Error, host: &Host, asked: &RemoteCommand) -> anyhow::Error {
    use ssh::Error::{Interrupted, Lost, TimedOut};
    let command = asked.words.first().map_or("it", String::as_str);
    match error {
        TimedOut { .. } | Lost { .. } | Interrupted { .. } if asked.writes => {
            anyhow!(
                "{error}. {command} may still be running there: check with `rocworker --host {host} status`"
            )
        }
        error => error.into(),
    }
}
