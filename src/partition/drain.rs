//! A switch waits until no process is on the cards, and ends those that stay where it may.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use inventory::partitioning::Steps;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::context::{Context, News};
use super::holders::in_the_way;
use super::{Holder, holders};

/// Between two looks at the processes.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a process has between SIGTERM and SIGKILL, and how long KFD has afterwards.
const GRACE: Duration = Duration::from_secs(10);

/// Waits until no process is on the cards that change; on any card before a reload.
pub(super) fn drain(context: &mut Context<'_>, steps: &Steps) -> anyhow::Result<()> {
    let wait = context.options.wait;
    if wait_for(context, steps, Instant::now() + wait)?.is_empty() {
        return Ok(());
    }
    let signals = [Signal::SIGTERM, Signal::SIGKILL];
    // Beneath --root the processes are another machine's.
    let may_kill = context.options.kill && context.run.programs.is_some();
    for signal in signals.into_iter().filter(|_| may_kill) {
        for holder in on_cards(context, steps)? {
            // Without a name the pid is another namespace's. To kill(2), 0 is the caller's own group.
            let pid = i32::try_from(holder.pid).ok().filter(|pid| *pid > 0 && holder.name.is_some());
            if pid.is_some_and(|pid| kill(Pid::from_raw(pid), signal).is_ok()) {
                context.done(format!("{holder} got {signal}"));
            }
        }
        if wait_for(context, steps, Instant::now() + GRACE)?.is_empty() {
            return Ok(());
        }
    }
    let left: Vec<String> = on_cards(context, steps)?.iter().map(ToString::to_string).collect();
    let may_be_given = context.options.stops_units && !context.options.kill;
    let hint = if may_be_given { ": end them, wait longer with --wait, or give --kill" } else { "" };
    bail!("after {} s these processes are still on the cards: {}{hint}", wait.as_secs(), left.join(", "))
}

fn wait_for(context: &mut Context<'_>, steps: &Steps, until: Instant) -> anyhow::Result<Vec<Holder>> {
    let mut last = Vec::new();
    loop {
        let now = on_cards(context, steps)?;
        if now != last {
            (context.news)(News::Waits(&now));
            last.clone_from(&now);
        }
        if now.is_empty() || Instant::now() >= until {
            return Ok(now);
        }
        std::thread::sleep(PAUSE);
    }
}

fn on_cards(context: &Context<'_>, steps: &Steps) -> anyhow::Result<Vec<Holder>> {
    let inventory = amdgpu::read(context.run.root);
    let all = holders(context.run.root, &inventory).map_err(|problem| anyhow!(problem))?;
    Ok(in_the_way(context.run.root, all, steps))
}
