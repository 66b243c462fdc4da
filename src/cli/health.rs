use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anstyle::Style;
use inventory::health::{Deduction, GpuHealth, Health, Quarantine, State};
use inventory::{Inventory, names};
use printable::printable;
use root::Root;
use root::patient::{DEADLINE, PATIENCE, Patient};
use serde::Serialize;
use telemetry::daemon_file;
use telemetry::health::{is_quarantine_enforced, why_not_quarantined};

use super::Outcome;
use super::detect::ranges;
use super::options::Format;
use super::output::{BAD, DIM, GOOD, WARN, styled};
use super::session::{Misuse, Session, absolute, caller};
use super::table::{Cell, Columns};
use crate::health::{Observer, boot_id, rules};

#[derive(Serialize)]
struct Answer<'h> {
    schema_version: u32,
    source: Source,
    written_at: u64,
    /// Whether the wrapper keeps containers off quarantined GPUs.
    quarantine_enforced: bool,
    #[serde(skip)]
    lacks: Option<&'static str>,
    /// Whether what cannot be read leaves open which cards there are.
    #[serde(skip)]
    may_lack_cards: bool,
    gpus: Vec<Entry<'h>>,
    unknown: &'h [String],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    Daemon,
    Now,
}

/// A card, with what containers can get of it.
#[derive(Serialize)]
struct Entry<'h> {
    indexes: Vec<u32>,
    name: Option<String>,
    /// Whether `detect` calls a GPU of the card usable.
    #[serde(skip)]
    is_usable: bool,
    #[serde(flatten)]
    health: &'h GpuHealth,
}

pub(crate) fn run(session: &Session, rules: Option<&Path>) -> anyhow::Result<Outcome> {
    // A clock before 1970 is as good as one that was never set.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (source, health) = health(session, rules, now)?;
    let inventory = Patient::new(session.root.place(), PATIENCE, DEADLINE).run(amdgpu::read)?;
    let gpus = health.gpus.iter().map(|gpu| entry(gpu, &inventory)).collect();
    let Health { written_at, unknown, .. } = &health;
    let lacks = lacks(session, source, &health);
    let quarantine_enforced = lacks.is_none();
    let answer = Answer {
        schema_version: 1,
        may_lack_cards: inventory.may_lack_gpus(),
        source,
        written_at: *written_at,
        quarantine_enforced,
        lacks,
        gpus,
        unknown,
    };
    session.format.print(&answer, || text(&answer, session.format))?;
    let is_unhealthy = health.gpus.iter().any(|gpu| gpu.state == State::Unhealthy);
    Ok(if is_unhealthy { Outcome::Findings } else { Outcome::Done })
}

/// `--rules` as a path of this machine, or `-`.
pub(super) fn named(file: &Path) -> anyhow::Result<PathBuf> {
    if file == Path::new("-") { Ok(file.to_owned()) } else { absolute(file) }
}

/// The daemon's judgement while it is fresh, or one of now. Says on stderr which.
fn health(session: &Session, file: Option<&Path>, now: u64) -> anyhow::Result<(Source, Health)> {
    let root = &session.root;
    let (rules, last, by) = match file {
        Some(file) => {
            let (rules, _) = rules::named(&caller()?, &named(file)?).map_err(Misuse)?;
            (rules, None, format!("Judged now by {}, from one reading.", file.display()))
        }
        None => {
            let last: Option<Health> = daemon_file::last(root).unwrap_or_else(|problem| {
                talk(&format!("What the daemon says does not count: {problem}"));
                None
            });
            let last = last.filter(|last| !last.is_of_another_boot(boot_id(root).as_deref()));
            let clock = |health: &Health| daemon_file::clock(root, health, now);
            if let Some(health) = last.as_ref().filter(|health| health.is_fresh(clock(health))) {
                let ago = clock(health).saturating_sub(health.written_at);
                talk(&match clock(health) == now {
                    true => format!("Judged by rocworker's daemon {ago} s ago."),
                    false => format!("Judged on the machine {ago} s before the report was made."),
                });
                return Ok((Source::Daemon, health.clone()));
            }
            let (rules, problem) = rules::in_force(root);
            if let Some(problem) = problem {
                talk(&format!("{problem}. The built-in rules are in force."));
            }
            let by = match root.taken_at() {
                None => "Judged now, from one reading: the daemon publishes no health here.",
                Some(_) => {
                    "Judged now, from one reading: the report has no daemon's judgement, and health does not read its log, as \
                     rocworker explain --journal does."
                }
            };
            (rules, last, by.to_owned())
        }
    };
    let judged = Observer::new(root).judge(root, &rules, last.as_ref(), now);
    talk(&format!("{by} How fast counters grow is not known."));
    Ok((Source::Now, judged.health))
}

/// Why the wrapper withholds no GPU, whatever its health; `None` where it does.
fn lacks(session: &Session, source: Source, health: &Health) -> Option<&'static str> {
    why_not_quarantined(is_quarantine_enforced(&session.root)).or(match source {
        Source::Now if !is_withheld(&session.root, health) => Some("rocworker's daemon publishes no health"),
        Source::Now | Source::Daemon => None,
    })
}

/// Whether the wrapper withholds all that is quarantined, by what the daemon wrote last in this boot.
fn is_withheld(root: &Root, health: &Health) -> bool {
    let last: Option<Health> = daemon_file::last(root).ok().flatten();
    let last = last.filter(|last| !last.is_of_another_boot(boot_id(root).as_deref()));
    let was = |pci| last.iter().flat_map(|it| &it.gpus).any(|gpu| gpu.pci == pci && gpu.quarantine.is_some());
    let mut quarantined =
        health.gpus.iter().filter(|gpu| gpu.quarantine.is_some()).map(|gpu| gpu.pci).peekable();
    quarantined.peek().is_some() && quarantined.all(was)
}

fn talk(text: &str) {
    writeln!(anstream::stderr(), "{}", printable(text)).ok();
}

fn entry<'h>(health: &'h GpuHealth, inventory: &Inventory) -> Entry<'h> {
    let its = || inventory.gpus.iter().filter(|gpu| gpu.pci == Some(health.pci));
    let mut indexes: Vec<u32> = its().filter_map(|gpu| gpu.index).collect();
    indexes.sort_unstable();
    // A card that is gone is not one that containers cannot use.
    let is_usable = its().next().is_none() || its().any(inventory::Gpu::usable);
    Entry { indexes, name: its().find_map(names::of), is_usable, health }
}

/// The answer for people: a row a card, what takes points off below with its evidence, then what is not known.
fn text(answer: &Answer<'_>, format: Format) -> String {
    let mut text = String::new();
    if answer.gpus.is_empty() {
        text.push_str(match answer.may_lack_cards {
            true => "Which AMD GPUs this machine has is not known.\n",
            false => "No AMD GPU in this machine.\n",
        });
    } else {
        text.push_str(&rows(answer, format));
    }
    let below: String = answer.gpus.iter().map(|gpu| below(gpu, answer.lacks)).collect();
    if !below.is_empty() {
        write!(text, "\n{below}").ok();
    }
    for problem in answer.unknown {
        writeln!(text, "{}", styled(DIM, format_args!("? {}", printable(problem)))).ok();
    }
    text
}

fn rows(answer: &Answer<'_>, format: Format) -> String {
    let headings = ["#", "GPU", "PCI", "STATE", "SCORE", "HANG", "CONTAINERS"];
    let mut columns = Columns::new(&headings).right(&[0, 4]).shortened(&[1]);
    for gpu in &answer.gpus {
        let GpuHealth { pci, state, score, hang, quarantine, leftover, .. } = gpu.health;
        let (hang, of_hang) = match hang {
            Some(true) => ("yes", BAD),
            Some(false) => ("no", GOOD),
            None => ("unknown", DIM),
        };
        let (containers, of_containers) = match (quarantine, leftover) {
            _ if !gpu.is_usable => ("no", BAD),
            (Some(_), _) if answer.quarantine_enforced => ("quarantined", BAD),
            (_, Some(_)) => ("leftover", WARN),
            (_, None) => ("-", Style::new()),
        };
        columns.row([
            number(gpu).into(),
            gpu.name.clone().unwrap_or_else(|| "-".to_owned()).into(),
            pci.to_string().into(),
            Cell::styled(state.name(), style(*state)),
            score.map_or_else(|| "-".to_owned(), |score| score.to_string()).into(),
            Cell::styled(hang, of_hang),
            Cell::styled(containers, of_containers),
        ]);
    }
    columns.shown(format)
}

fn style(state: State) -> Style {
    match state {
        State::Healthy => GOOD,
        State::Degraded => WARN,
        State::Unhealthy => BAD,
        State::Unknown => DIM,
    }
}

/// The card's number in its row, which the lines below the table repeat: its GPUs' indexes, or its PCI address.
fn number(gpu: &Entry<'_>) -> String {
    if gpu.indexes.is_empty() { gpu.health.pci.to_string() } else { ranges(&gpu.indexes) }
}

/// What there is to say of a card beyond its row.
fn below(gpu: &Entry<'_>, lacks: Option<&str>) -> String {
    let mut text = String::new();
    let number = number(gpu);
    for Deduction { rule, points, reason, evidence } in &gpu.health.deductions {
        let sign = styled(style(gpu.health.state), "✗");
        // A report leaves out sentences in which names may stand.
        let (reason, evidence) = match (&**reason, &**evidence) {
            ("", "") => {
                ("a report leaves out why", "rocworker explain --journal shows the kernel's messages")
            }
            both => both,
        };
        writeln!(text, "{sign} {number}: {} ({}, -{points})", printable(reason), printable(rule)).ok();
        writeln!(text, "      {}", printable(evidence)).ok();
    }
    if let Some(Quarantine { since, unhealthy_at, reason, .. }) = &gpu.health.quarantine {
        let [since, last] = [since, unhealthy_at].map(|at| allocation::rfc3339(*at));
        // While it is unhealthy the reason stands above.
        let reason = match gpu.health.state {
            State::Unhealthy => String::new(),
            _ => format!(": {}", printable(reason)),
        };
        let period = format!("since {since}, last unhealthy {last}{reason}");
        match lacks {
            None => writeln!(text, "{} {number}: Quarantined {period}", styled(BAD, "✗")),
            Some(why) => {
                let would = format!("? {number}: Would be quarantined, but {why}: {period}");
                writeln!(text, "{}", styled(DIM, would))
            }
        }
        .ok();
    }
    if let Some(leftover) = &gpu.health.leftover {
        writeln!(text, "{} {number}: {}", styled(WARN, "!"), printable(leftover)).ok();
    }
    if !gpu.is_usable {
        let why = "Containers cannot use it: see rocworker doctor";
        writeln!(text, "{}", styled(DIM, format_args!("? {number}: {why}"))).ok();
    }
    for unknown in &gpu.health.unknown {
        writeln!(text, "{}", styled(DIM, format_args!("? {number}: {}", printable(unknown)))).ok();
    }
    text
}
