//! Who does what changes make necessary: udev and systemd, as far as they may.

use std::time::Duration;

use root::Root;
use serde::{Deserialize, Serialize};

use crate::apt::{self, Hands};
use crate::command::Programs;
use crate::reboot::reboot;
use crate::receipt::{Pending, Receipt, Told};
use crate::settle::Outcome;
use crate::systemd::Systemd;
use crate::udev::udev;
use crate::uptime::Uptime;
use crate::{Ask, Effect};

/// How long a tool may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// How long a unit is waited for that was told to end once its work is done. It may take hours: what has not ended
/// by then is left to a unit of its own that waits.
pub const DRAIN: Duration = Duration::from_secs(30);

/// What is done with units whose configuration has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restarts {
    Never,
    /// Once their work is done.
    Drain,
    Now,
}

/// Who can do it.
#[derive(Debug, Clone, Copy)]
pub struct Services<'a> {
    /// `None` beneath another Root than `/`, where nothing is started.
    pub programs: Option<&'a Programs>,
    pub restarts: Restarts,
    /// How long a unit is waited for that was told to end once its work is done: [`DRAIN`].
    pub drain: Duration,
    /// What waits longer: a command that calls [`Services::wait_for_end`] and then settles what is owed to the unit
    /// that its last argument names. That argument is not in it.
    pub waiter: Option<&'a [String]>,
    /// Through which apt reads what repositories offer, whatever its configuration says: [`Hands::through`].
    pub proxy: Option<&'a str>,
}

/// What comes of one effect.
pub(crate) enum Came {
    Ended(Outcome, String),
    /// The unit is to be told to end, or was told: this is to be kept before it goes on.
    Tell(Told),
}

pub(crate) fn done(text: impl Into<String>) -> Came {
    Came::Ended(Outcome::Done, text.into())
}

pub(crate) fn skipped(text: impl Into<String>) -> Came {
    Came::Ended(Outcome::Skipped, text.into())
}

pub(crate) fn failed(text: impl Into<String>) -> Came {
    Came::Ended(Outcome::Failed, text.into())
}

impl Services<'_> {
    pub(crate) fn run(&self, root: &Root, pending: &Pending) -> Came {
        let Some(programs) = self.programs else {
            return skipped(format!("{}: not done beneath another root than /", pending.effect));
        };
        let systemd = Systemd { programs };
        let booted = is_booted(root);
        match &pending.effect {
            Effect::AptUpdate { source, uri, suite } => {
                let hands = Hands::of(programs, apt::DPKG_LOCK).through(self.proxy);
                apt::update(root, &hands, source, uri, suite)
            }
            Effect::Reboot { reason, .. } => reboot(root, reason, pending),
            Effect::Udev { devices } if root.exists("/run/udev/control") => udev(root, programs, devices),
            Effect::Udev { .. } => skipped("udev does not run here: its rules count once it does"),
            Effect::SystemdReload if !booted => {
                skipped("systemd does not run here: nothing has to be read again")
            }
            Effect::SystemdReload => match programs.run(&["systemctl", "daemon-reload"], PATIENCE) {
                Ok(_) => done("systemd has read its units again"),
                Err(error) => failed(error.to_string()),
            },
            Effect::Start { unit } | Effect::Stop { unit } if !booted => {
                skipped(format!("systemd does not run here: {unit} is neither started nor stopped"))
            }
            Effect::Start { unit } => systemd.run_anew(unit, pending, Uptime::now(root).as_ref()),
            Effect::Stop { unit } => systemd.stop(unit),
            Effect::Reload { unit } | Effect::Restart { unit, .. } | Effect::NextStart { unit, .. }
                if !booted =>
            {
                skipped(format!("systemd does not run here: if {unit}'s program runs, restart it yourself"))
            }
            Effect::Reload { unit } => systemd.reload(unit),
            Effect::NextStart { unit, ask } => self.next_start(root, &systemd, unit, ask.as_ref(), pending),
            Effect::Restart { unit, drain } => self.restart(root, &systemd, unit, drain.as_deref(), pending),
        }
    }

    /// Why an effect would still be pending after [`crate::Work::settle`], as far as that can be told before: nobody may restart
    /// the unit.
    #[must_use]
    pub fn would_wait(&self, root: &Root, effect: &Effect) -> Option<String> {
        let programs = self.programs.filter(|_| is_booted(root))?;
        let (name, may) = match effect {
            Effect::Restart { unit, .. } => (unit, self.restarts != Restarts::Never),
            Effect::NextStart { unit, ask } => (unit, self.may_restart(programs, ask.as_ref())),
            _ => return None,
        };
        let runs = Systemd { programs }.unit(name).is_ok_and(|unit| !unit.has_ended());
        (runs && !may).then(|| {
            format!(
                "`restart` does not allow restarting {name}, which still uses the wrapper. Run `rocworker undo`, then \
                 `systemctl restart {name}`."
            )
        })
    }

    fn may_restart(&self, programs: &Programs, ask: Option<&Ask>) -> bool {
        match self.restarts {
            Restarts::Now => true,
            Restarts::Drain => ask.is_some_and(|ask| says_yes(programs, ask)),
            Restarts::Never => false,
        }
    }

    fn next_start(
        &self,
        root: &Root,
        systemd: &Systemd<'_>,
        name: &str,
        ask: Option<&Ask>,
        pending: &Pending,
    ) -> Came {
        let unit = match systemd.unit(name) {
            Ok(unit) => unit,
            Err(error) => return failed(error),
        };
        if unit.has_ended() {
            return skipped(format!("{name} does not run"));
        }
        if unit.began_after(pending, Uptime::now(root).as_ref()) {
            return done(format!("{name} was restarted by somebody since"));
        }
        if self.may_restart(systemd.programs, ask) && !unit.is_on_its_way() {
            return systemd.restart(name);
        }
        Came::Ended(
            Outcome::Pending,
            format!(
                "{name} takes it in at its next start, which would end what runs there: systemctl restart {name} when \
                 it may"
            ),
        )
    }

    fn restart(
        &self,
        root: &Root,
        systemd: &Systemd<'_>,
        name: &str,
        drain: Option<&str>,
        pending: &Pending,
    ) -> Came {
        let unit = match systemd.unit(name) {
            Ok(unit) => unit,
            Err(error) => return failed(error),
        };
        let told = pending.told.clone().filter(|told| !unit.runs() || unit.invocation == told.invocation);
        match (told, drain) {
            // Whatever may be restarted now: it ended because it was told to.
            (Some(_), _) if unit.has_ended() => systemd.start(name),
            (None, _) if unit.has_ended() => skipped(format!("{name} does not run")),
            (None, _) if unit.began_after(pending, Uptime::now(root).as_ref()) => {
                done(format!("{name} was restarted by somebody since"))
            }
            (None, _) if unit.is_on_its_way() => Came::Ended(
                Outcome::Pending,
                format!(
                    "{name} is just being started or stopped: the next apply sees by which configuration it runs"
                ),
            ),
            (told, _) if self.restarts == Restarts::Never => Came::Ended(
                Outcome::Pending,
                match told {
                    Some(_) => format!("{name} was told to end once its work is done, and is still at it"),
                    None => format!("{name} still runs with its old configuration: systemctl restart {name}"),
                },
            ),
            (told, Some(_)) if self.restarts == Restarts::Drain => {
                Came::Tell(told.unwrap_or(Told { invocation: unit.invocation, sent: false }))
            }
            _ => systemd.restart(name),
        }
    }

    /// What is waited for with a unit that was told to end; `None` where nothing is.
    pub(crate) fn waits(&self, effect: &Effect, told: &Told) -> Option<String> {
        let Effect::Restart { unit, drain: Some(signal) } = effect else { return None };
        let limit = self.drain.as_secs();
        (told.sent && limit > 0).then(|| {
            format!(
                "waiting up to {limit} s for {unit}, which was told to end once its work is done ({signal})"
            )
        })
    }

    /// Goes on with a unit of which it is kept that it was, or is to be, told to end once its work is done.
    pub(crate) fn drain(&self, effect: &Effect, told: Told) -> Came {
        let (Some(programs), Effect::Restart { unit, drain: Some(signal) }) = (self.programs, effect) else {
            return skipped(format!("{effect}: nothing to wait for"));
        };
        let systemd = Systemd { programs };
        if told.sent {
            return systemd.wait(unit, signal, &told, self.drain, self.waiter);
        }
        match systemd.call("kill", &["--kill-who=main", &format!("--signal={signal}"), unit]) {
            Ok(()) => Came::Tell(Told { sent: true, ..told }),
            Err(error) => failed(error),
        }
    }
}

/// Whether systemd runs the machine: what sd_booted(3) asks.
fn is_booted(root: &Root) -> bool {
    root.exists("/run/systemd/system")
}

/// Who does not answer does not say yes.
fn says_yes(programs: &Programs, ask: &Ask) -> bool {
    let argv: Vec<&str> = ask.argv.iter().map(String::as_str).collect();
    let answer = programs.run(&argv, PATIENCE);
    answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).trim() == ask.yes)
}

impl Services<'_> {
    /// Waits, for hours if need be, until a unit that was told to end once its work is done has ended. The effect that
    /// can be settled then; `None` when it was told nothing, or nothing can be asked here.
    ///
    /// # Errors
    /// In a sentence, when systemd does not tell of it.
    pub fn wait_for_end(&self, receipt: &Receipt, unit: &str) -> Result<Option<Effect>, String> {
        let is_meant =
            |effect: &Effect| matches!(effect, Effect::Restart { unit: named, .. } if named == unit);
        let pending = receipt.pending.iter().find(|pending| is_meant(&pending.effect));
        let (Some(programs), Some(Pending { effect, told: Some(told), .. })) = (self.programs, pending)
        else {
            return Ok(None);
        };
        Systemd { programs }.wait_for_end(unit, told)?;
        Ok(Some(effect.clone()))
    }

    /// What will be done for an effect, as a plan announces it.
    #[must_use]
    pub fn announce(&self, effect: &Effect) -> String {
        match (effect, self.restarts) {
            _ if self.programs.is_none() => format!("{effect} (not beneath another root than /)"),
            (Effect::Restart { unit, .. }, Restarts::Never) => {
                format!("{unit} is not restarted (restart: never)")
            }
            (Effect::Restart { unit, drain: Some(_) }, Restarts::Now) => {
                format!("systemctl restart {unit}, whatever it is doing (restart: now)")
            }
            (Effect::NextStart { unit, .. }, Restarts::Never) => {
                format!("{unit} takes it in at its next start (restart: never)")
            }
            (Effect::NextStart { unit, .. }, Restarts::Now) => {
                format!("systemctl restart {unit} (restart: now)")
            }
            _ => effect.to_string(),
        }
    }
}
