use anstyle::Style;
use printable::{cut, printable};
use unicode_width::UnicodeWidthStr as _;

use super::options::Format;
use super::output::{HEADING, styled};

/// What a terminal has at least; `-o wide` is for more.
const WIDTH: usize = 100;

/// How many characters of a shortened cell remain at least.
const LEAST: usize = 12;

const GAP: usize = 2;

/// Columns of text under bold headings, two blanks apart, without lines.
pub(crate) struct Columns {
    rows: Vec<Vec<Cell>>,
    flush_right: Vec<usize>,
    only_wide: Vec<usize>,
    shortened: Vec<usize>,
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
        Self { rows: vec![headings], flush_right: Vec::new(), only_wide: Vec::new(), shortened: Vec::new() }
    }

    /// Sets columns flush right, as numbers are read.
    pub(crate) fn right(mut self, columns: &[usize]) -> Self {
        self.flush_right = columns.to_vec();
        self
    }

    /// Columns that `-o wide` has and no other table.
    pub(crate) fn only_wide(mut self, columns: &[usize]) -> Self {
        self.only_wide = columns.to_vec();
        self
    }

    /// Columns that are cut where the table is too wide, the first of them first.
    pub(crate) fn shortened(mut self, columns: &[usize]) -> Self {
        self.shortened = columns.to_vec();
        self
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.cells(cells.into());
    }

    /// A row of a table whose columns are counted at run time.
    pub(crate) fn cells(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Whether a cell is cut that `-o wide` has in full.
    pub(crate) fn has_cut(&self, format: Format) -> bool {
        let cuts = |format| self.shown(format).matches('…').count();
        cuts(format) > cuts(Format::Wide)
    }

    /// The table, within [`WIDTH`] unless `-o wide` asks for all.
    pub(crate) fn shown(&self, format: Format) -> String {
        let is_wide = format == Format::Wide;
        let count = self.rows.first().map_or(0, Vec::len);
        let mut columns: Vec<(usize, usize)> = (0..count)
            .filter(|column| is_wide || !self.only_wide.contains(column))
            .map(|column| (column, self.width(column)))
            .collect();
        for cut in self.shortened.iter().filter(|_| !is_wide) {
            let whole = columns.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP);
            if let Some((_, width)) = columns.iter_mut().find(|(column, _)| column == cut) {
                let fit = width.saturating_sub(whole.saturating_sub(WIDTH));
                *width = fit.max(LEAST).min(*width);
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            for (at, (column, width)) in columns.iter().enumerate() {
                let Some(cell) = row.get(*column) else { continue };
                let shown = cut(&cell.text, *width);
                let padding = " ".repeat(width.saturating_sub(shown.width()));
                let shown = styled(cell.style, &shown);
                let is_last = at + 1 == columns.len();
                text += &match (self.flush_right.contains(column), is_last) {
                    (true, _) => format!("{padding}{shown}"),
                    (false, true) => shown,
                    (false, false) => format!("{shown}{padding}"),
                };
                text += if is_last { "\n" } else { "  " };
            }
        }
        text
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_a_hundred_columns_and_wide_has_all() {
        let mut columns = Columns::new(&["A", "B", "C"]).only_wide(&[1]).shortened(&[2, 0]);
        columns.row(["a".repeat(90).into(), "b".into(), "c".repeat(90).into()]);
        columns.row(["short".into(), "b".into(), "漢".repeat(40).into()]);
        let plain = |format| anstream::adapter::strip_str(&columns.shown(format)).to_string();
        let table = plain(Format::Table);
        for line in table.lines() {
            assert!(line.width() <= WIDTH, "{line}");
        }
        assert!(table.contains(&format!("{}…  ccccccccccc…", "a".repeat(85))), "{table}");
        assert!(!table.contains('B') && columns.has_cut(Format::Table), "{table}");
        assert!(!columns.has_cut(Format::Wide));
        let wide = plain(Format::Wide);
        assert!(wide.contains(&format!("{}  b  {}", "a".repeat(90), "c".repeat(90))), "{wide}");
    }
}
