//! What long work is at, for people: on a terminal one line that is drawn over itself, elsewhere a line for each step.
//!
//! Progress goes to stderr, so that stdout has the answer alone. With `-o json` steps are shown only with `-v`: mostly
//! a program asks.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use config::Config;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use printable::printable;
use reconcile::{Change, Effect, KindName, Progress, Step};

use super::changes::{Tense, change};
use super::options::Format;
use super::output::print_text;
use super::session::Session;
use crate::run::Run;

/// How often the line on a terminal is drawn, so that one sees that the program lives.
const TICK: Duration = Duration::from_millis(120);

/// indicatif's: what does not fit into the terminal's width is cut, so that there is one line to draw over.
const WITHOUT_BAR: &str = "{spinner} {wide_msg}";
const WITH_BAR: &str = "{spinner} [{bar:24}] {percent:>3}% {wide_msg}";

impl Session {
    /// Runs the pipeline with its progress shown.
    pub(crate) fn run<T, E: Into<anyhow::Error>>(
        &self,
        config: &Config,
        act: impl FnOnce(&Run<'_>, &mut dyn FnMut(Progress<'_>)) -> Result<T, E>,
    ) -> anyhow::Result<T> {
        let mut shown = Shown::new(self);
        let done = act(&self.pipeline(config)?, &mut |progress| shown.on_progress(progress));
        let done = done.map_err(Into::into)?;
        shown.end()?;
        Ok(done)
    }
}

/// Who is shown what is done, and how.
pub(crate) struct Shown<'a> {
    session: &'a Session,
    way: Way,
    /// The last step that was printed: a percentage alone is no new line.
    last: String,
    /// What could not be printed.
    failed: anyhow::Result<()>,
}

enum Way {
    /// `None` until there is something to show, so that what takes no time shows nothing.
    Terminal(Option<ProgressBar>),
    Lines,
    /// Steps are not shown. Each change is printed on stdout, unless the output is JSON.
    Quiet,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(session: &'a Session) -> Self {
        let way = match session.format {
            Format::Json if !session.verbose => Way::Quiet,
            Format::Table | Format::Wide if io::stderr().is_terminal() => Way::Terminal(None),
            _ => Way::Lines,
        };
        Self { session, way, last: String::new(), failed: Ok(()) }
    }

    pub(crate) fn on_progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Begins(begun) if begun.takes_long() => {
                let text = format!("{} {}", doing(begun), begun.path.shown(&self.session.root));
                self.step(&Step { text, percent: None });
            }
            // A file is written at once.
            Progress::Begins(_) => {}
            Progress::Made(made) => {
                self.clear();
                if !self.session.format.is_json() && self.failed.is_ok() {
                    self.failed = print_text(&change(self.session, made, Tense::Made, self.session.verbose));
                }
            }
            Progress::Comes(_, step) => self.step(&step),
            Progress::Waits(text) => self.step(&Step { text, percent: None }),
            Progress::Settles(effect)
                if matches!(self.way, Way::Terminal(_)) || self.session.verbose || takes_long(effect) =>
            {
                self.step(&Step { text: effect.to_string(), percent: None });
            }
            // What is done at once needs no line before the one that says it.
            Progress::Settles(_) => {}
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let text = printable(&step.text.replace('\n', " "));
        match &mut self.way {
            Way::Terminal(bar) => draw(bar.get_or_insert_with(spinner), &text, step.percent),
            Way::Lines if without_remaining(&text) != self.last => {
                without_remaining(&text).clone_into(&mut self.last);
                // A reader of stderr that has gone is no reason to stop half-way.
                writeln!(io::stderr(), "{}", self.last).ok();
            }
            Way::Lines | Way::Quiet => {}
        }
    }

    /// Takes the line on a terminal away, before something else is printed there.
    fn clear(&mut self) {
        if let Way::Terminal(bar) = &mut self.way
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
    }

    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.clear();
        std::mem::replace(&mut self.failed, Ok(()))
    }
}

impl Drop for Shown<'_> {
    /// Clears the progress line, also after a failure, so that the error gets a line of its own.
    fn drop(&mut self) {
        self.clear();
    }
}

/// The verb for a change under way, for kinds of change that take long.
fn doing(change: &Change) -> &'static str {
    match (change.kind, change.is_revert()) {
        (KindName::Module, false) => "loading",
        (KindName::Module, true) => "unloading",
        (_, true) => "removing",
        (KindName::Package, false) => "installing",
        (_, false) => "fetching",
    }
}

/// Whether the effect takes long: it waits for a network.
fn takes_long(effect: &Effect) -> bool {
    matches!(effect, Effect::AptUpdate { .. })
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(100), ProgressDrawTarget::stderr());
    // Not with indicatif's own template, which the first tick would draw.
    draw(&bar, "", None);
    bar.enable_steady_tick(TICK);
    bar
}

fn draw(bar: &ProgressBar, text: &str, percent: Option<f32>) {
    let template = if percent.is_some() { WITH_BAR } else { WITHOUT_BAR };
    // A template with a mistake would leave the bar as it is.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_position(percent.map_or(0, whole));
    bar.set_message(text.to_owned());
}

/// What a bar of a hundred steps shows: a percentage is 0 to 100, whatever a program says.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 100; of what is no number, the cast makes 0"
)]
fn whole(percent: f32) -> u64 {
    percent.clamp(0.0, 100.0) as u64
}

/// apt says `Retrieving file 1 of 3 (2s remaining)`: how long it still takes makes no new line.
fn without_remaining(text: &str) -> &str {
    text.strip_suffix("remaining)").and_then(|text| text.rsplit_once(" (")).map_or(text, |(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_takes_makes_no_new_line() {
        assert_eq!(without_remaining("Retrieving file 1 of 3 (2s remaining)"), "Retrieving file 1 of 3");
        assert_eq!(without_remaining("Unpacking rocm-core (amd64)"), "Unpacking rocm-core (amd64)");
    }

    #[test]
    fn a_bar_shows_a_whole_percentage_between_nothing_and_all() {
        for (percent, shown) in [(0.0, 0), (49.9, 49), (100.0, 100), (250.0, 100), (-1.0, 0), (f32::NAN, 0)] {
            assert_eq!(whole(percent), shown, "{percent}");
        }
    }
}
