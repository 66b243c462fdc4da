//! What `top` waits for: a key, a reading, another size of the screen.

use std::time::Duration;

use ratatui::crossterm::event::{Event as OfTerminal, KeyEventKind};

use super::keys::{Key, key};
use super::reader::Scrape;

#[derive(Debug)]
pub enum Event {
    Key(Key),
    /// The machine was read, or why it was not.
    Read(Box<Result<Scrape, String>>),
    /// The reading that is under way takes so long already.
    Waiting(Duration),
    /// The screen has another size.
    Resized,
}

/// What a terminal's event means for `top`; `None`: nothing.
#[must_use]
pub fn of_terminal(event: &OfTerminal) -> Option<Event> {
    match event {
        OfTerminal::Key(pressed) if pressed.kind != KeyEventKind::Release => Some(Event::Key(key(*pressed)?)),
        OfTerminal::Resize(..) => Some(Event::Resized),
        _ => None,
    }
}
