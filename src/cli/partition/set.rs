//! `partition set` and `partition reset`: cards get other modes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use config::Config;
use inventory::partitioning::Entry;
use printable::printable;
use reconcile::Uptime;
use serde::Serialize;

use super::super::Outcome;
use super::super::session::{Misuse, Session};
use super::profile;
use crate::daemon::socket::ask;
use crate::partition::{Goal, Look, News, Options, Phase, Progress, Switched, before, set};
use crate::run::State;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A profile of the configuration. Left out: partitions.profile
    profile: Option<String>,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// Load amdgpu again, where a memory mode takes that: every card of the driver is gone meanwhile
    #[arg(long)]
    reload: bool,
    /// How long processes may take to leave the cards, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    wait: u32,
    /// Kill the processes that have not left by then: SIGTERM, and SIGKILL after ten seconds
    #[arg(long)]
    kill: bool,
}

#[derive(Serialize)]
struct Answer<'p> {
    schema_version: u32,
    changed: bool,
    switch: Option<&'p Progress>,
}

pub(crate) fn run(session: &Session, args: &Args) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let (name, entries) = profile(&config.partitions, args.profile.as_deref())?;
    let goal = Goal::Profile(name.to_owned());
    let outcome = switch(session, &config, &goal, entries, args.how.options())?;
    publish(session, &config)?;
    Ok(outcome)
}

pub(crate) fn reset(session: &Session, how: &How) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let look = Look::at(&session.root);
    let boot = Uptime::boot(&session.root);
    let state = State::of_receipt(&session.root)?;
    let entries = before(&state.receipt, boot.as_deref(), &look.cards);
    if entries.is_empty() {
        let text =
            "rocworker has switched no card since this boot; at a boot the driver picks the modes itself";
        return Err(Misuse(text.to_owned()).into());
    }
    let outcome = switch(session, &config, &Goal::Reset, &entries, how.options())?;
    publish(session, &config)?;
    Ok(outcome)
}

impl How {
    fn options(&self) -> Options {
        Options { reload: self.reload, wait: Duration::from_secs(self.wait.into()), kill: self.kill }
    }
}

/// Tells engines of the cards' devices, where no daemon does.
fn publish(session: &Session, config: &Config) -> anyhow::Result<()> {
    if ask(&session.root).is_none() && State::of_receipt(&session.root)?.is_applied() {
        session.run(config, |run, on_progress| run.boot(true, on_progress))?;
    }
    Ok(())
}

/// Says why no card is switched.
pub(crate) fn nothing(session: &Session, why: &str) -> anyhow::Result<()> {
    let answer = Answer { schema_version: 1, changed: false, switch: None };
    session.format.print(&answer, || format!("{}\n", printable(why)))
}

pub(crate) fn switch(
    session: &Session,
    config: &Config,
    goal: &Goal,
    entries: &[Entry],
    options: Options,
) -> anyhow::Result<Outcome> {
    let pipeline = session.pipeline(config)?;
    let switched = set(&pipeline, &config.partitions, goal, entries, options, &mut |news| say(&news))?;
    let progress = match &switched {
        Switched::Nothing => None,
        Switched::Done(progress) => Some(progress),
    };
    let answer = Answer { schema_version: 1, changed: progress.is_some(), switch: progress };
    session.format.print(&answer, || text(goal, progress))?;
    Ok(Outcome::Done)
}

/// Says on stderr how far the switch is.
fn say(news: &News<'_>) {
    let text = match news {
        News::Phase(Phase::Pending | Phase::Succeeded | Phase::Failed) | News::Waits([]) => return,
        News::Phase(phase) => format!("{phase:?}"),
        News::Waits(holders) => {
            let named: Vec<String> = holders.iter().map(ToString::to_string).collect();
            format!("waiting for {}", named.join(", "))
        }
        News::Done(what) => what.clone(),
    };
    // A reader of stderr that has gone stops no switch half-way.
    writeln!(anstream::stderr(), "{}", printable(&text)).ok();
}

fn text(goal: &Goal, progress: Option<&Progress>) -> String {
    let Some(progress) = progress else {
        return format!("The cards are as {} asks; nothing was changed.\n", printable(&goal.to_string()));
    };
    let mut text = String::new();
    for card in &progress.cards {
        let memory = card.memory.map_or_else(String::new, |(_, memory)| format!("/{memory}"));
        let skipped = if card.is_skipped { " (as before)" } else { "" };
        writeln!(text, "{} is in {}{memory}{skipped}", card.pci, card.compute.1).ok();
    }
    text
}
