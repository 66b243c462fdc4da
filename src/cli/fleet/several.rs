//! Several machines: this program runs once for each of them, with `--host NAME`.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use config::Host;
use fleet::{pool, ssh};
use printable::printable;
use reconcile::command::{Call, Error as CommandError, Programs};

use super::RemoteCommand;
use super::answers::{self, Ended, HostResult};
use crate::cli::Outcome;
use crate::cli::hosts::{Named, progress};
use crate::cli::options::{Format, Options};
use crate::cli::session::interrupt;

/// How long a program for one machine may take beyond its command: it tries to connect, and prints its answer.
const MORE: Duration = Duration::from_secs(120);

pub(super) fn run(
    programs: &Programs,
    options: &Options,
    hosts: &[Named],
    asked: &RemoteCommand,
) -> anyhow::Result<Outcome> {
    let stop = interrupt()?;
    let programs = programs.interrupted_by(Arc::clone(&stop));
    let program = std::env::current_exe().context("where this program is")?;
    let program = program.to_str().context("this program's path is no UTF-8")?;
    let format = match asked.metrics {
        // The metrics of hosts are joined from values.
        Some(_) => Format::Json,
        None => options.output,
    };
    let config =
        options.config.as_deref().map(|path| path.to_str().context("the path of --config is no UTF-8"));
    let config = config.transpose()?;
    let argv = |host: &Host| argv((program, config), options, format, host, asked);
    let mut shown = answers::OrderedOutput::new(hosts, options.output, asked.metrics);
    let mut ended = 0;
    let mut failed = Ok(());
    let answers = pool::each(
        hosts,
        pool::AT_ONCE,
        &stop,
        |named: &Named| ask(&programs, &argv(&named.host), format, &named.host),
        |place, answered| {
            ended += 1;
            if let Some(named) = hosts.get(place) {
                print_progress(named, answered, (ended, hosts.len()));
            }
            if failed.is_ok() {
                failed = shown.add(place, answered);
            }
        },
    );
    if stop.load(Ordering::Relaxed) {
        write!(anstream::stderr(), "{}", interrupted(hosts, &answers, asked.writes)).ok();
    }
    failed?;
    shown.end(&answers)?;
    let codes = || answers.iter().map(|it| it.as_ref().map_or(1, HostResult::code));
    Ok(match () {
        () if codes().any(|code| !matches!(code, 0 | 3)) => Outcome::FellShort,
        () if codes().any(|code| code == 3) => Outcome::Findings,
        () => Outcome::Done,
    })
}

fn argv(
    (program, config): (&str, Option<&str>),
    options: &Options,
    format: Format,
    host: &Host,
    asked: &RemoteCommand,
) -> Vec<String> {
    let mut argv: Vec<String> =
        [program, "-o", format.name(), "--host", &host.to_string()].map(str::to_owned).to_vec();
    argv.extend((0..options.verbose).map(|_| "-v".to_owned()));
    if let Some(config) = config {
        argv.extend(["--config", config].map(str::to_owned));
    }
    argv.extend(asked.words.iter().cloned());
    argv
}

fn ask(programs: &Programs, argv: &[String], format: Format, host: &Host) -> HostResult {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut streams = ssh::Streams::default();
    let mut is_whole = true;
    let before = Instant::now();
    let call = Call { argv: &argv, input: b"", limit: ssh::LIMIT + MORE };
    let status = programs.call(call, &mut |stream, chunk| {
        is_whole = streams.take(stream, chunk);
        if is_whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let ended = match status {
        Ok(status) => match status.code() {
            Some(0 | 3) if format.is_json() && answers::json(&streams.stdout).is_none() => {
                Ended::Failed("its answer is not JSON".to_owned())
            }
            Some(code) => Ended::Code(code),
            None => Ended::Failed(format!("it ended with {status}")),
        },
        Err(_) if !is_whole => Ended::Failed(ssh::too_large()),
        Err(CommandError::Interrupted { .. }) => Ended::Interrupted,
        Err(error) => Ended::Failed(error.to_string()),
    };
    HostResult::new(host, ended, streams.stdout, &streams.stderr, before.elapsed())
}

/// Prints how the machine ended, then what its program wrote to stderr.
fn print_progress(named: &Named, answered: &HostResult, counted: (usize, usize)) {
    let mut stderr = anstream::stderr();
    let name = printable(&named.name);
    let line = progress(&name, answered.code(), answered.took, counted);
    let error = answered.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    // A closed stderr does not stop the other machines.
    writeln!(stderr, "{line}{error}").ok();
    for line in &answered.stderr_lines {
        writeln!(stderr, "  {name}: {line}").ok();
    }
}

/// After a signal: which machines did not finish, and which rocworker did not ask. A machine that failed is neither.
fn interrupted(hosts: &[Named], answers: &[Option<HostResult>], writes: bool) -> String {
    let joined = |holds: &dyn Fn(&Option<HostResult>) -> bool, word: &dyn Fn(&Named) -> String| {
        let those = hosts.iter().zip(answers).filter(|(_, answer)| holds(answer));
        those.map(|(named, _)| word(named)).collect::<Vec<_>>().join(",")
    };
    let name = |named: &Named| printable(&named.name);
    let is_unfinished = |answer: &Option<HostResult>| {
        answer.as_ref().is_some_and(|answer| answer.ended == Ended::Interrupted)
    };
    let mut text = String::new();
    let unfinished = joined(&is_unfinished, &name);
    if !unfinished.is_empty() {
        text += &format!("Interrupted, not finished: {unfinished}\n");
        if writes {
            // The hosts have the inventory's users: a person may run the command without this configuration.
            let hosts = joined(&is_unfinished, &|named| named.host.to_string());
            let status = format!("rocworker --host {hosts} status");
            text += &format!("apply may still be running there: check with `{status}`\n");
        }
    }
    let not_begun = joined(&Option::is_none, &name);
    if !not_begun.is_empty() {
        text += &format!("Interrupted, not asked: {not_begun}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_interrupted_machines_those_that_failed_by_themselves_are_not_named() {
        let hosts = ["gpu1", "gpu2", "gpu3", "gpu4"]
            .map(|name| Named { name: name.to_owned(), host: format!("ops@{name}").parse().unwrap() });
        let answer = |ended| Some(HostResult::new(&hosts[0].host, ended, Vec::new(), b"", Duration::ZERO));
        let failed = Ended::Failed("ssh is not installed".to_owned());
        let answers = [answer(Ended::Code(0)), answer(failed), answer(Ended::Interrupted), None];
        assert_eq!(
            interrupted(&hosts, &answers, true),
            "Interrupted, not finished: gpu3\napply may still be running there: check with `rocworker --host ops@gpu3 \
             status`\nInterrupted, not asked: gpu4\n"
        );
    }
}
