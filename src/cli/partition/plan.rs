//! `partition plan`: the steps to a profile.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use inventory::partitioning::Aim;
use printable::printable;
use serde::Serialize;

use super::super::Outcome;
use super::super::output::{BAD, DIM, WARN, styled};
use super::super::session::Session;
use super::profile;
use crate::partition::{Holder, Look, Plan, Refused, rivals};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile of the configuration. Left out: partitions.profile
    profile: Option<String>,
}

#[derive(Serialize)]
struct Answer<'p> {
    schema_version: u32,
    profile: &'p str,
    /// `None`: the profile is refused.
    cards: Option<&'p [Aim]>,
    steps: Vec<String>,
    needs_reload: bool,
    waits_for: &'p [Holder],
    /// Containers that hold devices and do not compute now; `None`: they are not known.
    leased: Option<&'p BTreeSet<String>>,
    stops: &'p [String],
    refused: &'p [String],
    rivals: Vec<String>,
}

pub(crate) fn run(session: &Session, args: &Args) -> anyhow::Result<Outcome> {
    let partitions = session.config()?.partitions;
    let (name, entries) = profile(&partitions, args.profile.as_deref())?;
    let look = Look::at(&session.root);
    let plan = Plan::make(&session.root, &look, &partitions, entries);
    let answer = Answer::of(name, &plan, rivals(&session.root));
    session.format.print(&answer, || text(&answer, &plan))?;
    Ok(if plan.is_ok() { Outcome::Done } else { Outcome::FellShort })
}

impl<'p> Answer<'p> {
    fn of(profile: &'p str, plan: &'p Result<Plan, Refused>, rivals: Vec<String>) -> Self {
        let none = || (&[][..], &[][..]);
        let (waits_for, stops) = plan.as_ref().map_or_else(|_| none(), |it| (&*it.holders, &*it.units));
        Self {
            schema_version: 1,
            profile,
            cards: plan.as_ref().ok().map(|plan| &*plan.aims),
            steps: plan.as_ref().map_or_else(|_| Vec::new(), Plan::sentences),
            needs_reload: plan.as_ref().is_ok_and(|plan| plan.steps.needs_reload()),
            waits_for,
            leased: plan.as_ref().ok().and_then(|plan| plan.leased.as_ref().ok()),
            stops,
            refused: plan.as_ref().err().map_or(&[], |refused| &refused.0),
            rivals,
        }
    }
}

fn text(answer: &Answer<'_>, plan: &Result<Plan, Refused>) -> String {
    let mut text = String::new();
    let profile = printable(answer.profile);
    match plan {
        Err(Refused(why)) => {
            writeln!(text, "{profile} cannot be set on this machine:").ok();
            for why in why {
                writeln!(text, "{} {}", styled(BAD, "✗"), printable(why)).ok();
            }
        }
        Ok(plan) if plan.steps.is_empty() => {
            writeln!(text, "The cards are as {profile} asks; nothing is to be done.").ok();
        }
        Ok(plan) => {
            writeln!(text, "rocworker partition set {profile} would:").ok();
            for (number, step) in (1..).zip(plan.sentences()) {
                writeln!(text, "{number:3}. {}", printable(&step)).ok();
            }
            if plan.steps.needs_reload() {
                let note = "a memory mode takes effect when the driver is loaded again: give --reload";
                writeln!(text, "{} {note}", styled(WARN, "warning:")).ok();
            }
            let note = "no kernel keeps modes over a restart of the machine";
            writeln!(text, "{} {note}", styled(DIM, "note:")).ok();
        }
    }
    for rival in &answer.rivals {
        writeln!(text, "{} {}", styled(WARN, "warning:"), printable(rival)).ok();
    }
    text
}
