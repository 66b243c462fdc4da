//! A command for several machines.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use fleet::program::Command;
use fleet::{exposition, pool, ssh};
use printable::{counted, printable, printable_styled};
use reconcile::command::{Programs, Stream};

use super::answers::{Ended, HostResult, OrderedOutput};
use super::one::{Heard, ask};
use super::{RemoteCommand, interrupt};
use crate::cli::Outcome;
use crate::cli::hosts::{Named, progress};
use crate::cli::options::Options;

/// The most bytes of all answers, unless many machines have the least each.
const MOST_OF_ALL: usize = 256 << 20;
const LEAST: usize = 4 << 20;

/// How many bytes of a machine's stderr are kept.
const MOST_STDERR: usize = 1 << 20;

pub(super) fn run(
    programs: &Programs,
    options: &Options,
    hosts: &[Named],
    asked: &RemoteCommand,
) -> anyhow::Result<Outcome> {
    if let Some(report) = &asked.report {
        report.require_folder()?;
    }
    let stop = interrupt()?;
    let programs = programs.interrupted_by(Arc::clone(&stop));
    let words = asked.argv(options, true);
    let mut shown = OrderedOutput::new(hosts, options.output, asked.metrics);
    let most = (MOST_OF_ALL / hosts.len().max(1)).clamp(LEAST, ssh::MOST);
    let mut ended = 0;
    let mut failed = Ok(());
    let answers = pool::each(
        hosts,
        pool::AT_ONCE,
        &stop,
        |named: &Named| answer(&programs, options, named, asked, &asked.command(options, &words, most)),
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
        write!(anstream::stderr(), "{}", interrupted(hosts, &answers, asked)).ok();
    }
    failed?;
    shown.end(&answers)?;
    if !stop.load(Ordering::Relaxed) && hosts.len() > 1 {
        writeln!(anstream::stderr(), "{}", summary(hosts, &answers, asked)).ok();
    }
    let codes = || answers.iter().map(|it| it.as_ref().map_or(1, HostResult::code));
    Ok(match () {
        () if codes().any(|code| !matches!(code, 0 | 3)) => Outcome::FellShort,
        () if codes().any(|code| code == 3) => Outcome::Findings,
        () => Outcome::Done,
    })
}

fn answer(
    programs: &Programs,
    options: &Options,
    Named { host, .. }: &Named,
    asked: &RemoteCommand,
    command: &Command<'_>,
) -> HostResult {
    let before = Instant::now();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let code = ask(programs, host, command, &asked.input, &mut |heard| match heard {
        Heard::Word(text) => stderr.extend(format!("{text}\n").into_bytes()),
        Heard::Output(Stream::Stdout, chunk) => stdout.extend(chunk),
        Heard::Output(Stream::Stderr, chunk) => {
            stderr.extend(chunk.iter().take(MOST_STDERR.saturating_sub(stderr.len())));
        }
    });
    let mut ended = match code {
        Ok(code) => Ended::Code(code),
        Err(ssh::Error::Interrupted { .. }) => Ended::Interrupted,
        Err(error) => {
            let text = error.to_string();
            Ended::Failed(text.strip_prefix(&format!("{host}: ")).unwrap_or(&text).to_owned())
        }
    };
    if let Some(report) = &asked.report {
        let archive = std::mem::take(&mut stdout);
        if ended == Ended::Code(0) {
            match report.save(&host.to_string(), &archive, options.output) {
                Ok(text) => stdout = text.into_bytes(),
                Err(error) => ended = Ended::Failed(format!("{error:#}")),
            }
        }
    }
    if asked.metrics.is_some() && matches!(ended, Ended::Code(0 | 3)) && !exposition::is_answer(&stdout) {
        ended = Ended::Failed("its answer has no metrics that this rocworker can read".to_owned());
    }
    HostResult::new(
        ended,
        stdout,
        &stderr,
        before.elapsed(),
        options.output.is_json() || asked.metrics.is_some(),
    )
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
        writeln!(stderr, "  {name}: {}", printable_styled(line)).ok();
    }
}

/// How the command ended on the machines, in a line.
fn summary(hosts: &[Named], answers: &[Option<HostResult>], asked: &RemoteCommand) -> String {
    let names = |holds: &dyn Fn(i32) -> bool| -> Vec<String> {
        let codes = answers.iter().map(|it| it.as_ref().map_or(1, HostResult::code));
        let those = hosts.iter().zip(codes).filter(|(_, code)| holds(*code));
        those.map(|(named, _)| printable(&named.name)).collect()
    };
    let done = match asked.words.first().map(String::as_str) {
        Some("apply") if asked.writes => "applied",
        Some("undo") if asked.writes => "reverted",
        _ => "answered",
    };
    let (good, found) = (names(&|code| code == 0), names(&|code| code == 3));
    let failed = names(&|code| !matches!(code, 0 | 3));
    let mut text = format!("{}: {} {done}", counted(hosts.len(), "machine"), good.len());
    for (names, how) in [(found, "with findings"), (failed, "failed")] {
        if !names.is_empty() {
            text += &format!(", {} {how}: {}", names.len(), names.join(", "));
        }
    }
    text
}

/// After a signal: which machines did not finish, and which rocworker did not ask. A machine that failed is neither.
fn interrupted(hosts: &[Named], answers: &[Option<HostResult>], asked: &RemoteCommand) -> String {
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
        if asked.writes {
            // The hosts have the inventory's users: a person may run the command without this configuration.
            let hosts = joined(&is_unfinished, &|named| named.host.to_string());
            let status = format!("rocworker --host {hosts} status");
            let command = asked.words.first().map_or("it", String::as_str);
            text += &format!("{command} may still be running there: check with `{status}`\n");
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
    use std::time::Duration;

    use fleet::program::Which;

    use super::*;

    #[test]
    fn the_last_line_counts_the_machines_and_names_those_that_failed() {
        let hosts =
            ["gpu1", "gpu2", "gpu3"].map(|name| Named { name: name.to_owned(), host: name.parse().unwrap() });
        let answer = |code| Some(HostResult::new(Ended::Code(code), Vec::new(), b"", Duration::ZERO, false));
        let answers = [answer(0), answer(1), answer(0)];
        assert_eq!(summary(&hosts, &answers, &apply()), "3 machines: 2 applied, 1 failed: gpu2");
        let status = RemoteCommand { words: vec!["status".to_owned()], writes: false, ..apply() };
        let answers = [answer(0), answer(3), answer(2)];
        let expected = "3 machines: 1 answered, 1 with findings: gpu2, 1 failed: gpu3";
        assert_eq!(summary(&hosts, &answers, &status), expected);
    }

    fn apply() -> RemoteCommand {
        RemoteCommand {
            which: Which::Installed,
            words: vec!["apply".to_owned()],
            input: Vec::new(),
            metrics: None,
            report: None,
            writes: true,
        }
    }

    #[test]
    fn of_interrupted_machines_those_that_failed_by_themselves_are_not_named() {
        let hosts = ["gpu1", "gpu2", "gpu3", "gpu4"]
            .map(|name| Named { name: name.to_owned(), host: format!("ops@{name}").parse().unwrap() });
        let answer = |ended| Some(HostResult::new(ended, Vec::new(), b"", Duration::ZERO, false));
        let failed = Ended::Failed("ssh is not installed".to_owned());
        let answers = [answer(Ended::Code(0)), answer(failed), answer(Ended::Interrupted), None];
        assert_eq!(
            interrupted(&hosts, &answers, &apply()),
            "Interrupted, not finished: gpu3\napply may still be running there: check with `rocworker --host ops@gpu3 \
             status`\nInterrupted, not asked: gpu4\n"
        );
    }
}
