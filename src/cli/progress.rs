//! How far a change has come that takes long: on a terminal one line that is written over, elsewhere a line for each
//! step. On stderr: the answer is stdout's.

use std::io::{IsTerminal as _, Write as _};

use reconcile::{Progress, Step};
use unicode_width::UnicodeWidthChar as _;

use super::args::Format;
use super::changes::change;
use super::output::print_text;
use super::session::Session;
use crate::printable::printable;

/// As wide as the bar is.
const CELLS: usize = 20;
/// As wide as every terminal is: a line that is longer cannot be written over.
const WIDTH: usize = 79;

/// Says what is done while it is done.
pub(crate) struct Talk<'a> {
    session: &'a Session,
    is_terminal: bool,
    /// The step that was told last, without how much of it is left.
    last: String,
    /// Whether a line stands on the terminal that is to be written over.
    stands: bool,
    failed: anyhow::Result<()>,
}

impl<'a> Talk<'a> {
    pub(crate) fn of(session: &'a Session) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { session, is_terminal, last: String::new(), stands: false, failed: Ok(()) }
    }

    /// Each change as it is made, and each step of one that takes long.
    pub(crate) fn say(&mut self, progress: &Progress<'_>) {
        let said = match progress {
            Progress::Begins(made) => {
                self.clear();
                match self.session.format {
                    Format::Table => {
                        let verbose = self.session.verbose;
                        print_text(&change(&self.session.root, made, verbose, verbose))
                    }
                    Format::Json => Ok(()),
                }
            }
            Progress::Comes(_, step) => {
                self.step(step);
                Ok(())
            }
        };
        self.failed = std::mem::replace(&mut self.failed, Ok(())).and(said);
    }

    /// Takes away what stands on the terminal.
    ///
    /// # Errors
    /// When something could not be said on stdout.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.clear();
        self.failed
    }

    fn step(&mut self, step: &Step) {
        if self.is_terminal {
            self.write(&format!("\r\x1b[K{}", drawn(step)));
            self.stands = true;
        } else if self.last != essence(&step.text) {
            essence(&step.text).clone_into(&mut self.last);
            self.write(&format!("    {}\n", printable(&self.last)));
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.stands) {
            self.write("\r\x1b[K");
        }
    }

    /// That stderr is not there any more keeps nobody from installing.
    fn write(&self, text: &str) {
        let mut stderr = std::io::stderr();
        stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok();
    }
}

/// `[######··············]  32 %  Unpacking rocm-core (amd64)`
fn drawn(step: &Step) -> String {
    let text = printable(&step.text);
    let line = match step.percent.map(|percent| percent.clamp(0.0, 100.0)) {
        Some(percent) => {
            let is_full = |cell: usize| percent > cell_start(cell);
            let bar: String = (0..CELLS).map(|cell| if is_full(cell) { '#' } else { '·' }).collect();
            format!("    [{bar}] {percent:3.0} %  {text}")
        }
        None => format!("    {text}"),
    };
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width <= WIDTH
    };
    line.chars().take_while(fits).collect()
}

/// The percentage at which a cell begins to be full.
fn cell_start(cell: usize) -> f32 {
    u16::try_from(cell * 100 / CELLS).map_or(100.0, f32::from)
}

/// Without what is left of it: `Retrieving file 1 of 3 (2s remaining)`.
fn essence(text: &str) -> &str {
    text.strip_suffix("remaining)").and_then(|text| text.rsplit_once(" (")).map_or(text, |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str, percent: Option<f32>) -> Step {
        Step { text: text.to_owned(), percent }
    }

    #[test]
    fn a_step_is_one_line_that_fits() {
        assert_eq!(drawn(&step("Unpacking", Some(50.0))), "    [##########··········]  50 %  Unpacking");
        assert_eq!(drawn(&step("Unpacking", Some(0.0))), "    [····················]   0 %  Unpacking");
        assert_eq!(drawn(&step("Unpacking", Some(250.0))), "    [####################] 100 %  Unpacking");
        assert_eq!(drawn(&step("Unpacking", None)), "    Unpacking");
        assert_eq!(drawn(&step(&"long ".repeat(40), Some(1.0))).chars().count(), WIDTH);
        assert!(!drawn(&step("a\x1b[2Jb\n", None)).contains(['\x1b', '\n']));
    }

    #[test]
    fn how_long_it_takes_makes_no_new_line() {
        assert_eq!(essence("Retrieving file 1 of 3 (2s remaining)"), "Retrieving file 1 of 3");
        assert_eq!(essence("Unpacking rocm-core (amd64)"), "Unpacking rocm-core (amd64)");
    }
}
