use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _, stdin, stdout};
use std::time::Duration;

use anstyle::Style;
use inventory::Shown;
use inventory::health::State as Health;
use inventory::snapshot::{Card, Snapshot};
use printable::printable;
use serde::Serialize;
use ui::top::reader::{Read, Reader};
use ui::top::{INTERVALS, Sort, State, live, say};

use super::Outcome;
use super::options::Format;
use super::output::{BAD, DIM, GOOD, WARN, styled};
use super::session::{Misuse, Session, variable};
use super::table::{Cell, Columns};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one view as text, for scripts and pipes; with --output json for programs
    #[arg(long)]
    pub(super) once: bool,
    /// Read the GPUs this often, 0.2 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval, conflicts_with = "once")]
    pub(super) interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    interval.filter(|interval| INTERVALS.contains(interval)).ok_or_else(|| {
        let (shortest, longest) = (INTERVALS.start().as_secs_f64(), INTERVALS.end().as_secs_f64());
        format!("it is a number of seconds from {shortest} to {longest}")
    })
}

#[derive(Serialize)]
struct Answer<'o> {
    schema_version: u32,
    host: Option<&'o str>,
    #[serde(flatten)]
    snapshot: Shown<'o>,
}

pub(crate) fn run(session: &Session, args: &Args) -> anyhow::Result<Outcome> {
    let place = session.root.place();
    if args.once {
        let reading = Reader::new(place).read()?;
        let answer =
            Answer { schema_version: 1, host: reading.host.as_deref(), snapshot: Shown(&reading.snapshot) };
        session.format.print(&answer, || text(&reading.snapshot, session.format))?;
        return Ok(Outcome::Done);
    }
    needs_a_terminal(session)?;
    let mut reader = Reader::new(place);
    watch(args, Box::new(move || reader.read_again()))
}

/// Shows what `read` gives until a person ends it.
pub(super) fn watch(args: &Args, read: Read) -> anyhow::Result<Outcome> {
    // no-color.org: whatever its value, unless that is empty.
    let is_plain = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    live::run(read, State::new(args.interval, is_plain))?;
    Ok(Outcome::Done)
}

/// Prints what the machine's reader gives, for each line of stdin: JSON that only this version reads.
pub(crate) fn print_snapshots(session: &Session) -> anyhow::Result<Outcome> {
    let mut reader = Reader::new(session.root.place());
    for line in stdin().lock().lines() {
        line?;
        let scrape = reader.read().map_err(|error| error.to_string());
        let mut stdout = stdout().lock();
        serde_json::to_writer(&mut stdout, &scrape)?;
        stdout.write_all(b"\n")?;
        stdout.flush()?;
    }
    Ok(Outcome::Done)
}

pub(super) fn needs_a_terminal(session: &Session) -> Result<(), Misuse> {
    let (why, instead) = match variable("TERM").as_deref() {
        _ if session.format == Format::Json => ("--output json prints one view", "top --once -o json"),
        _ if !stdin().is_terminal() || !stdout().is_terminal() => {
            ("top needs a terminal to watch the GPUs", "top --once")
        }
        None | Some("" | "dumb") => {
            ("top needs a terminal that can move its cursor, and TERM names none", "top --once")
        }
        Some(_) => return Ok(()),
    };
    Err(Misuse(format!("{why}: say `rocworker {instead}`")))
}

/// The snapshot as tables for people: GPUs and partitions, processes, and what is unknown.
fn text(snapshot: &Snapshot, format: Format) -> String {
    let mut text = String::new();
    if snapshot.cards.is_empty() {
        writeln!(text, "{}", snapshot.no_card()).ok();
    } else {
        text.push_str(&gpus(snapshot, format));
        for card in &snapshot.cards {
            for (head, problem) in card.problems() {
                let line = format!("! {}: {head}: {}", say::indexes(card), printable(problem));
                writeln!(text, "{}", styled(WARN, line)).ok();
            }
        }
        text.push('\n');
        text.push_str(&processes(snapshot, format));
    }
    let absent = |card| Some(format!("{}: {}", say::indexes(card), say::absent(card)?));
    let absent = snapshot.cards.iter().filter_map(absent);
    let unpublished = say::unpublished(snapshot).map(str::to_owned);
    for unknown in snapshot.unknown().into_iter().chain(absent).chain(unpublished) {
        writeln!(text, "{}", styled(DIM, format_args!("? {}", printable(&unknown)))).ok();
    }
    text
}

fn gpus(snapshot: &Snapshot, format: Format) -> String {
    let headings =
        ["#", "GPU", "PCI", "MODE", "BUSY", "MEMORY", "TEMP", "POWER", "PROCESSES", "HEALTH", "LEASED BY"];
    let mut columns =
        Columns::new(&headings).right(&[0, 4, 5, 6, 7, 8]).only_wide(&[2, 3, 10]).shortened(&[1]);
    for card in &snapshot.cards {
        let is_partitioned = card.is_partitioned();
        let is_suspended = card.is_suspended() == Some(true);
        let memory = say::memory_of(card);
        let dash = || say::UNKNOWN.to_owned();
        let lease = card.gpus.first().filter(|_| !is_partitioned).and_then(|gpu| gpu.lease.clone());
        columns.row([
            say::indexes(card).into(),
            say::name(card, usize::MAX).into(),
            card.pci.map_or_else(dash, |pci| pci.to_string()).into(),
            say::modes(card).unwrap_or_else(dash).into(),
            say::percent(card.readings.busy_percent).into(),
            if is_suspended { "suspended".into() } else { memory.into() },
            say::celsius(card.limiting_celsius()).into(),
            say::power(card.watts(), card.watts_limit()).into(),
            say::process_count(card, snapshot).into(),
            Cell::styled(say::health(card), of_health(card)),
            lease.unwrap_or_else(dash).into(),
        ]);
        for gpu in card.gpus.iter().filter(|_| is_partitioned) {
            columns.row([
                say::count(gpu.index).into(),
                format!("  partition {}", say::count(gpu.partition())).into(),
                "".into(),
                "".into(),
                say::percent(card.busy_percent_of(gpu)).into(),
                say::memory(None, card.memory_total_bytes_of(gpu)).into(),
                "".into(),
                "".into(),
                say::count(snapshot.process_count(card, gpu)).into(),
                "".into(),
                gpu.lease.clone().unwrap_or_else(dash).into(),
            ]);
        }
    }
    columns.shown(format)
}

fn of_health(card: &Card) -> Style {
    match card.health.as_ref().map(|health| health.state) {
        Some(Health::Healthy) => GOOD,
        Some(Health::Degraded) => WARN,
        Some(Health::Unhealthy) => BAD,
        Some(Health::Unknown) | None => DIM,
    }
}

fn processes(snapshot: &Snapshot, format: Format) -> String {
    if snapshot.processes.is_empty() {
        return format!("{}\n", snapshot.no_process());
    }
    let headings = Sort::ALL.map(Sort::heading);
    let mut columns = Columns::new(&headings).right(&[0, 2, 3, 4]).shortened(&[5, 1]);
    for process in &snapshot.processes {
        columns.row(Sort::ALL.map(|column| column.text(process).into()));
    }
    columns.shown(format)
}

#[cfg(test)]
mod tests {
    use inventory::snapshot::{Gpu, Part};

    use super::*;

    #[test]
    fn a_card_of_which_one_partition_is_not_usable_says_so() {
        let gpu = |index, problems: &[&str]| Gpu {
            index: Some(index),
            part: Some(Part { number: Some(index), ..Part::default() }),
            problems: problems.iter().map(|it| (*it).to_owned()).collect(),
            ..Gpu::default()
        };
        let card = Card { gpus: vec![gpu(0, &["KFD does not know it"]), gpu(1, &[])], ..Card::default() };
        let text = text(&Snapshot { cards: vec![card], ..Snapshot::default() }, Format::Table);
        assert!(text.contains("! 0-1: 1 of 2 partitions not usable: KFD does not know it"), "{text}");
    }
}
