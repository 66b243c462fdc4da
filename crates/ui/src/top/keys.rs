//! The keys of a terminal, as far as `top` knows them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Character(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C: raw mode makes no signal of it.
    Interrupt,
    /// Ctrl-Z.
    Stop,
}

/// The key of a press; `None` of a key that `top` does not know.
pub(super) fn key(key: KeyEvent) -> Option<Key> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if is_control => Key::Interrupt,
        KeyCode::Char('z') if is_control => Key::Stop,
        KeyCode::Char(_) if is_control || key.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => Key::Character(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Tab | KeyCode::BackTab => Key::Tab,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
