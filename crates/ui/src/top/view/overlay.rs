//! What lies over the tables while it is asked for.

use std::iter;

use printable::{counted, printable};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::BOLD;
use crate::top::say;
use crate::top::state::{Overlay, State};

/// Each key, and what it does. The list and its title fit the smallest terminal that `top` draws in, `LEAST`.
const KEYS: [(&str, &str); 9] = [
    ("↑ ↓ j k", "move; PgUp PgDn Home End"),
    ("Tab", "switch tables"),
    ("Enter", "only this GPU's processes"),
    ("Space", "fold the partitions"),
    ("s < > r", "sort processes; r reverses"),
    ("/", "filter processes: text or gpu 3"),
    ("p + -", "pause; longer, shorter interval"),
    ("u", "list unknown values"),
    ("q Esc", "quit; Ctrl-Z stops, fg resumes"),
];

pub(super) fn draw(state: &State, overlay: Overlay, frame: &mut Frame<'_>, area: Rect) {
    let lines = match overlay {
        Overlay::Help => help(area.height),
        Overlay::Unknown => unknown(state),
    };
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), area);
}

fn help(height: u16) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = vec![Line::styled("Keys of rocworker top", BOLD)];
    let is_high = usize::from(height) >= KEYS.len() + 3;
    lines.extend(is_high.then(Line::default));
    lines.extend(KEYS.map(|(keys, what)| Line::from(format!("{keys:<8} {what}"))));
    lines.extend(is_high.then(|| Line::from("Any key returns.")));
    lines
}

fn unknown(state: &State) -> Vec<Line<'static>> {
    let snapshot = state.snapshot();
    let mut reasons: Vec<String> = snapshot.iter().flat_map(|it| it.unknown()).collect();
    reasons.extend(snapshot.and_then(say::unpublished).map(str::to_owned));
    let title = match reasons.len() {
        0 => "No read failed: - is a value that the driver does not give. Any key returns.".to_owned(),
        // Not all may fit.
        count => format!("{}: top --once lists all. Any key returns.", counted(count, "unknown value")),
    };
    // A blank that breaks no line: a path may be longer than one.
    let lines = reasons.iter().map(|reason| Line::from(format!("?\u{a0}{}", printable(reason))));
    iter::once(Line::styled(title, BOLD)).chain(lines).collect()
}
