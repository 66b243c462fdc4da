//! What lies over the tables while it is asked for.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use telemetry::overview::Overview;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::BOLD;
use crate::printable::{cut, printable};
use crate::top::say;
use crate::top::state::{Overlay, State};

/// Each key, and what it does. With the title, they fit the least size.
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
        Overlay::Unknown => unknown(state, area),
    };
    frame.render_widget(Paragraph::new(lines), area);
}

fn help(height: u16) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = vec![Line::styled("Keys of rocworker top", BOLD)];
    let is_high = usize::from(height) >= KEYS.len() + 3;
    lines.extend(is_high.then(Line::default));
    lines.extend(KEYS.map(|(keys, what)| Line::from(format!("{keys:<8} {what}"))));
    lines.extend(is_high.then(|| Line::from("Any key returns.")));
    lines
}

fn unknown(state: &State, area: Rect) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let overview = state.overview();
    let mut reasons: Vec<&str> = overview.iter().flat_map(|it| &it.unknown).map(String::as_str).collect();
    let is_without_daemon = |it: &&Overview| it.daemon.is_none() && !it.cards.is_empty();
    reasons.extend(overview.filter(is_without_daemon).map(|_| say::NO_DAEMON));
    let mut lines = vec![Line::styled(cut("Unknown values (any key returns)", width), BOLD)];
    if reasons.is_empty() {
        lines.push(Line::from("Every file that exists gave a value."));
    }
    for (at, reason) in reasons.iter().enumerate() {
        let wrapped = wrapped(&format!("? {}", printable(reason)), width);
        let is_last = at + 1 == reasons.len();
        // The last line is for how many there are more.
        if lines.len() + wrapped.len() + usize::from(!is_last) > height {
            let more = format!("{} more: rocworker top --once", reasons.len() - at);
            lines.push(Line::styled(cut(&more, width), BOLD));
            break;
        }
        lines.extend(wrapped.into_iter().map(Line::from));
    }
    lines
}

/// A text in lines of at most so many columns. Breaks between words, and a word only where it is longer than a line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        if used > 0 && used + word.trim_end().width() > width && word.trim_end().width() <= width {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > width {
                if c == ' ' {
                    continue;
                }
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
                used += wide;
            }
        }
    }
    lines
}
