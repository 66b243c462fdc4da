//! Changes as people read them: like a diff.

use reconcile::{Change, Finding, Note, Outcome, Resource, Settled, Stage, Verb};
use root::Root;

use super::output::{BAD, DIM, GOOD, HEADING, WARN, styled};
use crate::printable::printable;
use crate::run;

/// Lines of a change that are shown unless more is asked for.
const LINES: usize = 16;

/// One change: what happens to which path and why, and its lines.
pub(crate) fn change(root: &Root, change: &Change, lines: bool, all: bool) -> String {
    let path = printable(&change.path.shown(root));
    let (sign, style) = match change.change {
        Verb::Create => ("+", GOOD),
        Verb::Remove => ("-", BAD),
        _ => ("~", WARN),
    };
    let what = format!("{} {}", styled(style, sign), styled(HEADING, path));
    let mut text = format!("{what}  {}: {}\n", word(change.change), change.reason);
    if let Some(diff) = change.diff.as_deref().filter(|_| lines) {
        text.push_str(&diff_lines(diff, all));
    } else if lines {
        let states = format!("{} → {}", change.from, change.to);
        text.push_str(&format!("    {}\n", styled(DIM, printable(&states))));
    }
    text
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "new",
        Verb::Replace => "replaced",
        Verb::Edit => "edited",
        Verb::Repair => "repaired",
        Verb::Permissions => "group and mode",
        Verb::Restore => "restored",
        Verb::Remove => "removed",
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
pub(crate) fn changes(root: &Root, changes: &[Change], all: bool) -> String {
    let mut text = String::new();
    for (stage, title) in [(Stage::Shape, "the machine"), (Stage::Expose, "engines and users")] {
        let of_stage: Vec<_> = changes.iter().filter(|change| change.stage == stage).collect();
        if !of_stage.is_empty() {
            text.push_str(&format!("{}\n", styled(DIM, title)));
        }
        text.extend(of_stage.into_iter().map(|it| change(root, it, true, all)));
    }
    text
}

/// Findings under a mark: what is contested, blocked, left, failed.
pub(crate) fn findings(root: &Root, what: &str, findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let path = finding.path.shown(root);
        format!("{} {path}: {what}: {}\n", styled(BAD, "!"), printable(&finding.text))
    };
    findings.iter().map(line).collect()
}

/// What a run did beside its changes.
pub(crate) fn outcome(root: &Root, outcome: &run::Outcome) -> String {
    let found = [
        ("failed", &outcome.failed),
        ("blocked", &outcome.blocked),
        ("contested", &outcome.contested),
        ("left", &outcome.left),
    ];
    settled(&outcome.effects)
        + &found.map(|(what, of)| findings(root, what, of)).concat()
        + &notes(&outcome.notes)
}

/// What was correct before rocworker came.
pub(crate) fn found(root: &Root, found: &[Resource]) -> String {
    let line = |path: &Resource| {
        let path = printable(&path.shown(root));
        format!("{} {path} is already correct and unmanaged: undo leaves it\n", styled(DIM, "i"))
    };
    found.iter().map(line).collect()
}

pub(crate) fn notes(notes: &[Note]) -> String {
    let line = |note: &Note| {
        let mark = if note.problem { styled(BAD, "!") } else { styled(DIM, "i") };
        format!("{mark} {}: {}\n", note.about, printable(&note.text))
    };
    notes.iter().map(line).collect()
}

pub(crate) fn settled(effects: &[Settled]) -> String {
    let line = |settled: &Settled| {
        let mark = match settled.outcome {
            Outcome::Done => styled(GOOD, "✓"),
            Outcome::Skipped => styled(DIM, "-"),
            Outcome::Pending => styled(WARN, "…"),
            Outcome::Failed => styled(BAD, "✗"),
        };
        format!("{mark} {}\n", printable(&settled.text))
    };
    effects.iter().map(line).collect()
}
