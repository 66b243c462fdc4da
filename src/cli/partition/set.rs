//! `partition set` and `partition reset`: cards get other modes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use config::Config;
use printable::printable;
use serde::Serialize;

use super::super::Outcome;
use super::super::session::{Misuse, Session};
use super::profile;
use crate::daemon::socket::ask;
use crate::partition::{Goal, News, Options, Phase, Progress, last_switch, set};
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
    let (name, _) = profile(&config.partitions, args.profile.as_deref())?;
    by_hand(session, &config, &Goal::Profile(name.to_owned()), &args.how)
}

pub(crate) fn reset(session: &Session, how: &How) -> anyhow::Result<Outcome> {
    let config = session.config()?;
    let is_reset = |last: &Progress| last.goal == Goal::Reset && last.phase == Phase::Succeeded;
    if last_switch(&session.root).is_ok_and(|last| last.is_none_or(|last| is_reset(&last))) {
        let text = "rocworker has switched no card since this boot, or has reset them; at a boot the driver picks the modes";
        return Err(Misuse(text.to_owned()).into());
    }
    by_hand(session, &config, &Goal::Reset, how)
}

fn by_hand(session: &Session, config: &Config, goal: &Goal, how: &How) -> anyhow::Result<Outcome> {
    let wait = Duration::from_secs(how.wait.into());
    let options = Options { reload: how.reload, wait, kill: how.kill, stops_units: true };
    switch(session, config, goal, options, &|| publish(session, config))
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
    options: Options,
    publish: &dyn Fn() -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    let pipeline = session.pipeline(config)?;
    let switch = set(&pipeline, &config.partitions, goal, options, publish, &mut |news| say(&news))?;
    let answer = Answer { schema_version: 1, changed: switch.is_some(), switch: switch.as_ref() };
    session.format.print(&answer, || text(goal, switch.as_ref()))?;
    Ok(Outcome::Done)
}

/// Says on stderr how far the switch is.
pub(crate) fn say(news: &News<'_>) {
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
        return match goal {
            Goal::Profile(name) => {
                format!("The cards are as {} asks; nothing was changed.\n", printable(name))
            }
            Goal::Reset => "The cards have their modes of before; nothing was changed.\n".to_owned(),
        };
    };
    let mut text = String::new();
    for card in &progress.cards {
        let aim = card.aim;
        let memory = aim.memory.map_or_else(String::new, |memory| format!("/{}", memory.to));
        let skipped = if card.is_skipped { " (as before)" } else { "" };
        writeln!(text, "{} is in {}{memory}{skipped}", aim.pci, aim.compute.to).ok();
    }
    text
}
