//! What lies over the tables while it is asked for.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::BOLD;
use crate::printable::printable;
use crate::top::say;
use crate::top::state::{Over, State};

/// Each key, and what it does.
const KEYS: [(&str, &str); 12] = [
    ("↑ ↓ j k", "move; PgUp PgDn Home End"),
    ("Tab", "GPUs or processes"),
    ("Enter", "only this GPU's processes"),
    ("Space", "fold the partitions"),
    ("s < >", "sort processes by a column"),
    ("r", "reverse the order"),
    ("/", "filter processes, gpu 3 too"),
    ("p", "pause"),
    ("+ -", "read less or more often"),
    ("u", "what is not known"),
    ("Ctrl-Z", "stop; fg continues"),
    ("q Esc", "end"),
];

pub(super) fn draw(state: &State, over: Over, frame: &mut Frame<'_>, area: Rect) {
    let lines = match over {
        Over::Help => help(area.height),
        Over::Unknown => unknown(state),
    };
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

fn help(height: u16) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = vec![Line::styled("Keys of rocworker top", BOLD)];
    let is_high = usize::from(height) >= KEYS.len() + 3;
    lines.extend(is_high.then(Line::default));
    lines.extend(KEYS.map(|(keys, what)| Line::from(format!("{keys:<8} {what}"))));
    lines.extend(is_high.then(|| Line::from("Any key goes back.")));
    lines
}

fn unknown(state: &State) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("What is not known (any key goes back)", BOLD)];
    let unknown = state.overview().map_or(&[][..], |overview| &overview.unknown);
    match unknown.is_empty() {
        true => lines.push(Line::from("Every file that is there gave a value.")),
        false => lines.extend(unknown.iter().map(|it| Line::from(format!("? {}", printable(it))))),
    }
    if state.overview().is_some_and(|overview| overview.daemon.is_none() && !overview.cards.is_empty()) {
        lines.push(Line::from(format!("? {}", say::NO_DAEMON)));
    }
    lines
}
