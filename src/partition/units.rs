//! Units that a switch stops, and starts again where they ran.

use std::time::Duration;

use anyhow::{anyhow, bail};
use reconcile::runs;

use super::Progress;
use super::context::Context;

/// How long systemctl may take for one unit.
const LIMIT: Duration = Duration::from_secs(300);

/// Stops the units that run. Each is on disk before it stops.
pub(super) fn stop(
    context: &mut Context<'_>,
    progress: &mut Progress,
    wanted: &[String],
) -> anyhow::Result<()> {
    let may_stop = context.options.stops_units;
    for unit in wanted.iter().filter(|_| may_stop) {
        let programs = context.programs("units are stopped")?;
        if !runs(programs, unit).map_err(|why| anyhow!(why))? {
            continue;
        }
        if !progress.units.contains(unit) {
            progress.units.push(unit.clone());
            progress.write(context.run.root)?;
        }
        programs.run(&["systemctl", "stop", unit], LIMIT)?;
        context.done(format!("{unit} was stopped"));
    }
    Ok(())
}

/// Starts the units that the switch has stopped, each whatever came of the others.
pub(super) fn start(context: &mut Context<'_>, progress: &mut Progress) -> anyhow::Result<()> {
    // systemd starts a unit behind the one that runs this program at a boot.
    let wait: &[&str] = if context.options.stops_units { &[] } else { &["--no-block"] };
    let mut problems = Vec::new();
    for unit in std::mem::take(&mut progress.units) {
        let argv = [&["systemctl", "start"], wait, &[&unit]].concat();
        let started = context.programs("units are started");
        match started.and_then(|programs| Ok(programs.run(&argv, LIMIT)?)) {
            Ok(_) => context.done(format!("{unit} was started again")),
            Err(error) => {
                problems.push(format!("{unit} ran before, and does not start: {error:#}"));
                progress.units.push(unit);
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { bail!("{}", problems.join("; ")) }
}
