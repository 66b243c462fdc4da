//! What changes make necessary: once, after all of them, only what is owed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use root::Root;
use serde::{Deserialize, Serialize};

use crate::command::Programs;
use crate::receipt::Pending;
use crate::work::Work;
use crate::{Effect, Error};

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a unit is waited for that was told to end once its work is done. It may take hours; what has not ended
/// by then is started by a later apply.
const DRAIN: Duration = Duration::from_secs(30);

/// Between two looks at a unit that is to end.
const PAUSE: Duration = Duration::from_millis(200);

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
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settled {
    #[serde(flatten)]
    pub effect: Effect,
    pub outcome: Outcome,
    /// In a sentence.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Done,
    /// There is nothing to do it to, or nothing that could.
    Skipped,
    /// It stays owed.
    Pending,
    Failed,
}

impl Work<'_> {
    /// Does what is owed and `only` says, as far as `services` may; what is not done stays owed and is told by status.
    ///
    /// # Errors
    /// When the receipt cannot be written.
    pub fn settle(
        &mut self,
        root: &Root,
        services: &Services<'_>,
        only: impl Fn(&Effect) -> bool,
    ) -> Result<Vec<Settled>, Error> {
        let mut settled = Vec::new();
        for pending in self.receipt().pending.clone().into_iter().filter(|it| only(&it.effect)) {
            let (outcome, text, draining) = services.run(root, &pending);
            let receipt = self.receipt_mut();
            match outcome {
                Outcome::Done | Outcome::Skipped => receipt.pending.retain(|it| it.effect != pending.effect),
                Outcome::Pending | Outcome::Failed => {
                    for it in receipt.pending.iter_mut().filter(|it| it.effect == pending.effect) {
                        it.draining = draining;
                    }
                }
            }
            settled.push(Settled { effect: pending.effect, outcome, text });
            self.save()?;
        }
        Ok(settled)
    }
}

type Came = (Outcome, String, bool);

fn done(text: impl Into<String>) -> Came {
    (Outcome::Done, text.into(), false)
}

fn skipped(text: impl Into<String>) -> Came {
    (Outcome::Skipped, text.into(), false)
}

impl Services<'_> {
    fn run(&self, root: &Root, pending: &Pending) -> Came {
        let Some(programs) = self.programs else {
            return skipped(format!("{}: not done beneath another root than /", pending.effect));
        };
        let systemd = Systemd { programs };
        // What sd_booted(3) asks.
        let booted = root.exists("/run/systemd/system");
        match &pending.effect {
            Effect::Udev { devices } if root.exists("/run/udev/control") => udev(root, programs, devices),
            Effect::Udev { .. } => skipped("udev does not run here: its rules count once it does"),
            Effect::SystemdReload if !booted => {
                skipped("systemd does not run here: nothing has to be read again")
            }
            Effect::SystemdReload => match programs.run(&["systemctl", "daemon-reload"], PATIENCE) {
                Ok(_) => done("systemd has read its units again"),
                Err(error) => (Outcome::Failed, error.to_string(), false),
            },
            Effect::Reload { unit } | Effect::Restart { unit, .. } if !booted => {
                skipped(format!("systemd does not run here: if {unit}'s program runs, restart it yourself"))
            }
            Effect::Reload { unit } => systemd.reload(unit),
            Effect::Restart { unit, .. }
                if !pending.draining && systemd.active_since(unit) > Some(pending.since) =>
            {
                done(format!("{unit} was restarted by somebody since"))
            }
            Effect::Restart { unit, .. } if self.restarts == Restarts::Never => (
                Outcome::Pending,
                format!("{unit} still runs with its old configuration: systemctl restart {unit}"),
                pending.draining,
            ),
            Effect::Restart { unit, drain: Some(signal) } if self.restarts == Restarts::Drain => {
                systemd.drain(unit, signal, pending.draining)
            }
            Effect::Restart { unit, .. } => systemd.restart(unit),
        }
    }
}

/// The devices are added, not changed: the system's own rules set a node's rights at no other event
/// (50-udev-default.rules), and what a rule that is gone had set would stay. They are named, so that nobody else's
/// node gets back what its owner changed by hand.
fn udev(root: &Root, programs: &Programs, devices: &[PathBuf]) -> Came {
    let there: Vec<&str> =
        devices.iter().filter(|device| root.exists(device)).filter_map(|device| device.to_str()).collect();
    let trigger = [&["udevadm", "trigger", "--action=add", "--settle"], there.as_slice()].concat();
    let reloaded = programs.run(&["udevadm", "control", "--reload"], PATIENCE);
    let ran = match there.as_slice() {
        // Without a name udevadm would take every device of the machine.
        [] => reloaded,
        _ => reloaded.and_then(|_| programs.run(&trigger, PATIENCE)),
    };
    match ran {
        Ok(_) => done(format!("udev has read its rules again and applied them to {} devices", there.len())),
        Err(error) => (Outcome::Failed, error.to_string(), false),
    }
}

struct Systemd<'a> {
    programs: &'a Programs,
}

impl Systemd<'_> {
    fn call(&self, verb: &str, rest: &[&str]) -> Result<(), String> {
        let argv = [&["systemctl", verb], rest].concat();
        self.programs.run(&argv, PATIENCE).map(drop).map_err(|error| error.to_string())
    }

    /// `is-active` ends with 0 for a unit that runs, or is about to (systemctl(1)).
    fn is_active(&self, unit: &str) -> bool {
        self.call("is-active", &["--quiet", unit]).is_ok()
    }

    /// When a unit began to run, in seconds since 1970; `None`: it does not run, or systemd does not tell.
    fn active_since(&self, unit: &str) -> Option<u64> {
        let argv = ["systemctl", "show", "--property=ActiveEnterTimestamp", "--timestamp=unix", unit];
        let output = self.programs.run(&argv, PATIENCE).ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().strip_prefix("ActiveEnterTimestamp=@")?.parse().ok()
    }

    fn reload(&self, unit: &str) -> Came {
        if !self.is_active(unit) {
            return skipped(format!("{unit} does not run"));
        }
        match self.call("reload", &[unit]) {
            Ok(()) => done(format!("{unit} has read its configuration again")),
            Err(error) => (Outcome::Failed, error, false),
        }
    }

    fn restart(&self, unit: &str) -> Came {
        match self.call("try-restart", &[unit]) {
            Ok(()) => done(format!("{unit} was restarted, if it ran")),
            Err(error) => (Outcome::Failed, error, false),
        }
    }

    /// Tells a unit to end once its work is done, and starts it again when it has ended. `draining`: it was told
    /// by an earlier run.
    fn drain(&self, unit: &str, signal: &str, draining: bool) -> Came {
        if !draining {
            if !self.is_active(unit) {
                return skipped(format!("{unit} does not run"));
            }
            if let Err(error) = self.call("kill", &["--kill-who=main", &format!("--signal={signal}"), unit]) {
                return (Outcome::Failed, error, false);
            }
        }
        let until = Instant::now() + DRAIN;
        while self.is_active(unit) {
            if Instant::now() >= until {
                let text = format!(
                    "{unit} was told to end once its work is done ({signal}) and is still at it: the next rocworker \
                     apply starts it again"
                );
                return (Outcome::Pending, text, true);
            }
            std::thread::sleep(PAUSE);
        }
        match self.call("start", &[unit]) {
            Ok(()) => done(format!("{unit} ended once its work was done and was started again")),
            Err(error) => (Outcome::Failed, error, true),
        }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests lay out a stand-in for udevadm")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What a stand-in for udevadm is called with, a line a call, on a machine that has these devices.
    fn called(devices: &[&str], there: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let program = folder.path().join("udevadm");
        fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n", said.display())).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        for device in there {
            fs::create_dir_all(folder.path().join(device.trim_start_matches('/'))).unwrap();
        }
        let programs = Programs::in_folders(folder.path());
        let devices: Vec<PathBuf> = devices.iter().map(PathBuf::from).collect();
        let (outcome, text, _) = udev(&Root::open(folder.path()).unwrap(), &programs, &devices);
        assert_eq!(outcome, Outcome::Done, "{text}");
        fs::read_to_string(said).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn udev_reads_its_rules_and_adds_the_devices_that_are_there_and_no_others() {
        let [kfd, render] = ["/sys/class/kfd/kfd", "/sys/class/drm/renderD128"];
        let trigger = format!("trigger --action=add --settle {kfd} {render}");
        assert_eq!(called(&[kfd, render], &[kfd, render]), ["control --reload", trigger.as_str()]);
        let trigger = format!("trigger --action=add --settle {kfd}");
        assert_eq!(called(&[kfd, render], &[kfd]), ["control --reload", trigger.as_str()]);
        // Without a name it would go over every device of the machine.
        assert_eq!(called(&[kfd], &[]), ["control --reload"]);
        assert_eq!(called(&[], &[]), ["control --reload"]);
    }
}
