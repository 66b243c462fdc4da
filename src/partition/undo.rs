//! What an undo of the machine does with the last switch.

use std::time::Duration;

use anyhow::bail;
use root::Lock;

use super::context::{Context, News, Options};
use super::set::lock;
use super::{Phase, Progress, driver, last_switch, units};
use crate::run::Run;

const OPTIONS: Options = Options { reload: true, wait: Duration::ZERO, kill: false, stops_units: true };

/// No other switch begins while this lives.
#[derive(Debug)]
pub struct Undoing {
    /// `None`: there is no record of a switch.
    lock: Option<Lock>,
    /// The last switch of this boot, where it was killed or failed.
    left: Option<Progress>,
    problems: Vec<String>,
}

impl Undoing {
    /// Loads the driver where a switch was killed without it. Modes can be undone after that.
    ///
    /// # Errors
    /// A switch is at work.
    pub fn begin(run: &Run<'_>, news: &mut dyn FnMut(News<'_>)) -> anyhow::Result<Self> {
        if !Progress::is_there(run.root) {
            return Ok(Self { lock: None, left: None, problems: Vec::new() });
        }
        let lock = Some(lock(run.root)?);
        // A file that cannot be read holds up no undo.
        let left = last_switch(run.root).ok().flatten().filter(|last| last.phase != Phase::Succeeded);
        let mut context = Context { run, options: OPTIONS, news };
        let loaded = left.as_ref().map_or(Ok(()), |left| driver::see_driven(&mut context, &left.cards));
        let problems = loaded.err().map(|error| format!("{error:#}")).into_iter().collect();
        Ok(Self { lock, left, problems })
    }

    /// Starts the units that the switch has stopped, and forgets it where all modes are undone.
    ///
    /// # Errors
    /// The driver is not loaded, or a unit does not start: the switch stays known.
    pub fn end(
        mut self,
        run: &Run<'_>,
        is_undone: bool,
        news: &mut dyn FnMut(News<'_>),
    ) -> anyhow::Result<()> {
        if let Some(left) = &mut self.left {
            let started = units::start(&mut Context { run, options: OPTIONS, news }, left);
            self.problems.extend(started.err().map(|error| format!("{error:#}")));
            left.write(run.root)?;
        }
        if !self.problems.is_empty() {
            bail!(
                "a switch of cards that was killed or failed is not cleared up: {}",
                self.problems.join("; ")
            );
        }
        if is_undone && self.lock.is_some() {
            Progress::forget(run.root)?;
        }
        Ok(())
    }
}
