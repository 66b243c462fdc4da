use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use printable::{printable_json, printable_lines};
use serde::Serialize;

use super::options::{Format, Options};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const HEADING: Style = Style::new().bold();

/// Text in a style; anstream takes the colours out again where they are not wanted (a pipe, NO_COLOR).
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The most columns of a sentence on a terminal: in longer lines eyes lose the next one.
const COLUMNS: usize = 100;

/// A sentence for people, with its end. On a terminal it is wrapped between words, and what a person copies, such as a path,
/// stays whole. Elsewhere it is one line, which grep and logs keep together.
pub(crate) fn wrapped(sentence: &str) -> String {
    if !io::stdout().is_terminal() {
        return format!("{sentence}\n");
    }
    let options = textwrap::Options::new(textwrap::termwidth().min(COLUMNS))
        .subsequent_indent("    ")
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(sentence, options) + "\n"
}

/// Whether the answer on stdout keeps its colours.
pub(crate) fn has_colour(options: &Options) -> bool {
    !options.output.is_json() && anstream::stdout().current_choice() != anstream::ColorChoice::Never
}

impl Format {
    /// Writes the answer: `answer` for programs, `text` for people.
    pub(crate) fn print(self, answer: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        match self {
            Self::Table | Self::Wide | Self::Yaml | Self::Nfd => print_text(&text()),
            Self::Json => {
                let mut json = serde_json::to_string_pretty(answer)?;
                json.push('\n');
                print_text(&printable_json(&json))
            }
        }
    }
}

/// Names of processes and containers are anybody's: whatever prints them, none steers the terminal.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    let written = stdout.write_all(printable_lines(text).as_bytes()).and_then(|()| stdout.flush());
    written.context("cannot write the answer to stdout")
}

/// Whether the reader of the answer has gone: `rocworker detect | head -1`.
pub(crate) fn reader_left(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
