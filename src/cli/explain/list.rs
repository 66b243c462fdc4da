//! Every error that `explain` knows: what the kernel says by class, what HIP returns by blame, and the errors 1 to 8.

use std::collections::BTreeMap;

use explain::codes::errors::{self, Error};
use explain::codes::statuses::Library;
use explain::matches::Meaning;
use kernel_log::knowledge::{Knowledge, Message};
use serde::Serialize;

use super::codes::{self, StatusAnswer, errors_table};
use super::log::text::known as explanation;
use super::word;
use crate::cli::Outcome;
use crate::cli::output::{HEADING, styled};
use crate::cli::session::Session;

/// What a terminal has at least.
const WIDTH: usize = 100;

#[derive(Serialize)]
struct Everything<'a> {
    schema_version: u32,
    messages: Vec<Meaning<'a>>,
    codes: Vec<StatusAnswer<'a>>,
    errors: &'a [Error],
}

#[derive(Serialize)]
struct OneMessage<'a> {
    schema_version: u32,
    message: Meaning<'a>,
    /// Lines that have the message.
    samples: Vec<&'a str>,
}

pub(super) fn list(session: &Session) -> anyhow::Result<Outcome> {
    let hip = Library::Hip.table()?;
    let mut messages: Vec<Meaning<'_>> = known()?.map(Meaning::of).collect();
    messages.sort_by_key(|message| message.class);
    let codes = hip.codes.iter().map(|status| codes::answer(Library::Hip, status, &hip)).collect();
    let answer = Everything { schema_version: 1, messages, codes, errors: &errors::all()? };
    session.format.print(&answer, || text(&answer, session))?;
    Ok(Outcome::Done)
}

/// The message of the kernel that the list calls `name`; `None`: there is none.
pub(super) fn one(session: &Session, name: &str) -> anyhow::Result<Option<Outcome>> {
    let Some(message) = known()?.find(|message| message.id == name) else { return Ok(None) };
    let samples = message.patterns.iter().map(|pattern| &*pattern.sample).collect();
    let answer = OneMessage { schema_version: 1, message: Meaning::of(message), samples };
    session.format.print(&answer, || explanation(&answer.message, &answer.samples))?;
    Ok(Some(Outcome::Done))
}

/// The messages that `explain` finds in a log, in the order of the knowledge.
fn known() -> anyhow::Result<impl Iterator<Item = &'static Message>> {
    Ok(Knowledge::built_in()?.messages().iter().filter(|message| !message.silent))
}

fn text(answer: &Everything<'_>, session: &Session) -> String {
    let Everything { messages, codes, errors, .. } = answer;
    let by_class = grouped(messages.iter().map(|it| (it.class, it.id.to_owned())));
    let by_blame =
        grouped(codes.iter().filter_map(|it| Some((word(&it.blame?), format!("{} {}", it.number, it.name)))));
    format!(
        "{}\n{}\n{}\n{}\n{}\n{}",
        styled(
            HEADING,
            "What the kernel says, by class: rocworker explain \"LINE\", or a name, as ring-timeout"
        ),
        paragraphs(by_class.iter().map(|(class, ids)| (word(class), &**ids))),
        styled(
            HEADING,
            "What HIP returns, by who mostly causes it: rocworker explain hip:719; so hsa:N, amdsmi:N"
        ),
        paragraphs(by_blame.iter().map(|(blame, names)| (blame.clone(), &**names))),
        styled(HEADING, "AAMI's eight errors, to which AMD gives no numbers: rocworker explain 7"),
        errors_table(errors, session.format)
    )
}

fn grouped<K: Ord>(items: impl Iterator<Item = (K, String)>) -> BTreeMap<K, Vec<String>> {
    let mut groups: BTreeMap<K, Vec<String>> = BTreeMap::new();
    for (key, item) in items {
        groups.entry(key).or_default().push(item);
    }
    groups
}

/// For each group its name, and its items beside it, in lines of at most [`WIDTH`] columns.
fn paragraphs<'a>(groups: impl Iterator<Item = (String, &'a [String])> + Clone) -> String {
    let column = 4 + groups.clone().map(|(name, _)| name.len()).max().unwrap_or(0);
    let beside = " ".repeat(column);
    let paragraph = |(name, items): (String, &[String])| {
        let name = format!("{:<column$}", format!("  {name}"));
        let options = textwrap::Options::new(WIDTH)
            .initial_indent(&name)
            .subsequent_indent(&beside)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        // No line ends between a number and its name.
        let whole: Vec<String> = items.iter().map(|item| item.replace(' ', "\u{a0}")).collect();
        textwrap::fill(&whole.join(", "), options).replace('\u{a0}', " ") + "\n"
    };
    groups.map(paragraph).collect()
}
