//! The screen: a pure function of the state and of the screen's size.

mod gpus;
mod header;
mod over;
mod processes;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, TableState, Wrap};

use super::state::{Focus, State};

/// The least size that shows something of each table.
const LEAST: (u16, u16) = (40, 10);

/// In front of the chosen line: the sign beside the colours.
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
    if let Some(over) = state.over {
        return over::draw(state, over, frame, area);
    }
    let of_gpus = gpus_height(state, area);
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(of_gpus),
        Constraint::Length(1),
        Constraint::Min(2),
        Constraint::Length(u16::from(header::status(state).is_some())),
        Constraint::Length(1),
    ]);
    let [top, table, detail, below, status, keys] = parts.areas(area);
    frame.render_widget(header::header(state, top.width), top);
    gpus::draw(state, frame, table);
    frame.render_widget(gpus::detail(state, detail.width), detail);
    processes::draw(state, frame, below);
    if let Some(text) = header::status(state) {
        let text = crate::printable::cut(&text, usize::from(status.width));
        frame.render_widget(Paragraph::new(text).style(style(state, Color::Yellow)), status);
    }
    frame.render_widget(header::keys(state, keys.width), keys);
}

/// The table of GPUs with its heading: up to three fifths of the screen.
fn gpus_height(state: &State, area: Rect) -> u16 {
    let rows = u16::try_from(state.rows().len().max(1)).unwrap_or(u16::MAX).saturating_add(1);
    rows.min(area.height * 3 / 5).max(2)
}

/// A colour where colours are wanted. It never stands for a thing alone.
fn style(state: &State, color: Color) -> Style {
    if state.is_plain { Style::new() } else { Style::new().fg(color) }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// The chosen line of the table in which the keys move stands out more than that of the other one.
fn of_chosen(state: &State, focus: Focus) -> Style {
    if state.focus == focus { Style::new().add_modifier(Modifier::REVERSED) } else { BOLD }
}

/// The chosen line in the middle, where there are more than fit.
fn scrolled(selected: usize, count: usize, area: Rect) -> TableState {
    let shown = usize::from(area.height.saturating_sub(1));
    let offset = selected.saturating_sub(shown / 2).min(count.saturating_sub(shown));
    TableState::new().with_offset(offset).with_selected(selected)
}

/// Where the lines end that are shown: `1-12 of 72`; nothing where all are.
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
