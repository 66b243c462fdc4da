//! The table of GPUs, and the line below it on the selected one.

use inventory::health::State as Health;
use inventory::snapshot::{Card, Snapshot};
use printable::{cut, printable};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{HighlightSpacing, Row as Cells, Table};
use unicode_width::UnicodeWidthStr as _;

use super::{BOLD, MARK, highlight, range, scrolled, sentence, style};
use crate::top::columns::{Column, GAP, constraints, fill};
use crate::top::history::{Readings, sparkline};
use crate::top::rows::{CardKey, Row};
use crate::top::say;
use crate::top::state::{Focus, State};

/// A terminal with fewer columns shows no bars and limits.
const NARROW: u16 = 76;
/// A terminal with this many columns has room for everything.
const WIDE: u16 = 110;

/// Which temperatures a sparkline is of, in °C: from a cool room's to where chips limit themselves.
const CELSIUS: (f64, f64) = (25.0, 105.0);

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Index,
    /// The index of the card's first partition.
    FirstIndex,
    Name,
    Modes,
    Busy,
    Memory,
    MemoryShare,
    /// The temperature, and a sparkline of so many bars.
    Temperature(usize),
    /// The power with its limit, and a sparkline of so many bars.
    Power(usize),
    PowerAlone,
    Processes,
    Health,
    HealthInShort,
}

pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let rows = state.rows();
    if rows.is_empty() {
        let text = match (state.snapshot(), &state.failure) {
            (Some(snapshot), _) => snapshot.no_card(),
            (None, Some(_)) => "Nothing has been read yet.",
            (None, None) => "Reading the machine…",
        };
        return sentence(text, frame, area);
    }
    let selected = state.selected_row();
    let marks = area.width.saturating_sub(2);
    let (fields, mut columns) = columns(&rows, area.width, marks);
    if let Some(shown) = range(selected, rows.len(), area)
        && let Some(column) =
            fields.iter().position(|field| *field == Field::Name).and_then(|at| columns.get_mut(at))
    {
        column.extend(&shown);
    }
    let heading = Cells::new(columns.iter().map(Column::heading)).style(BOLD);
    let lines = rows.iter().map(|row| {
        let history = state.history.of(&CardKey::of(row.card));
        let cells = fields.iter().zip(&columns).map(|(field, column)| {
            let (text, style) = cell(state, *field, row, history, usize::from(column.width));
            column.cell(&text, style)
        });
        Cells::new(cells)
    });
    let table = Table::new(lines, constraints(&columns))
        .header(heading)
        .column_spacing(GAP)
        .highlight_symbol(format!("{MARK} "))
        .highlight_spacing(HighlightSpacing::Always)
        .row_highlight_style(highlight(state, Focus::Gpus));
    frame.render_stateful_widget(table, area, &mut scrolled(selected, rows.len(), area));
}

fn columns(rows: &[Row<'_>], screen: u16, width: u16) -> (Vec<Field>, Vec<Column>) {
    let is_narrow = screen < NARROW;
    let length = |row: &Row<'_>| index(row.card, is_narrow).len();
    let index =
        Column::right("#", rows.iter().map(length).max().and_then(|it| it.try_into().ok()).unwrap_or(1));
    let name = Column::left("GPU", 4);
    let busy = Column::right("BUSY", 4);
    let all = match screen {
        ..NARROW => vec![
            (Field::FirstIndex, index),
            (Field::Name, name),
            (Field::Busy, busy),
            (Field::MemoryShare, Column::right("MEM", 4)),
            (Field::Temperature(0), Column::right("TEMP", 5)),
            (Field::PowerAlone, Column::right("POWER", 6)),
            (Field::HealthInShort, Column::left("STAT", 4)),
        ],
        NARROW.. => {
            let bars = bars(screen);
            let with_bars = |width: usize| u16::try_from(width + 1 + bars).unwrap_or(u16::MAX);
            let mut all = vec![
                (Field::Index, index),
                (Field::Name, name),
                (Field::Busy, busy),
                (Field::Memory, Column::right("MEMORY", 13)),
                (Field::Temperature(bars), Column::right("TEMPERATURE", with_bars(5).max(11))),
                (Field::Power(bars), Column::right("POWER", with_bars(9))),
                (Field::Health, Column::left("HEALTH", 9)),
            ];
            if screen >= WIDE {
                all.insert(2, (Field::Modes, Column::left("MODE", 9)));
                all.insert(7, (Field::Processes, Column::right("PROCS", 5)));
            }
            all
        }
    };
    let (fields, mut columns): (Vec<Field>, Vec<Column>) = all.into_iter().unzip();
    fill(&mut columns, 1, width);
    (fields, columns)
}

/// How many readings a sparkline shows: 5 on 80 columns, 10 from 110 on.
fn bars(screen: u16) -> usize {
    (5 + usize::from(screen.saturating_sub(80)) / 6).min(10)
}

/// A cell's text and style. `room`: its columns.
fn cell(
    state: &State,
    field: Field,
    row: &Row<'_>,
    history: Option<&Readings>,
    room: usize,
) -> (String, Style) {
    let card = row.card;
    let plain = |text: String| (text, Style::new());
    if let Some(gpu) = row.partition {
        let nothing = String::new();
        return plain(match field {
            Field::Index | Field::FirstIndex => say::count(gpu.index),
            Field::Name => {
                let number = say::count(gpu.partition());
                if room < 8 { format!(" p. {number}") } else { format!(" part. {number}") }
            }
            Field::Busy => say::percent(card.busy_percent_of(gpu)),
            Field::Memory => say::memory(None, card.memory_total_bytes_of(gpu)),
            Field::Processes => {
                say::count(state.snapshot().and_then(|snapshot| snapshot.process_count(card, gpu)))
            }
            _ => nothing,
        });
    }
    let is_suspended = card.is_suspended() == Some(true);
    plain(match field {
        Field::Index => index(card, false),
        Field::FirstIndex => index(card, true),
        Field::Name => name(state, row, room),
        Field::Modes => say::modes(card).map_or(say::UNKNOWN.to_owned(), |modes| printable(&modes)),
        Field::Memory if is_suspended => "suspended".to_owned(),
        Field::MemoryShare if is_suspended => "susp".to_owned(),
        Field::Busy => say::percent(card.readings.busy_percent),
        Field::Memory => say::memory_of(card),
        Field::MemoryShare => say::memory_share(card),
        Field::Temperature(0) => say::celsius(card.limiting_celsius()),
        Field::Temperature(width) => {
            let line = history.map(|it| sparkline(&it.celsius, CELSIUS.0, CELSIUS.1, width));
            format!("{} {}", say::celsius(card.limiting_celsius()), line.unwrap_or_default())
        }
        Field::Power(width) => {
            let highest = card.watts_limit().unwrap_or_else(|| most(history));
            let line = history.map(|it| sparkline(&it.watts, 0.0, highest, width));
            format!("{} {}", say::power(card.watts(), card.watts_limit()), line.unwrap_or_default())
        }
        Field::PowerAlone => say::watts_alone(card.watts()),
        Field::Processes => state.snapshot().map_or_else(String::new, |it| say::process_count(card, it)),
        Field::Health => return (say::health(card).to_owned(), of_health(state, card)),
        Field::HealthInShort => return (say::health_in_short(card).to_owned(), of_health(state, card)),
    })
}

/// A card's indexes, or the first of them.
fn index(card: &Card, is_first_alone: bool) -> String {
    match (is_first_alone, card.gpus.first()) {
        (true, Some(gpu)) => say::count(gpu.index),
        _ => say::indexes(card),
    }
}

/// The most that a card has drawn, where it names no limit.
fn most(history: Option<&Readings>) -> f64 {
    history.iter().flat_map(|it| &it.watts).flatten().copied().fold(0.0, f64::max)
}

/// The card's name, behind a sign where its partitions can be shown (`+`) or folded (`-`).
fn name(state: &State, row: &Row<'_>, room: usize) -> String {
    let sign = match row.card.is_partitioned() {
        false => "",
        true if state.folded.contains(&CardKey::of(row.card)) => "+ ",
        true => "- ",
    };
    format!("{sign}{}", say::name(row.card, room.saturating_sub(sign.len())))
}

fn of_health(state: &State, card: &Card) -> Style {
    match card.health.as_ref().map(|health| health.state) {
        Some(Health::Healthy) => style(state, Color::Green),
        Some(Health::Degraded) => style(state, Color::Yellow),
        Some(Health::Unhealthy) => style(state, Color::Red),
        Some(Health::Unknown) | None => Style::new(),
    }
}

/// What the columns do not say of a GPU, in at most so many lines: each part is on one of them.
pub(super) fn detail(state: &State, row: &Row<'_>, width: u16, most: usize) -> Vec<Line<'static>> {
    let width = usize::from(width);
    let mut lines: Vec<String> = Vec::new();
    for part in parts(state, row) {
        match lines.last_mut() {
            Some(last) if last.width() + 2 + part.width() <= width => *last += &format!("  {part}"),
            _ => lines.push(format!("  {part}")),
        }
    }
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1));
        lines.extend([rest.join("")]);
    }
    lines.iter().map(|line| Line::from(Span::raw(cut(line, width)))).collect()
}

fn parts(state: &State, row: &Row<'_>) -> Vec<String> {
    let card = row.card;
    let pci = card.pci.map(|pci| pci.to_string());
    let mut parts: Vec<String> =
        [&pci, &card.identity.gfx].into_iter().flatten().map(|it| printable(it)).collect();
    parts.extend(state.snapshot().map(|snapshot| reasons(card, snapshot)).unwrap_or_default());
    let unread = say::failed(&card.missing()).into_iter().chain(say::absent(card));
    parts.extend(unread.map(|unread| format!("? {unread}")));
    if row.partition.is_some() {
        parts.push("? memory in use unknown: the driver tells it of the whole card".to_owned());
    }
    let leased = |lease: &String| format!("leased by {}", printable(lease));
    parts.extend(row.gpus().filter_map(|gpu| gpu.lease.as_ref()).map(leased));
    let sensor = |(sensor, celsius): (&str, f64)| format!("{} {celsius:.0} °C", printable(sensor));
    let sensors: Vec<String> = card.temperatures().map(sensor).collect();
    parts.extend((!sensors.is_empty()).then(|| sensors.join(", ")));
    parts
}

/// Why a card is not well, the gravest first as the daemon lists them.
fn reasons(card: &Card, snapshot: &Snapshot) -> Vec<String> {
    let unusable = |(head, problem): (String, &str)| format!("{head}: {}", printable(problem));
    let mut reasons: Vec<String> = card.problems().into_iter().map(unusable).collect();
    let Some(health) = &card.health else {
        let why = match snapshot.publishes_health() {
            true => "the daemon has not judged it in the last minute",
            false => "rocworker's daemon publishes none",
        };
        reasons.push(format!("? health unknown: {why}"));
        return reasons;
    };
    let quarantined =
        if snapshot.quarantine_enforced == Some(true) { "quarantined" } else { "would be quarantined" };
    reasons.extend(health.quarantine.is_some().then(|| quarantined.to_owned()));
    let taken = |it: &inventory::health::Deduction| format!("✗ {} (-{})", printable(&it.reason), it.points);
    reasons.extend(health.deductions.iter().map(taken));
    reasons.extend(health.leftover.iter().map(|it| format!("! {}", printable(it))));
    reasons.extend(health.unknown.iter().map(|it| format!("? {}", printable(it))));
    reasons
}
