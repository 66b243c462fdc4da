//! One machine.

use std::io::Write as _;

use anyhow::{Context as _, anyhow, bail};
use reconcile::command::{Programs, Stream};

use super::passed::Passed;
use super::{Asked, Named, Way};
use crate::cli::Outcome;
use crate::cli::args::{Command, Format, Options};
use crate::cli::doctor::interrupt;
use crate::cli::next::quoted;
use crate::cli::session::Session;
use crate::fleet::frames::Reading;
use crate::fleet::host::Host;
use crate::fleet::script::{Script, Wanted};
use crate::fleet::ssh::{self, Request, Rights};

/// The shell's answer where rocworker is not installed (127: no such command), and no exit code of rocworker's.
const NOT_INSTALLED: i32 = 127;

pub(super) fn run(
    session: &Session,
    options: &Options,
    Named { host, .. }: &Named,
    asked: &Asked,
    command: Command,
) -> anyhow::Result<Outcome> {
    // Beneath / there are programs.
    let programs = session.programs.as_ref().context("--host asks from the machine itself")?;
    let programs = programs.interrupted_by(interrupt()?);
    match &asked.way {
        Way::Read { wanted, since } => {
            let reading = read(&programs, host, *wanted, since.as_deref())?;
            let session = Session::of_reading(options, reading);
            match command {
                Command::Person(command) => super::super::for_person(&session, command),
                Command::Script(_) => bail!("this command is for this machine"),
            }
        }
        Way::Installed => {
            let done = installed(&programs, options, host, asked);
            if !asked.writes {
                return done;
            }
            done.map_err(|error| match error.downcast_ref() {
                Some(
                    ssh::Error::TimedOut { .. } | ssh::Error::Lost { .. } | ssh::Error::Interrupted { .. },
                ) => {
                    anyhow!(
                        "{error}. apply may still be at work there: rocworker --host {host} status shows it"
                    )
                }
                _ => error,
            })
        }
    }
}

fn read(programs: &Programs, host: &Host, wanted: Wanted, since: Option<&str>) -> anyhow::Result<Reading> {
    let script = Script::new(wanted, since);
    let request = Request { script: &script.text, rights: Rights::RootIfAllowed, limit: ssh::LIMIT };
    let answer = ssh::run(programs, host, &request)?;
    let said = match answer.last_said() {
        empty if empty.is_empty() => String::new(),
        said => format!(" ({said})"),
    };
    if answer.code != 0 {
        bail!(
            "{host}: reading ended with exit code {}{said}: see whether its disk or memory is full",
            answer.code
        );
    }
    let reading = script.parse(&answer.stdout).map_err(|problem| anyhow!("{host}: {problem}"))?;
    if !reading.as_root {
        let user = host.user.as_deref().unwrap_or("ssh's user");
        let name = &host.name;
        let text = format!(
            "{host}: {user} read it, who may not become root without a password{said}. What only root may read is \
             unknown, the kernel's log above all. NOPASSWD in sudoers or root@{name} helps."
        );
        writeln!(anstream::stderr(), "{text}").ok();
    }
    Ok(reading)
}

/// Runs the rocworker there as root, and prints what it prints.
fn installed(programs: &Programs, options: &Options, host: &Host, asked: &Asked) -> anyhow::Result<Outcome> {
    let script = command_line(options, &asked.words);
    let request = Request { script: &script, rights: Rights::Root, limit: ssh::LIMIT };
    let mut stdout = Passed::new(anstream::stdout(), options.output);
    // What is said is for people, whatever the answer is.
    let mut stderr = Passed::new(anstream::stderr(), Format::Table);
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
            "{host}: rocworker is not installed there, and {} asks it: rocworker remote install {host} installs it",
            asked.words.first().map_or("the command", String::as_str)
        ),
        // A process there that a signal ended.
        code => Outcome::RemoteExit(u8::try_from(code).unwrap_or(1)),
    })
}

/// What starts rocworker there with these words. It gets none of the script.
fn command_line(options: &Options, words: &[String]) -> String {
    let format = match options.output {
        Format::Table => "table",
        Format::Wide => "wide",
        Format::Json => "json",
    };
    let mut argv = vec!["rocworker".to_owned(), "-o".to_owned(), format.to_owned()];
    argv.extend((0..options.verbose).map(|_| "-v".to_owned()));
    argv.extend(words.iter().map(|word| quoted(word)));
    format!(
        "PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin\n\
         command -v rocworker > /dev/null || exit {NOT_INSTALLED}\n\
         exec {} < /dev/null",
        argv.join(" ")
    )
}
