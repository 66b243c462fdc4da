//! systemd, by systemctl.

use std::time::{Duration, Instant};

use crate::command::Programs;
use crate::receipt::Told;
use crate::services::{Came, PATIENCE, done, failed, skipped};
use crate::settle::Outcome;

/// Between two looks at a unit that is to end.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) struct Systemd<'a> {
    pub(crate) programs: &'a Programs,
}

impl Systemd<'_> {
    pub(crate) fn call(&self, verb: &str, rest: &[&str]) -> Result<(), String> {
        let argv = [&["systemctl", verb], rest].concat();
        self.programs.run(&argv, PATIENCE).map(drop).map_err(|error| error.to_string())
    }

    /// `is-active` ends with 0 for a unit that runs, or is about to (systemctl(1)).
    pub(crate) fn is_active(&self, unit: &str) -> bool {
        self.call("is-active", &["--quiet", unit]).is_ok()
    }

    /// When a unit began to run, in seconds since 1970; `None`: it does not run, or systemd does not tell.
    pub(crate) fn active_since(&self, unit: &str) -> Option<u64> {
        let argv = ["systemctl", "show", "--property=ActiveEnterTimestamp", "--timestamp=unix", unit];
        let output = self.programs.run(&argv, PATIENCE).ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().strip_prefix("ActiveEnterTimestamp=@")?.parse().ok()
    }

    pub(crate) fn reload(&self, unit: &str) -> Came {
        if !self.is_active(unit) {
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

    /// Which run of a unit this is; empty where systemd does not tell.
    pub(crate) fn invocation(&self, unit: &str) -> String {
        let argv = ["systemctl", "show", "--property=InvocationID", unit];
        let Ok(output) = self.programs.run(&argv, PATIENCE) else { return String::new() };
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().strip_prefix("InvocationID=").unwrap_or_default().to_owned()
    }

    /// Waits for a unit that was told to end, and starts it again when it has.
    pub(crate) fn wait(&self, unit: &str, signal: &str, told: &Told, patience: Duration) -> Came {
        let until = Instant::now() + patience;
        while self.is_active(unit) {
            if self.invocation(unit) != told.invocation {
                return done(format!("{unit} ended once its work was done, and somebody started it again"));
            }
            if Instant::now() >= until {
                return Came::Ended(
                    Outcome::Pending,
                    format!(
                        "{unit} was told to end once its work is done ({signal}) and is still at it: the next run of \
                         rocworker (apply, or undo once more) starts it again"
                    ),
                );
            }
            std::thread::sleep(PAUSE);
        }
        self.start(unit)
    }
}
