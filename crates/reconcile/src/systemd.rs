//! systemd, by systemctl.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::command::Programs;
use crate::receipt::{Pending, Told};
use crate::services::{Came, PATIENCE, done, failed, skipped};
use crate::settle::Outcome;
use crate::uptime::Uptime;

/// Between two looks at a unit that is to end.
const PAUSE: Duration = Duration::from_millis(200);

/// The same, for whoever waits for hours and cannot wait for a process.
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// What systemd is asked about a unit; of all of these there is a line for every unit, loaded or not.
const PROPERTIES: &str =
    "--property=ActiveState,ActiveEnterTimestamp,ActiveEnterTimestampMonotonic,InvocationID,MainPID";

pub(crate) struct Systemd<'a> {
    pub(crate) programs: &'a Programs,
}

/// A unit at one moment (org.freedesktop.systemd1(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    state: String,
    /// Seconds since 1970 at which it began to run, last.
    since: Option<u64>,
    /// The same in microseconds of CLOCK_MONOTONIC.
    since_us: Option<u64>,
    /// Which run of it this is; empty where there is none, or systemd does not tell.
    pub(crate) invocation: String,
    main: Option<i32>,
}

impl Unit {
    fn parse(said: &str) -> Self {
        let mut unit = Self::default();
        for (key, value) in said.lines().filter_map(|line| line.split_once('=')) {
            match key {
                "ActiveState" => value.clone_into(&mut unit.state),
                "ActiveEnterTimestamp" => unit.since = value.strip_prefix('@').and_then(|it| it.parse().ok()),
                "ActiveEnterTimestampMonotonic" => unit.since_us = value.parse().ok(),
                "InvocationID" => value.clone_into(&mut unit.invocation),
                "MainPID" => unit.main = value.parse().ok().filter(|pid| *pid > 0),
                _ => {}
            }
        }
        unit
    }

    /// Whether it runs, or is about to: by the configuration that it found when it began.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state.as_str(), "active" | "reloading" | "refreshing" | "activating")
    }

    /// Whether nothing of it is there any more. One that is being stopped is neither this nor running.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state.as_str(), "inactive" | "failed" | "")
    }

    /// Whether it runs by what was written before `pending` arose: somebody has started it since.
    pub(crate) fn began_after(&self, pending: &Pending, now: Option<&Uptime>) -> bool {
        if !self.runs() {
            return false;
        }
        match (&pending.uptime, now, self.since_us) {
            (Some(then), Some(now), _) if then.boot != now.boot => true,
            (Some(then), Some(_), Some(since)) => since > then.us,
            // Kept by a version that knew the clock of the day only.
            _ => self.since > Some(pending.since),
        }
    }
}

impl Systemd<'_> {
    pub(crate) fn call(&self, verb: &str, rest: &[&str]) -> Result<(), String> {
        let argv = [&["systemctl", verb], rest].concat();
        self.programs.run(&argv, PATIENCE).map(drop).map_err(|error| error.to_string())
    }

    /// What systemd says of a unit; one that it says nothing of does not run.
    pub(crate) fn unit(&self, name: &str) -> Unit {
        let argv = ["systemctl", "show", PROPERTIES, "--timestamp=unix", name];
        let said = self.programs.run(&argv, PATIENCE);
        said.map_or_else(|_| Unit::default(), |output| Unit::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    pub(crate) fn reload(&self, unit: &str) -> Came {
        if !self.unit(unit).runs() {
            return skipped(format!("{unit} does not run"));
        }
        match self.call("reload", &[unit]) {
            Ok(()) => done(format!("{unit} has read its configuration again")),
            Err(error) => failed(error),
        }
    }

    pub(crate) fn restart(&self, unit: &str) -> Came {
        match self.call("try-restart", &[unit]) {
            Ok(()) => done(format!("{unit} was restarted, if it ran")),
            Err(error) => failed(error),
        }
    }

    pub(crate) fn start(&self, unit: &str) -> Came {
        match self.call("start", &[unit]) {
            Ok(()) => done(format!("{unit} ended once its work was done and was started again")),
            Err(error) => failed(error),
        }
    }

    /// Waits for a unit that was told to end, and starts it again when it has. One that takes longer is left to
    /// `waiter`, a command that does what is owed to the unit whose name is its last argument.
    pub(crate) fn wait(
        &self,
        unit: &str,
        signal: &str,
        told: &Told,
        patience: Duration,
        waiter: Option<&[String]>,
    ) -> Came {
        let until = Instant::now() + patience;
        loop {
            let now = self.unit(unit);
            if now.has_ended() {
                return self.start(unit);
            }
            if now.runs() && now.invocation != told.invocation {
                return done(format!("{unit} ended once its work was done, and somebody started it again"));
            }
            if Instant::now() >= until {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        let waits =
            waiter.map_or_else(|| Err("nothing waits for it".to_owned()), |it| self.leave_to(it, unit));
        let who = match waits {
            Ok(waiter) => format!("{waiter} waits for it and starts it again"),
            Err(why) => {
                format!("the next run of rocworker (apply, or undo once more) starts it again ({why})")
            }
        };
        Came::Ended(
            Outcome::Pending,
            format!("{unit} was told to end once its work is done ({signal}) and is still at it: {who}"),
        )
    }

    /// Has systemd run `waiter` for a unit, as a unit of its own that is told by name. What it cannot do at once it
    /// tries again.
    fn leave_to(&self, waiter: &[String], unit: &str) -> Result<String, String> {
        let own = format!("rocworker-restart-{unit}");
        if self.unit(&own).runs() {
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

    /// Waits, for hours if need be, until the run of a unit that was told to end has ended, or another one is there.
    pub(crate) fn wait_for_end(&self, unit: &str, told: &Told) {
        loop {
            let now = self.unit(unit);
            if now.has_ended() || now.invocation != told.invocation {
                return;
            }
            let waited = now.main.is_some_and(waited_for);
            // Its main process has ended, and systemd is about to notice; or there is none to wait for.
            std::thread::sleep(if waited { PAUSE } else { LONG_PAUSE });
        }
    }
}

/// Waits until a process has ended; false where that cannot be told.
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
    use crate::Effect;

    /// As systemd 252 says it of a unit that ran and has ended.
    const ENDED: &str = "MainPID=0\nActiveState=inactive\nActiveEnterTimestamp=@1795316513\n\
                         ActiveEnterTimestampMonotonic=24058240467\nInvocationID=\n";

    #[test]
    fn what_has_ended_does_not_run_though_it_once_began() {
        let unit = Unit::parse(ENDED);
        assert!(unit.has_ended() && !unit.runs());
        assert_eq!(unit.since, Some(1_795_316_513));
        assert!(!unit.began_after(&pending(1, None), None));
        assert!(Unit::parse("").has_ended(), "a unit of which nothing is said");
    }

    fn pending(since: u64, uptime: Option<(&str, u64)>) -> Pending {
        let uptime = uptime.map(|(boot, us)| Uptime { boot: boot.to_owned(), us });
        Pending { effect: Effect::SystemdReload, since, uptime, told: None }
    }

    #[test]
    fn a_clock_that_is_set_makes_no_restart() {
        let unit =
            Unit::parse("ActiveState=active\nActiveEnterTimestamp=@5000\nActiveEnterTimestampMonotonic=70\n");
        let now = Uptime { boot: "this".to_owned(), us: 100 };
        for (then, began_after) in [
            (pending(9000, Some(("this", 60))), true),
            // The clock was set back after the file was written.
            (pending(1000, Some(("this", 80))), false),
            (pending(9000, Some(("another", 80))), true),
            (pending(1000, None), true),
            (pending(9000, None), false),
        ] {
            assert_eq!(unit.began_after(&then, Some(&now)), began_after, "{then:?}");
        }
    }
}
