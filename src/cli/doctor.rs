use std::fmt::Write;
use std::time::{Duration, SystemTime};

use anstyle::Style;
use config::Config;
use engines::canary::Canary;
use host::facts::Facts;
use host::timestamp::Timestamp;
use printable::printable;
use reconcile::Step;
use unicode_width::UnicodeWidthStr;

use super::Outcome;
use super::output::{BAD, DIM, GOOD, HEADING, WARN, styled};
use super::progress::Shown;
use super::session::{Session, interrupt};
use crate::doctor::{Check, Diagnosis, Status, examine};
use crate::lease;
use crate::run::Own;

/// `canary`: how long an engine may take, when each is to start a container.
pub(crate) fn run(session: &Session, canary: Option<Duration>) -> anyhow::Result<Outcome> {
    let (config, facts) = (session.config()?, session.facts()?);
    let mut diagnosis = diagnosis(session, &config, &facts);
    if let Some(limit) = canary {
        let mut shown = Shown::new(session);
        if session.programs.is_some() {
            let text =
                format!("a container is started through each engine: up to {} s for each", limit.as_secs());
            shown.step(&Step { text, percent: None });
        }
        let canary = Canary {
            root: &session.root,
            config: &config,
            facts: &facts,
            programs: session.programs.as_ref(),
            limit,
            leased: lease::taken,
            interrupt: &interrupt()?,
        };
        diagnosis.add(engines::canary(&canary)?);
        shown.end()?;
    }
    session.format.print(&diagnosis, || text(&diagnosis))?;
    Ok(if diagnosis.failed > 0 { Outcome::Findings } else { Outcome::Done })
}

fn diagnosis(session: &Session, config: &Config, facts: &Facts) -> Diagnosis {
    let beside = Own::find().beside;
    let (root, programs, now) = (&session.root, session.programs.as_ref(), Timestamp::of(SystemTime::now()));
    examine(root, config, facts, programs, beside.as_deref(), now)
}

/// The answer for people.
fn text(diagnosis: &Diagnosis) -> String {
    let checks: Vec<&Check> = diagnosis.checks.iter().collect();
    format!("{}\n{}\n", listed(&checks), summary(diagnosis))
}

/// The answer for people without the checks that are in order or skipped, which the summary counts.
pub(super) fn concerns(session: &Session) -> anyhow::Result<String> {
    let diagnosis = diagnosis(session, &session.config()?, &session.facts()?);
    let is_concern = |check: &&Check| matches!(check.status, Status::Warning | Status::Failed);
    let checks: Vec<&Check> = diagnosis.checks.iter().filter(is_concern).collect();
    Ok(format!("{}{}\n", listed(&checks), summary(&diagnosis)))
}

/// The checks beneath their component, what is wrong with its remedy below it.
fn listed(checks: &[&Check]) -> String {
    let mut text = String::new();
    for component in checks.chunk_by(|a, b| a.name == b.name) {
        let name = component.first().map_or("", |check| check.name);
        writeln!(text, "{}", styled(HEADING, name.replace('_', " "))).ok();
        let alike = alike(component);
        let width = alike.iter().map(|checks| subject(checks).width()).max().unwrap_or(0);
        for checks in &alike {
            text.push_str(&line(checks, width));
        }
    }
    text
}

/// Groups checks with equal results, at the place of the first: 63 partitions in one state become one line.
fn alike<'c>(component: &[&'c Check]) -> Vec<Vec<&'c Check>> {
    let mut groups: Vec<Vec<&Check>> = Vec::new();
    for &check in component {
        let group = groups.iter_mut().find(|group| group.first().is_some_and(|first| is_alike(first, check)));
        match group {
            Some(group) => group.push(check),
            None => groups.push(vec![check]),
        }
    }
    groups
}

/// Whether two checks are of one kind and in one state, with names that differ only from the first digit on.
fn is_alike(a: &Check, b: &Check) -> bool {
    let kind =
        |check: &Check| check.subject.as_ref()?.split(|c: char| c.is_ascii_digit()).next().map(str::to_owned);
    kind(a).is_some()
        && kind(a) == kind(b)
        && (a.status, &a.evidence, &a.remedy) == (b.status, &b.evidence, &b.remedy)
}

fn line(checks: &[&Check], width: usize) -> String {
    let Some(check) = checks.first() else { return String::new() };
    let (sign, style) = sign(check.status);
    let subject = subject(checks);
    let padding = " ".repeat(width.saturating_sub(subject.width()));
    let gap = if width == 0 { "" } else { "  " };
    let style_of_text = if check.status == Status::Skipped { DIM } else { Style::new() };
    let mut line = String::new();
    writeln!(
        line,
        "  {} {subject}{padding}{gap}{}",
        styled(style, sign),
        styled(style_of_text, printable(&check.evidence))
    )
    .ok();
    if let Some(remedy) = &check.remedy {
        writeln!(line, "      → {}", printable(remedy)).ok();
    }
    line
}

fn subject(checks: &[&Check]) -> String {
    let of = |check: &Check| check.subject.as_deref().map_or_else(String::new, printable);
    match checks {
        [] => String::new(),
        [only] => of(only),
        [first, second] => format!("{}, {}", of(first), of(second)),
        [first, rest @ ..] => format!("{} and {} more", of(first), rest.len()),
    }
}

fn sign(status: Status) -> (&'static str, Style) {
    match status {
        Status::Ok => ("✓", GOOD),
        Status::Warning => ("!", WARN),
        Status::Failed => ("✗", BAD),
        Status::Skipped => ("·", DIM),
    }
}

fn summary(diagnosis: &Diagnosis) -> String {
    let of = |status| diagnosis.checks.iter().filter(|check| check.status == status).count();
    let counted = |count: usize, style, status: Status, word: &str| {
        let text = format!("{} {count} {word}", sign(status).0);
        if count == 0 { text } else { styled(style, text) }
    };
    format!(
        "{} checks: ✓ {} in order, {}, {}, · {} skipped",
        diagnosis.checks.len(),
        of(Status::Ok),
        counted(diagnosis.failed, BAD, Status::Failed, "failed"),
        counted(diagnosis.warnings, WARN, Status::Warning, "to look at"),
        of(Status::Skipped),
    )
}
