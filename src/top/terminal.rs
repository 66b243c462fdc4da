//! The terminal while `top` has it.

use std::io;

use nix::sys::signal::{Signal, raise};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, enable_raw_mode};
use ratatui::layout::Rect;
use ratatui::{DefaultTerminal, Frame};

/// Raw mode and the alternate screen. Both end when it is dropped, and on a panic before its message is printed.
pub(super) struct Screen(DefaultTerminal);

impl Screen {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(ratatui::try_init()?))
    }

    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(view).map(drop)
    }

    /// Stops as a shell's job with its terminal as it was. Returns once the shell continues it.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        ratatui::try_restore()?;
        self.0.show_cursor()?;
        raise(Signal::SIGTSTP)?;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        // Paints everything anew. `Terminal::clear` asks the terminal where its cursor is, and the thread that reads keys
        // would take the answer.
        let size = self.0.size()?;
        self.0.resize(Rect::new(0, 0, size.width, size.height))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone cannot be restored.
        ratatui::try_restore().ok();
        self.0.show_cursor().ok();
    }
}
