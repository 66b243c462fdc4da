//! The columns of both tables, as many as the terminal's width has room for.

use printable::{cut, elided};
use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Cell;
use unicode_width::UnicodeWidthStr as _;

/// The blanks between two columns.
pub(super) const GAP: u16 = 1;

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) width: u16,
    /// Whether cells are flush right, as numbers are read.
    pub(super) is_right: bool,
}

impl Column {
    pub(super) fn left(heading: &str, width: u16) -> Self {
        Self { heading: heading.to_owned(), width, is_right: false }
    }

    pub(super) fn right(heading: &str, width: u16) -> Self {
        Self { heading: heading.to_owned(), width, is_right: true }
    }

    /// Adds to the heading what there is room for.
    pub(super) fn extend(&mut self, text: &str) {
        let longer = format!("{} {text}", self.heading);
        if longer.width() <= usize::from(self.width) {
            self.heading = longer;
        }
    }

    pub(super) fn heading(&self) -> Cell<'static> {
        self.cell(&self.heading, Style::new())
    }

    /// A cell of the column. Of a text that does not fit, both ends stay; a number is cut.
    pub(super) fn cell(&self, text: &str, style: Style) -> Cell<'static> {
        let width = usize::from(self.width);
        let text = if self.is_right { cut(text, width) } else { elided(text, width) };
        let line = Line::from(Span::styled(text, style));
        Cell::from(Text::from(if self.is_right { line.right_aligned() } else { line }))
    }
}

/// Gives the column at this place what the others leave of the width; it keeps what it has at least.
pub(super) fn fill(columns: &mut [Column], place: usize, width: u16) {
    let count = u16::try_from(columns.len()).unwrap_or(u16::MAX);
    let taken: u16 = columns.iter().map(|column| column.width).sum();
    let rest = width.saturating_sub(taken.saturating_add(GAP.saturating_mul(count.saturating_sub(1))));
    if let Some(column) = columns.get_mut(place) {
        column.width = column.width.saturating_add(rest);
    }
}

pub(super) fn constraints(columns: &[Column]) -> Vec<Constraint> {
    columns.iter().map(|column| Constraint::Length(column.width)).collect()
}
