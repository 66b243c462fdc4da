//! The terminal while `top` has it.

use std::io;
use std::mem::ManuallyDrop;

use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::layout::Rect;
use ratatui::{DefaultTerminal, Frame};

/// Raw mode and the alternate screen. Both end when it is dropped, and on a panic before its message is printed.
pub(super) struct Screen {
    /// Never dropped: ratatui's `drop` reports on stderr that it cannot show the cursor, and panics where stderr is
    /// gone.
    terminal: ManuallyDrop<DefaultTerminal>,
    /// Whether `top` has the terminal; otherwise a shell does.
    is_entered: bool,
}

impl Screen {
    pub(super) fn new() -> io::Result<Self> {
        // Where the second step fails, the first one has set raw mode.
        let terminal = ratatui::try_init().inspect_err(|_| drop(ratatui::try_restore()))?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), is_entered: true })
    }

    /// Draws, unless a shell has the terminal.
    pub(super) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if self.is_entered { self.terminal.draw(view).map(drop) } else { Ok(()) }
    }

    /// Gives the terminal back as it was.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        if self.is_entered {
            ratatui::try_restore()?;
            self.terminal.show_cursor()?;
            self.is_entered = false;
        }
        Ok(())
    }

    /// Takes the terminal after a shell had it, which may have set modes of its own.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        // crossterm does not set raw mode where it has set it before.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        self.is_entered = true;
        // Paints everything anew. `Terminal::clear` asks the terminal where its cursor is, and the thread that reads
        // keys would take the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone cannot be restored.
        self.leave().ok();
    }
}
