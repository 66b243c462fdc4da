//! The screen: a pure function of the state and of the screen's size.

mod gpus;
mod header;
mod overlay;
mod processes;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, TableState, Wrap};

use super::state::{Focus, State};

/// The least size that shows something of each table.
const LEAST: (u16, u16) = (40, 10);

/// A terminal with fewer lines has one line of detail, a higher one this many.
const LOW: u16 = 20;
const DETAIL: usize = 3;

/// Marks the selected line, for terminals without colours too.
const MARK: &str = ">";

/// Draws the screen.
pub fn view(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    let (columns, lines) = LEAST;
    if area.width < columns || area.height < lines {
        let text =
            format!("This terminal is too small for top: it needs {columns} columns and {lines} lines.");
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    if let Some(overlay) = state.overlay {
        return overlay::draw(state, overlay, frame, area);
    }
    let status_text = header::status(state);
    let of_status = u16::from(status_text.is_some());
    let most = if area.height < LOW { 1 } else { DETAIL };
    let mut details: Vec<_> =
        state.rows().iter().map(|row| gpus::detail(state, row, area.width, most)).collect();
    // All rows have the room of the longest detail: the tables stay in place while the cursor moves.
    let of_detail = height(details.iter().map(Vec::len).max().unwrap_or(1).max(1));
    let detail_text = details.get_mut(state.selected_row()).map(std::mem::take).unwrap_or_default();
    // The header and the keys have a line each.
    let of_tables = area.height.saturating_sub(2 + of_detail + of_status);
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(gpus_height(state, of_tables)),
        Constraint::Length(of_detail),
        Constraint::Min(2),
        Constraint::Length(of_status),
        Constraint::Length(1),
    ]);
    let [top, table, detail, below, status, keys] = parts.areas(area);
    frame.render_widget(header::header(state, top.width), top);
    gpus::draw(state, frame, table);
    frame.render_widget(Paragraph::new(detail_text), detail);
    processes::draw(state, frame, below);
    if let Some(text) = status_text {
        let text = printable::cut(&text, usize::from(status.width));
        frame.render_widget(Paragraph::new(text).style(style(state, Color::Yellow)), status);
    }
    frame.render_widget(header::keys(state, keys.width), keys);
}

/// The lines of the table of GPUs with its heading, of those that both tables have: all that it needs, but no more than
/// three fifths while the processes need the rest.
fn gpus_height(state: &State, of_tables: u16) -> u16 {
    let gpus = height(state.rows().len().max(1)).saturating_add(1);
    let processes = height(state.processes().len().max(1)).saturating_add(1);
    gpus.min(of_tables.saturating_sub(processes).max(of_tables * 3 / 5))
}

fn height(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// A colour where colours are wanted. No information is shown by colour alone.
fn style(state: &State, color: Color) -> Style {
    if state.is_plain { Style::new() } else { Style::new().fg(color) }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// The selected line of the table in which the keys move stands out more than that of the other one.
fn highlight(state: &State, focus: Focus) -> Style {
    if state.focus == focus { Style::new().add_modifier(Modifier::REVERSED) } else { BOLD }
}

/// The selected line in the middle, where there are more than fit.
fn scrolled(selected: usize, count: usize, area: Rect) -> TableState {
    let shown = usize::from(area.height.saturating_sub(1));
    let offset = selected.saturating_sub(shown / 2).min(count.saturating_sub(shown));
    TableState::new().with_offset(offset).with_selected(selected)
}

/// Which lines of a table are visible: `1-12 of 72`; `None` where all are.
fn range(selected: usize, count: usize, area: Rect) -> Option<String> {
    let shown = usize::from(area.height.saturating_sub(1));
    let first = scrolled(selected, count, area).offset();
    (count > shown).then(|| format!("{}-{} of {count}", first + 1, (first + shown).min(count)))
}

/// What takes a table's place where it has no lines.
fn sentence(text: &str, frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(
        Paragraph::new(Line::from(text.to_owned())).style(DIM).wrap(Wrap { trim: true }),
        area,
    );
}
