use std::fmt;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::output::{HEADING, styled};
use crate::printable::printable;

/// Columns of text under bold headings, two blanks apart, without lines.
pub(crate) struct Columns {
    rows: Vec<Vec<Cell>>,
    flush_right: Vec<usize>,
}

/// A cell's text, and the style it gets after it has been set to its column's width.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: printable(&text.into()), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

impl Columns {
    pub(crate) fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|heading| Cell::styled(*heading, HEADING)).collect();
        Self { rows: vec![headings], flush_right: Vec::new() }
    }

    /// Sets columns flush right, as numbers are read.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        self.flush_right = columns.to_vec();
        self
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max().unwrap_or(0)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(self.width(column).saturating_sub(cell.text.width()));
                let text = styled(cell.style, &cell.text);
                match (self.flush_right.contains(&column), column + 1 == row.len()) {
                    (true, _) => write!(f, "{padding}{text}")?,
                    (false, true) => f.write_str(&text)?,
                    (false, false) => write!(f, "{text}{padding}")?,
                }
                f.write_str(if column + 1 == row.len() { "\n" } else { "  " })?;
            }
        }
        Ok(())
    }
}
