//! The table of processes.

use inventory::snapshot::Snapshot;
use printable::printable;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{HighlightSpacing, Row, Table};

use super::{BOLD, MARK, highlight, range, scrolled, sentence};
use crate::top::columns::{Column, GAP, constraints, fill};
use crate::top::processes::Sort;
use crate::top::say;
use crate::top::state::{Focus, State};

/// Below this there is no room for both the name and the owner of a process.
const NARROW: u16 = 64;
/// What 40 columns leave to the only column of text.
const LEAST: u16 = 8;
/// From here on, the owner's whole heading fits.
const WIDE: u16 = 72;

pub(super) fn draw(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(snapshot) = state.snapshot() else { return };
    let processes = state.processes();
    if processes.is_empty() {
        return sentence(&why_none(state, snapshot), frame, area);
    }
    let selected = state.selected_process.min(processes.len() - 1);
    // What they are sorted by is always shown.
    let (hidden, widest) = match state.sort {
        _ if area.width >= NARROW => (None, Sort::Owner),
        Sort::Owner => (Some(Sort::Name), Sort::Owner),
        _ => (Some(Sort::Owner), Sort::Name),
    };
    let sorts: Vec<Sort> = Sort::ALL.into_iter().filter(|sort| Some(*sort) != hidden).collect();
    let mut columns: Vec<Column> = sorts.iter().map(|sort| column(state, *sort, area.width)).collect();
    let widest = sorts.iter().position(|sort| *sort == widest).unwrap_or(0);
    fill(&mut columns, widest, area.width.saturating_sub(2));
    if let (Some(shown), Some(column)) = (range(selected, processes.len(), area), columns.get_mut(widest)) {
        column.extend(&shown);
    }
    let heading = Row::new(columns.iter().map(Column::heading)).style(BOLD);
    let rows = processes.iter().map(|process| {
        let cells = sorts.iter().zip(&columns);
        Row::new(cells.map(|(sort, column)| {
            let text = match sort {
                Sort::Owner => say::owner_in(process, usize::from(column.width)),
                sort => sort.text(process),
            };
            column.cell(&text, Style::new())
        }))
    });
    let table = Table::new(rows, constraints(&columns))
        .header(heading)
        .column_spacing(GAP)
        .highlight_symbol(format!("{MARK} "))
        .highlight_spacing(HighlightSpacing::Always)
        .row_highlight_style(highlight(state, Focus::Processes));
    frame.render_stateful_widget(table, area, &mut scrolled(selected, processes.len(), area));
}

/// The column by which they are sorted has a sign: whether values rise or fall from line to line.
fn column(state: &State, sort: Sort, screen: u16) -> Column {
    let least = |width| if screen < NARROW { LEAST } else { width };
    let (width, is_right) = match sort {
        Sort::Pid => (8, true),
        Sort::Name => (least(16), false),
        Sort::Gpu => (4, true),
        Sort::Vram => (9, true),
        Sort::Units => (5, true),
        Sort::Owner => (least(12), false),
    };
    let heading = match sort {
        Sort::Owner if screen < WIDE => "OWNER",
        _ => sort.heading(),
    };
    let arrow = if sort.is_descending() == state.is_reversed { "↑" } else { "↓" };
    let sign = if sort == state.sort { arrow } else { "" };
    Column { heading: format!("{heading}{sign}"), width, is_right }
}

fn why_none(state: &State, snapshot: &Snapshot) -> String {
    match (snapshot.processes.is_empty(), state.filter.is_empty()) {
        _ if snapshot.cards.is_empty() => String::new(),
        (true, _) => snapshot.no_process().to_owned(),
        (false, true) => "No process uses the selected GPU (Esc: all GPUs).".to_owned(),
        (false, false) => format!("No process matches /{} (Esc: all).", printable(&state.filter)),
    }
}
