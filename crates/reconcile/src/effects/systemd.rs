//! systemd, by systemctl.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::ran::{PATIENCE, Ran, done, pending, skipped};
use crate::command::Programs;
use crate::model::Uptime;
use crate::receipt::{Draining, Pending};

/// The pause between two looks at a unit that is to end.
const PAUSE: Duration = Duration::from_millis(200);

/// The pause between two looks at a unit whose main process cannot be waited for: draining may take hours.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// Properties of a unit. `systemctl show` prints a line of each for every unit, loaded or not. Every release
/// in use knows them, and none of them depends on the format of times.
const PROPERTIES: &str = "--property=ActiveState,ActiveEnterTimestampMonotonic,InvocationID,MainPID";

pub(crate) struct Systemd<'a> {
    pub(crate) programs: &'a Programs,
    /// Distinguishes a unit that runs from one that was started since.
    pub(crate) now: Option<Uptime>,
}

/// A unit at one moment (org.freedesktop.systemd1(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    state: String,
    /// Microseconds of CLOCK_MONOTONIC at which it began to run, last.
    since_us: Option<u64>,
    /// The InvocationID of the unit's present run; empty where it does not run.
    pub(crate) invocation: String,
    main: Option<i32>,
}

impl Unit {
    /// What `systemctl show` printed; `None` where it printed no state.
    fn parse(shown: &str) -> Option<Self> {
        let mut unit = Self::default();
        for (key, value) in shown.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "ActiveState" => value.clone_into(&mut unit.state),
                "ActiveEnterTimestampMonotonic" => unit.since_us = value.parse().ok(),
                "InvocationID" => value.clone_into(&mut unit.invocation),
                "MainPID" => unit.main = value.parse().ok().filter(|pid| *pid > 0),
                _ => {}
            }
        }
        Some(unit).filter(|unit| !unit.state.is_empty())
    }

    /// Whether the unit runs, or is about to, with the configuration that it found at its start.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state.as_str(), "active" | "reloading" | "refreshing" | "activating")
    }

    /// Whether this process is the unit's main process.
    fn runs_us(&self) -> bool {
        self.main.and_then(|main| u32::try_from(main).ok()) == Some(std::process::id())
    }

    /// Whether the unit has ended. A unit that is being stopped has not, and does not run.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "inactive" | "failed")
    }

    /// Whether it is open with which configuration the unit will run.
    pub(crate) fn is_on_its_way(&self) -> bool {
        matches!(self.state.as_str(), "activating" | "deactivating")
    }

    /// Whether the unit was started since `pending` arose, and so runs with what was written before.
    pub(crate) fn began_after(&self, pending: &Pending, now: Option<&Uptime>) -> bool {
        if !self.runs() {
            return false;
        }
        match (&pending.uptime, now, self.since_us) {
            (Some(then), Some(now), _) if then.boot != now.boot => true,
            (Some(then), Some(_), Some(since)) => since > then.us,
            // Not known: a restart too many is better than one too few.
            _ => false,
        }
    }
}

impl Systemd<'_> {
    pub(crate) fn call(&self, verb: &str, rest: &[&str]) -> Result<(), String> {
        let argv = [&["systemctl", verb], rest].concat();
        self.programs.run(&argv, PATIENCE).map(drop).map_err(|error| error.to_string())
    }

    /// Asks systemd for a unit's state.
    ///
    /// # Errors
    /// A sentence on why systemd cannot be asked or gives no state: the unit may still run.
    pub(crate) fn unit(&self, name: &str) -> Result<Unit, String> {
        let argv = ["systemctl", "show", PROPERTIES, name];
        let output = self.programs.run(&argv, PATIENCE).map_err(|error| error.to_string())?;
        Unit::parse(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| format!("{}: it did not say whether {name} runs", argv.join(" ")))
    }

    pub(crate) fn reload(&self, name: &str) -> Ran {
        let unit = self.unit(name)?;
        if unit.is_on_its_way() {
            return pending(format!(
                "{name} is just being started or stopped: the next apply has it read its configuration again"
            ));
        }
        if !unit.runs() {
            return skipped(format!("{name} does not run"));
        }
        self.call("reload", &[name])?;
        done(format!("{name} has read its configuration again"))
    }

    pub(crate) fn restart(&self, unit: &str) -> Ran {
        self.call("try-restart", &[unit])?;
        done(format!("{unit} was restarted, if it ran"))
    }

    /// Has a unit run by what is written now, whether it runs or not. Whoever is run by that unit does not wait for its
    /// own end.
    pub(crate) fn run_anew(&self, name: &str, due: &Pending) -> Ran {
        let unit = self.unit(name)?;
        if unit.began_after(due, self.now.as_ref()) {
            return done(format!("{name} was started since"));
        }
        let rest = if unit.runs_us() { &["--no-block", name][..] } else { &[name][..] };
        self.call("restart", rest)?;
        done(format!("{name} was started"))
    }

    pub(crate) fn stop(&self, name: &str) -> Ran {
        let unit = self.unit(name)?;
        if unit.has_ended() {
            return skipped(format!("{name} does not run"));
        }
        let rest = if unit.runs_us() { &["--no-block", name][..] } else { &[name][..] };
        self.call("stop", rest)?;
        done(format!("{name} was stopped"))
    }

    pub(crate) fn start(&self, unit: &str) -> Ran {
        self.call("start", &[unit])?;
        done(format!("{unit} ended once its work was done and was started again"))
    }

    /// Waits for a unit that got its signal to end, and starts it again when it has. One that takes longer, or whose waiting
    /// is killed, is left to `waiter`. That command does what is pending for the unit that its last argument names.
    pub(crate) fn wait(
        &self,
        unit: &str,
        signal: &str,
        draining: &Draining,
        patience: Duration,
        waiter: Option<&[String]>,
    ) -> Ran {
        let waits =
            waiter.map_or_else(|| Err("nothing waits for it".to_owned()), |it| self.leave_to(it, unit));
        let until = Instant::now() + patience;
        loop {
            let now = self.unit(unit)?;
            if now.has_ended() {
                return self.start(unit);
            }
            if now.runs() && now.invocation != draining.invocation {
                return done(format!("{unit} ended once its work was done, and was started again since"));
            }
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        let who = match waits {
            Ok(waiter) => format!("{waiter} waits for it and starts it again"),
            Err(why) => {
                format!("the next run of rocworker (apply, or undo once more) starts it again ({why})")
            }
        };
        pending(format!(
            "rocworker asked {unit} to end once its work is done ({signal}), and it is still at it: {who}"
        ))
    }

    /// Has systemd run `waiter` for a unit, as a unit of its own with a name. What it cannot do at once it
    /// tries again.
    fn leave_to(&self, waiter: &[String], unit: &str) -> Result<String, String> {
        let own = format!("rocworker-restart-{unit}");
        if self.unit(&own)?.runs() {
            return Ok(own);
        }
        let name = format!("--unit={own}");
        let what = format!("--description=Start {unit} again once its work is done");
        let mut argv =
            vec!["systemd-run", "--quiet", "--collect", "--no-block", "--property=Restart=on-failure"];
        argv.extend(["--property=RestartSec=30", &name, &what, "--"]);
        argv.extend(waiter.iter().map(String::as_str));
        argv.push(unit);
        self.programs.run(&argv, PATIENCE).map(|_| own).map_err(|error| error.to_string())
    }

    /// Waits, for hours if need be, until the run of a unit that got its signal to end has ended, or another one is there.
    ///
    /// # Errors
    /// Fails where [`Systemd::unit`] fails.
    pub(crate) fn wait_for_end(&self, unit: &str, draining: &Draining) -> Result<(), String> {
        loop {
            let now = self.unit(unit)?;
            if now.has_ended() || (now.runs() && now.invocation != draining.invocation) {
                return Ok(());
            }
            let waited = now.main.is_some_and(waited_for);
            // The unit's main process has ended, which systemd has not noticed yet; or there is none to wait
            // for.
            std::thread::sleep(if waited { PAUSE } else { LONG_PAUSE });
        }
    }
}

/// Waits until a process has ended; false where that cannot be seen.
fn waited_for(pid: i32) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(pid) else { return false };
    match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
        Ok(fd) => poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).is_ok(),
        Err(rustix::io::Errno::SRCH) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Effect;

    /// The output of systemd 252 for a unit that ran and has ended.
    const ENDED: &str =
        "MainPID=0\nActiveState=inactive\nActiveEnterTimestampMonotonic=24058240467\nInvocationID=\n";

    #[test]
    fn what_has_ended_does_not_run_though_it_once_began() {
        let unit = Unit::parse(ENDED).unwrap();
        assert!(unit.has_ended() && !unit.runs());
        assert_eq!(unit.since_us, Some(24_058_240_467));
        assert!(!unit.began_after(&pending(Some(("this", 1))), Some(&now())));
        assert_eq!(Unit::parse(""), None, "nothing was said of it");
    }

    fn pending(uptime: Option<(&str, u64)>) -> Pending {
        let uptime = uptime.map(|(boot, us)| Uptime { boot: boot.to_owned(), us });
        Pending { effect: Effect::SystemdReload, since: 1, uptime, draining: None }
    }

    fn now() -> Uptime {
        Uptime { boot: "this".to_owned(), us: 100 }
    }

    #[test]
    fn the_boot_and_its_clock_say_whether_a_unit_began_later() {
        let unit = Unit::parse("ActiveState=active\nActiveEnterTimestampMonotonic=70\n").unwrap();
        for (then, began_after) in [
            (Some(("this", 60)), true),
            (Some(("this", 80)), false),
            (Some(("another", 80)), true),
            (None, false),
        ] {
            assert_eq!(unit.began_after(&pending(then), Some(&now())), began_after, "{then:?}");
        }
    }
}
