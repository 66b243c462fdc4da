//! Changes as people read them: like a diff.

use printable::{counted, printable};
use reconcile::{Change, Finding, Note, Outcome, Resource, Settled, Stage, State, Verb};

use super::output::{BAD, DIM, GOOD, HEADING, WARN, styled, wrapped};
use super::session::Session;
use crate::run;

/// Lines of a change that are shown unless more is asked for.
const LINES: usize = 16;

/// Whether changes are to be made, are being made, or are made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tense {
    Planned,
    Made,
}

/// Prints a change: what happens to which path and why. `lines`: also the lines that differ.
pub(crate) fn change(session: &Session, change: &Change, tense: Tense, lines: bool) -> String {
    let path = printable(&change.path.shown(&session.root));
    let style = match change.change {
        Verb::Create => GOOD,
        Verb::Remove => BAD,
        _ => WARN,
    };
    let word = styled(style, word(change, tense));
    let mut text = wrapped(&format!("{word} {}: {}", styled(HEADING, path), printable(&change.reason)));
    if !lines {
        return text;
    }
    text.push_str(&diff_lines(change.diff.as_deref().unwrap_or_default(), session.verbose));
    if let Some(other) = other_than_lines(change) {
        text.push_str(&format!("    {}\n", styled(DIM, printable(&other))));
    }
    text
}

fn word(change: &Change, tense: Tense) -> &'static str {
    let (planned, made) = change.change.words(&change.path);
    match tense {
        Tense::Planned => planned,
        Tense::Made => made,
    }
}

/// The part of a change that no line of a diff shows.
fn other_than_lines(change: &Change) -> Option<String> {
    let has_lines = change.diff.as_deref().is_some_and(|diff| !diff.is_empty());
    let attributes = attributes(change);
    match (&change.from, &change.to) {
        (State::File { sha256: from, .. }, State::File { sha256: to, .. }) if from != to && !has_lines => {
            Some(["other content".to_owned()].into_iter().chain(attributes).collect::<Vec<_>>().join(", "))
        }
        (State::File { .. }, State::File { .. }) | (State::Node { .. }, State::Node { .. }) => attributes,
        _ if has_lines => None,
        (from, to) => Some(format!("{from} → {to}")),
    }
}

/// `mode 0666 → 0644`, `owner 1000:1000 → 0:0`.
fn attributes(change: &Change) -> Option<String> {
    let of = |state: &State| match state {
        State::File { mode, uid, gid, .. } | State::Node { mode, uid, gid } => Some((*mode, (*uid, *gid))),
        _ => None,
    };
    let ((mode, owner), (new_mode, new_owner)) = (of(&change.from)?, of(&change.to)?);
    let mut differences = Vec::new();
    if mode != new_mode {
        differences.push(format!("mode {mode:04o} → {new_mode:04o}"));
    }
    if owner != new_owner {
        differences.push(format!("owner {}:{} → {}:{}", owner.0, owner.1, new_owner.0, new_owner.1));
    }
    (!differences.is_empty()).then(|| differences.join(", "))
}

/// How a path differs from what should be there, in a few words.
pub(crate) fn difference(change: &Change) -> String {
    let has_content = change.from.digest() != change.to.digest();
    match (&change.from, &change.to) {
        (State::Absent, _) => "it is not there".to_owned(),
        (_, State::Absent) => "it is to go".to_owned(),
        (State::File { .. }, State::File { .. }) | (State::Node { .. }, State::Node { .. }) => {
            let content = has_content.then(|| "its content differs".to_owned());
            content.into_iter().chain(attributes(change)).collect::<Vec<_>>().join(", ")
        }
        (from, to) => format!("{from} → {to}"),
    }
}

/// The lines of a diff, the first ones unless all are asked for.
pub(crate) fn diff_lines(diff: &str, all: bool) -> String {
    let lines: Vec<&str> = diff.lines().collect();
    let shown = if all || lines.len() <= LINES + 1 { lines.len() } else { LINES };
    let mut text = String::new();
    for line in lines.iter().take(shown) {
        let style = match line.as_bytes().first() {
            Some(b'+') => GOOD,
            Some(b'-') => BAD,
            _ => DIM,
        };
        text.push_str(&format!("    {}\n", styled(style, printable(line))));
    }
    if shown < lines.len() {
        let rest = format!("… {} more lines (-v shows them)", lines.len() - shown);
        text.push_str(&format!("    {}\n", styled(DIM, rest)));
    }
    text
}

/// All changes of a plan, the first stage first.
pub(crate) fn changes(session: &Session, changes: &[Change]) -> String {
    let mut text = String::new();
    for (stage, title) in [(Stage::Shape, "the machine"), (Stage::Expose, "engines and users")] {
        let of_stage: Vec<_> = changes.iter().filter(|change| change.stage == stage).collect();
        if !of_stage.is_empty() {
            text.push_str(&format!("{}\n", styled(DIM, title)));
        }
        text.extend(of_stage.into_iter().map(|it| change(session, it, Tense::Planned, true)));
    }
    text
}

/// Findings behind a word: what is contested, blocked, left, failed.
pub(crate) fn findings(session: &Session, what: &str, findings: &[Finding]) -> String {
    let subjects = findings.iter().map(|it| (printable(&it.path.shown(&session.root)), it.text.as_str()));
    sentences(&styled(BAD, what), subjects)
}

/// A line for each sentence, with all that it is about.
fn sentences<'t>(word: &str, about: impl Iterator<Item = (String, &'t str)>) -> String {
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for (subject, text) in about {
        match lines.iter_mut().find(|(of, _)| *of == text) {
            Some((_, subjects)) => subjects.push(subject),
            None => lines.push((text, vec![subject])),
        }
    }
    let line = |(text, about): &(&str, Vec<String>)| {
        wrapped(&format!("{word} {}: {}", about.join(", "), printable(text)))
    };
    lines.iter().map(line).collect()
}

/// The paths that a run left as they are because others change them, as the end of its summary.
pub(crate) fn left_alone(session: &Session, outcome: &run::Outcome) -> Option<String> {
    let path = |finding: &Finding| printable(&finding.path.shown(&session.root));
    let paths: Vec<String> = outcome.contested.iter().chain(&outcome.left).map(path).collect();
    let (first, count) = (paths.first()?, paths.len());
    let others =
        if count == 1 { String::new() } else { format!(" and {}", counted(count - 1, "other path")) };
    Some(wrapped(&format!("Left alone, for the reasons above: {first}{others}.")))
}

/// What a run did beside its changes.
pub(crate) fn outcome(session: &Session, outcome: &run::Outcome) -> String {
    let found = [
        ("failed", &outcome.failed),
        ("blocked", &outcome.blocked),
        ("contested", &outcome.contested),
        ("left", &outcome.left),
    ];
    settled(&outcome.effects)
        + &found.map(|(what, of)| findings(session, what, of)).concat()
        + &notes(&outcome.notes)
}

/// A note for each path that was correct before rocworker managed anything there.
pub(crate) fn found(session: &Session, found: &[Resource]) -> String {
    let line = |path: &Resource| {
        let path = printable(&path.shown(&session.root));
        wrapped(&format!("{} {path} is already correct and unmanaged: undo leaves it", styled(DIM, "note:")))
    };
    found.iter().map(line).collect()
}

/// Warnings, of which each is about a configured part that is not applied, come first.
pub(crate) fn notes(notes: &[Note]) -> String {
    let lines = |word: String, is_warning: bool| {
        let notes = notes.iter().filter(|note| note.problem == is_warning);
        sentences(&word, notes.map(|note| (note.about.clone(), note.text.as_str())))
    };
    lines(styled(WARN, "warning:"), true) + &lines(styled(DIM, "note:"), false)
}

pub(crate) fn settled(effects: &[Settled]) -> String {
    let line = |settled: &Settled| {
        let word = match settled.outcome {
            Outcome::Done => styled(GOOD, "done:"),
            Outcome::Skipped => styled(DIM, "skipped:"),
            Outcome::Pending => styled(WARN, "pending:"),
            Outcome::Failed => styled(BAD, "failed:"),
        };
        wrapped(&format!("{word} {}", printable(&settled.text)))
    };
    effects.iter().map(line).collect()
}
