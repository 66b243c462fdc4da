//! `partition show`: modes, devices and holders of each card.

use std::fmt::Write as _;

use inventory::partitioning::{Card, Combination, Seen};
use inventory::{PciAddress, Reading};
use printable::printable;
use serde::Serialize;

use super::super::Outcome;
use super::super::detect::{gibibytes, no_gpu, ranges};
use super::super::options::Format;
use super::super::output::{BAD, DIM, GOOD, HEADING, styled};
use super::super::session::Session;
use super::super::table::{Cell, Columns};
use crate::partition::{Holder, Look};

#[derive(Serialize)]
struct Answer<'l> {
    schema_version: u32,
    cards: Vec<Shown<'l>>,
    notes: Vec<String>,
    problems: Vec<String>,
}

/// A card with the processes on it.
#[derive(Serialize)]
struct Shown<'l> {
    #[serde(flatten)]
    card: &'l Card,
    /// `None`: which processes there are is not known.
    held_by: Option<Vec<&'l Holder>>,
}

/// What stands for a value that is not known.
const UNKNOWN: &str = "?";

/// Behind a value that was not read but follows from others.
const COMPUTED: &str = "*";

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let look = Look::at(&session.root);
    let unknown = look.holders.as_ref().err().cloned();
    let answer = Answer {
        schema_version: 1,
        cards: look.cards.iter().map(|card| Shown { card, held_by: on(&look, card.pci) }).collect(),
        notes: look.notes(),
        problems: look.inventory.problems().into_iter().chain(unknown).collect(),
    };
    session.format.print(&answer, || text(&answer, &look, session.format))?;
    Ok(Outcome::Done)
}

/// The processes on one card.
fn on(look: &Look, pci: PciAddress) -> Option<Vec<&Holder>> {
    let holders = look.holders.as_ref().ok()?;
    Some(holders.iter().filter(|holder| holder.cards.contains(&pci)).collect())
}

fn text(answer: &Answer<'_>, look: &Look, format: Format) -> String {
    let mut text = String::new();
    if answer.cards.is_empty() {
        text.push_str(match (look.inventory.amd().next(), &*look.inventory.gpus) {
            (Some(_), _) => "amdgpu drives no card of this machine.\n",
            (None, []) => no_gpu(look.inventory.may_lack_gpus()),
            (None, _) => "No card of this machine is AMD's.\n",
        });
    } else {
        text.push_str(&cards(&answer.cards, format));
        text.push_str(&explained(&look.cards));
        text.push_str(&combinations(&look.cards, format));
    }
    for note in &answer.notes {
        writeln!(text, "{} {}", styled(DIM, "note:"), printable(note)).ok();
    }
    for problem in &answer.problems {
        writeln!(text, "{} {}", styled(BAD, "problem:"), printable(problem)).ok();
    }
    text
}

/// A row a card.
fn cards(cards: &[Shown<'_>], format: Format) -> String {
    let headings = ["PCI", "MODEL", "MODES", "GPUS", "XCDS EACH", "MEMORY EACH", "HELD BY"];
    let mut columns = Columns::new(&headings).right(&[4, 5]).shortened(&[6, 1]);
    for Shown { card, held_by } in cards {
        let indexes: Vec<u32> = card.devices.iter().filter_map(|device| device.index).collect();
        let first = card.devices.first();
        columns.row([
            card.pci.to_string().into(),
            card.chip.map(|chip| chip.name.to_owned()).or(card.name.clone()).unwrap_or_default().into(),
            modes(card).into(),
            ranges(&indexes).into(),
            first.and_then(|device| device.xcds).map_or(UNKNOWN.to_owned(), |xcds| xcds.to_string()).into(),
            memory(first.map(|device| card.memory_of(device))).into(),
            holders(held_by.as_deref(), format),
        ]);
    }
    columns.shown(format)
}

fn modes(card: &Card) -> String {
    let compute =
        card.compute_mode().map_or_else(|_| UNKNOWN.to_owned(), |seen| marked(seen, |it| it.to_string()));
    let memory = card.memory.as_ref().map_or_else(|_| UNKNOWN.to_owned(), ToString::to_string);
    format!("{compute}/{memory}")
}

pub(super) fn memory(bytes: Option<Reading<Seen<u64>>>) -> String {
    let known = bytes.and_then(Result::ok);
    known.map_or_else(|| UNKNOWN.to_owned(), |seen| marked(seen, |bytes| gibibytes(*bytes)))
}

fn marked<T>(seen: Seen<T>, shown: impl Fn(&T) -> String) -> String {
    shown(&seen.value) + if seen.is_computed { COMPUTED } else { "" }
}

fn holders(holders: Option<&[&Holder]>, format: Format) -> Cell {
    match holders {
        None => Cell::styled(UNKNOWN, BAD),
        Some([]) => "-".into(),
        Some(all) if format == Format::Wide => {
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ").into()
        }
        Some([first, rest @ ..]) => match rest.len() {
            0 => first.to_string().into(),
            more => format!("{first} and {more} more").into(),
        },
    }
}

/// Why values are computed or unknown: each reason once, with a card's own address left out.
fn explained(cards: &[Card]) -> String {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for card in cards {
        let whys = match card.rules() {
            // A chip without partitions has no file of theirs either: one line says it.
            Err(why) if why.is_absent() => vec![why.to_string()],
            // Without partition files the driver has no list either: one line says it.
            _ => {
                card.unknown().into_iter().filter(|it| !it.0.ends_with("available")).map(|it| it.1).collect()
            }
        };
        for why in whys {
            let why = why.replace(&card.pci.to_string(), "PCI");
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, count)) => *count += 1,
                None => reasons.push((why, 1)),
            }
        }
    }
    let is_computed = |card: &Card| {
        card.compute_mode().is_ok_and(|seen| seen.is_computed)
            || card.devices.iter().any(|device| card.memory_of(device).is_ok_and(|seen| seen.is_computed))
    };
    let mut text = String::new();
    if cards.iter().any(is_computed) {
        let line = format!("{COMPUTED} computed from the chip and from KFD's nodes: no file says it");
        writeln!(text, "{}", styled(DIM, line)).ok();
    }
    for (why, count) in reasons {
        let of = if count == 1 { "1 card".to_owned() } else { format!("{count} cards") };
        writeln!(text, "{}", styled(DIM, format!("{UNKNOWN} {of}: {}", printable(&why)))).ok();
    }
    text
}

/// A table for the cards of each model: what each combination of modes gives.
fn combinations(cards: &[Card], format: Format) -> String {
    let mut known: Vec<(String, Vec<Combination>)> = Vec::new();
    for card in cards {
        let Ok(rows) = card.combinations() else { continue };
        let name = card.chip.map_or_else(|| card.pci.to_string(), |chip| chip.name.to_owned());
        let whole = card.whole_memory().ok();
        let xcds = rows.first().map_or(0, |row| row.xcds.saturating_mul(row.devices));
        let title = format!("{name}: {xcds} XCDs, {}", memory(whole.map(Ok)));
        let alike = known.iter_mut().find(|(other, others)| *other == title && is_alike(others, &rows));
        match alike {
            Some((_, others)) => {
                for (row, other) in rows.iter().zip(others) {
                    other.is_current |= row.is_current;
                }
            }
            None => known.push((title, rows)),
        }
    }
    let mut text = String::new();
    for (title, rows) in known {
        writeln!(text, "\n{}", styled(HEADING, printable(&title))).ok();
        text.push_str(&table(&rows, format));
    }
    if text.is_empty() { text } else { text + "\n" }
}

fn is_alike(one: &[Combination], other: &[Combination]) -> bool {
    let without_current = |row: &Combination| Combination { is_current: false, ..*row };
    one.iter().map(without_current).eq(other.iter().map(without_current))
}

fn table(rows: &[Combination], format: Format) -> String {
    let headings = ["", "MODES", "DEVICES", "XCDS EACH", "MEMORY EACH", "MEMORY IS", "KERNEL", "AMD"];
    let mut columns = Columns::new(&headings).right(&[2, 3, 4]).shortened(&[5]);
    for row in rows {
        let allowed =
            if row.is_allowed { Cell::styled("allows", GOOD) } else { Cell::styled("refuses", BAD) };
        let validated =
            if row.is_validated { Cell::styled("validated", GOOD) } else { Cell::styled("-", DIM) };
        columns.row([
            if row.is_current { ">" } else { "" }.into(),
            format!("{}/{}", row.compute, row.memory).into(),
            row.devices.to_string().into(),
            row.xcds.to_string().into(),
            match row.memory_bytes {
                _ if !row.is_allowed => "-".into(),
                bytes => bytes.map_or(UNKNOWN.to_owned(), gibibytes).into(),
            },
            if row.is_allowed { row.locality() } else { "-" }.into(),
            allowed,
            validated,
        ]);
    }
    columns.shown(format)
}
