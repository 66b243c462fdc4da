//! Runs the effects of changes with udev and systemd, as far as the run may.

mod ran;
mod reboot;
mod systemd;
mod udev;

use std::time::Duration;

use root::Root;

use crate::apt::{self, PackageManager};
use crate::command::Programs;
use crate::model::{Ask, Effect, Restarts, Uptime};
use crate::receipt::{Draining, Pending, Receipt};

pub(crate) use ran::Came;
use ran::{PATIENCE, Ran, done, pending, skipped};
pub(crate) use reboot::unrecord;
use systemd::Systemd;

/// How long a run itself waits for a unit that it has asked to end after its work, which may take hours. After that
/// time a unit of rocworker's own waits in the run's place.
pub const DRAIN: Duration = Duration::from_secs(30);

/// Whether systemd runs the unit, or is about to.
///
/// # Errors
/// A sentence on why systemd cannot be asked or gives no state.
pub fn runs(programs: &Programs, unit: &str) -> Result<bool, String> {
    Ok(Systemd { programs, now: None }.unit(unit)?.runs())
}

/// Runs the effects of changes.
#[derive(Debug, Clone, Copy)]
pub struct Services<'a> {
    /// `None` beneath another Root than `/`, where nothing is started.
    pub programs: Option<&'a Programs>,
    pub restarts: Restarts,
    /// How long a run waits for a unit that it has asked to end after its work: [`DRAIN`].
    pub drain: Duration,
    /// The command that waits longer: it calls [`Services::wait_for_end`], and then settles what is pending
    /// for the unit. The unit's name is added as its last argument.
    pub waiter: Option<&'a [String]>,
    /// The proxy through which apt reads what repositories offer, whatever apt's configuration names:
    /// [`PackageManager::new`].
    pub proxy: Option<&'a str>,
}

impl Services<'_> {
    pub(crate) fn run(&self, root: &Root, due: &Pending) -> Result<Came, String> {
        let Some(programs) = self.programs else {
            return skipped(format!("{}: not done beneath another root than /", due.effect));
        };
        let systemd = Systemd { programs, now: Uptime::now(root) };
        let booted = is_booted(root);
        match &due.effect {
            Effect::AptUpdate { source, uri, suite } => {
                let manager = PackageManager::new(programs, apt::DPKG_LOCK, self.proxy);
                done(apt::update(root, &manager, source, uri, suite)?)
            }
            Effect::Reboot { reason, .. } => reboot::reboot(root, reason, due),
            Effect::Udev { devices } if root.exists("/run/udev/control") => {
                udev::udev(root, programs, devices)
            }
            Effect::Udev { .. } => skipped("udev does not run here: its rules count once it does"),
            Effect::SystemdReload if !booted => {
                skipped("systemd does not run here: nothing has to be read again")
            }
            Effect::SystemdReload => {
                systemd.call("daemon-reload", &[])?;
                done("systemd has read its units again")
            }
            Effect::Start { unit } | Effect::Stop { unit } if !booted => {
                skipped(format!("systemd does not run here: {unit} is neither started nor stopped"))
            }
            Effect::Start { unit } => systemd.run_anew(unit, due),
            Effect::Stop { unit } => systemd.stop(unit),
            Effect::Reload { unit } | Effect::Restart { unit, .. } | Effect::NextStart { unit, .. }
                if !booted =>
            {
                skipped(format!("systemd does not run here: if {unit}'s program runs, restart it yourself"))
            }
            Effect::Reload { unit } => systemd.reload(unit),
            Effect::NextStart { unit, ask } => self.next_start(&systemd, unit, ask.as_ref(), due),
            Effect::Restart { unit, drain } => self.restart(&systemd, unit, drain.as_deref(), due),
        }
    }

    /// Why an effect would still be pending after it was run, as far as that can be seen before: `restart` does not allow to
    /// restart the unit.
    #[must_use]
    pub fn would_wait(&self, root: &Root, effect: &Effect) -> Option<String> {
        let programs = self.programs.filter(|_| is_booted(root))?;
        let (name, may) = match effect {
            Effect::Restart { unit, .. } => (unit, self.restarts != Restarts::Never),
            Effect::NextStart { unit, ask } => (unit, self.may_restart(programs, ask.as_ref())),
            _ => return None,
        };
        let runs = Systemd { programs, now: None }.unit(name).is_ok_and(|unit| !unit.has_ended());
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

    fn next_start(&self, systemd: &Systemd<'_>, name: &str, ask: Option<&Ask>, due: &Pending) -> Ran {
        let unit = systemd.unit(name)?;
        if unit.has_ended() {
            return skipped(format!("{name} does not run"));
        }
        if unit.began_after(due, systemd.now.as_ref()) {
            return done(format!("{name} was restarted since"));
        }
        if self.may_restart(systemd.programs, ask) && !unit.is_on_its_way() {
            return systemd.restart(name);
        }
        pending(format!(
            "takes effect when {name} restarts, which would end what runs there: systemctl restart {name} when it may"
        ))
    }

    fn restart(&self, systemd: &Systemd<'_>, name: &str, drain: Option<&str>, due: &Pending) -> Ran {
        let unit = systemd.unit(name)?;
        let draining =
            due.draining.clone().filter(|draining| !unit.runs() || unit.invocation == draining.invocation);
        match (draining, drain) {
            // Whatever may be restarted now: it ended because of the signal.
            (Some(_), _) if unit.has_ended() => systemd.start(name),
            (None, _) if unit.has_ended() => skipped(format!("{name} does not run")),
            (None, _) if unit.began_after(due, systemd.now.as_ref()) => {
                done(format!("{name} was restarted since"))
            }
            (None, _) if unit.is_on_its_way() => pending(format!(
                "{name} is just being started or stopped: the next apply sees by which configuration it runs"
            )),
            (Some(_), _) if self.restarts == Restarts::Never => {
                pending(format!("rocworker asked {name} to end once its work is done, and it is still at it"))
            }
            (None, _) if self.restarts == Restarts::Never => {
                pending(format!("{name} still runs with its old configuration: systemctl restart {name}"))
            }
            (draining, Some(_)) if self.restarts == Restarts::Drain => {
                Ok(Came::Drain(draining.unwrap_or(Draining { invocation: unit.invocation, sent: false })))
            }
            _ => systemd.restart(name),
        }
    }

    /// A sentence on a unit for which a run waits after it got its signal to end; `None` where the run does
    /// not wait.
    pub(crate) fn waits(&self, effect: &Effect, draining: &Draining) -> Option<String> {
        let Effect::Restart { unit, drain: Some(signal) } = effect else { return None };
        let limit = self.drain.as_secs();
        (draining.sent && limit > 0).then(|| {
            format!(
                "waiting up to {limit} s for {unit}, which was told to end once its work is done ({signal})"
            )
        })
    }

    /// Continues with a unit that, by the receipt, got or is to get its signal to end once its work is done.
    pub(crate) fn drain(&self, effect: &Effect, draining: Draining) -> Result<Came, String> {
        let (Some(programs), Effect::Restart { unit, drain: Some(signal) }) = (self.programs, effect) else {
            return skipped(format!("{effect}: nothing to wait for"));
        };
        let systemd = Systemd { programs, now: None };
        if draining.sent {
            return systemd.wait(unit, signal, &draining, self.drain, self.waiter);
        }
        systemd.call("kill", &["--kill-who=main", &format!("--signal={signal}"), unit])?;
        Ok(Came::Drain(Draining { sent: true, ..draining }))
    }

    /// Waits, for hours if need be, until a unit that got its signal to end has ended. The effect that can be settled then;
    /// `None` when it got none, or nothing can be asked here.
    ///
    /// # Errors
    /// A sentence on why systemd does not answer.
    pub fn wait_for_end(&self, receipt: &Receipt, unit: &str) -> Result<Option<Effect>, String> {
        let is_meant =
            |effect: &Effect| matches!(effect, Effect::Restart { unit: named, .. } if named == unit);
        let pending = receipt.pending.iter().find(|pending| is_meant(&pending.effect));
        let (Some(programs), Some(Pending { effect, draining: Some(draining), .. })) =
            (self.programs, pending)
        else {
            return Ok(None);
        };
        Systemd { programs, now: None }.wait_for_end(unit, draining)?;
        Ok(Some(effect.clone()))
    }

    /// A plan's words for an effect.
    #[must_use]
    pub fn announce(&self, effect: &Effect) -> String {
        match (effect, self.restarts) {
            (Effect::Restart { unit, .. }, Restarts::Never) => {
                format!("{unit} is not restarted (restart: never)")
            }
            (Effect::Restart { unit, drain: Some(_) }, Restarts::Now) => {
                format!("systemctl restart {unit}, whatever it is doing (restart: now)")
            }
            (Effect::NextStart { unit, .. }, Restarts::Never) => {
                format!("takes effect when {unit} restarts (restart: never)")
            }
            (Effect::NextStart { unit, .. }, Restarts::Now) => {
                format!("systemctl restart {unit} (restart: now)")
            }
            _ => effect.to_string(),
        }
    }
}

/// Whether systemd runs the machine: the test of sd_booted(3).
fn is_booted(root: &Root) -> bool {
    root.exists("/run/systemd/system")
}

/// A program that does not answer does not say yes.
fn says_yes(programs: &Programs, ask: &Ask) -> bool {
    let argv: Vec<&str> = ask.argv.iter().map(String::as_str).collect();
    let answer = programs.run(&argv, PATIENCE);
    answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).trim() == ask.yes)
}
