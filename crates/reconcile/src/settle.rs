//! What changes make necessary: once, after all of them, only what is owed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use root::Root;
use serde::{Deserialize, Serialize};

use crate::command::Programs;
use crate::receipt::{Pending, Told};
use crate::work::Work;
use crate::{Effect, Error};

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long a unit is waited for that was told to end once its work is done. It may take hours; what has not ended
/// by then is started by a later apply.
pub const DRAIN: Duration = Duration::from_secs(30);

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
    /// How long a unit is waited for that was told to end once its work is done: [`DRAIN`].
    pub drain: Duration,
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
            let mut came = services.run(root, &pending);
            // Kept before the signal and after it: whoever ends this while it waits must not leave a unit that has
            // ended for nobody to start.
            while let Came::Tell(told) = came {
                for it in self.receipt_mut().pending.iter_mut().filter(|it| it.effect == pending.effect) {
                    it.told = Some(told.clone());
                }
                self.save()?;
                came = services.drain(&pending.effect, told);
            }
            let Came::Ended(outcome, text) = came else { continue };
            let receipt = self.receipt_mut();
            if matches!(outcome, Outcome::Done | Outcome::Skipped) {
                receipt.pending.retain(|it| it.effect != pending.effect);
            }
            for it in receipt.pending.iter_mut().filter(|it| it.effect == pending.effect) {
                // It was not told: when it is stopped, that is somebody's decision.
                it.told = it.told.take().filter(|told| told.sent);
            }
            settled.push(Settled { effect: pending.effect, outcome, text });
            self.save()?;
        }
        Ok(settled)
    }
}

/// What comes of one effect.
enum Came {
    Ended(Outcome, String),
    /// The unit is to be told to end, or was told: this is to be kept before it goes on.
    Tell(Told),
}

fn done(text: impl Into<String>) -> Came {
    Came::Ended(Outcome::Done, text.into())
}

fn skipped(text: impl Into<String>) -> Came {
    Came::Ended(Outcome::Skipped, text.into())
}

fn failed(text: impl Into<String>) -> Came {
    Came::Ended(Outcome::Failed, text.into())
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
                Err(error) => failed(error.to_string()),
            },
            Effect::Reload { unit } | Effect::Restart { unit, .. } if !booted => {
                skipped(format!("systemd does not run here: if {unit}'s program runs, restart it yourself"))
            }
            Effect::Reload { unit } => systemd.reload(unit),
            Effect::Restart { unit, drain } => self.restart(&systemd, unit, drain.as_deref(), pending),
        }
    }

    fn restart(&self, systemd: &Systemd<'_>, unit: &str, drain: Option<&str>, pending: &Pending) -> Came {
        let is_active = systemd.is_active(unit);
        let told =
            pending.told.clone().filter(|told| !is_active || systemd.invocation(unit) == told.invocation);
        match (told, drain) {
            // Whatever may be restarted now: it ended because it was told to.
            (Some(_), _) if !is_active => systemd.start(unit),
            (None, _) if systemd.active_since(unit) > Some(pending.since) => {
                done(format!("{unit} was restarted by somebody since"))
            }
            (told, _) if self.restarts == Restarts::Never => Came::Ended(
                Outcome::Pending,
                match told {
                    Some(_) => format!("{unit} was told to end once its work is done, and is still at it"),
                    None => format!("{unit} still runs with its old configuration: systemctl restart {unit}"),
                },
            ),
            (None, Some(_)) if self.restarts == Restarts::Drain && !is_active => {
                skipped(format!("{unit} does not run"))
            }
            (told, Some(_)) if self.restarts == Restarts::Drain => {
                Came::Tell(told.unwrap_or_else(|| Told { invocation: systemd.invocation(unit), sent: false }))
            }
            _ => systemd.restart(unit),
        }
    }

    /// Goes on with a unit of which it is kept that it was, or is to be, told to end once its work is done.
    fn drain(&self, effect: &Effect, told: Told) -> Came {
        let (Some(programs), Effect::Restart { unit, drain: Some(signal) }) = (self.programs, effect) else {
            return skipped(format!("{effect}: nothing to wait for"));
        };
        let systemd = Systemd { programs };
        if told.sent {
            return systemd.wait(unit, signal, &told, self.drain);
        }
        match systemd.call("kill", &["--kill-who=main", &format!("--signal={signal}"), unit]) {
            Ok(()) => Came::Tell(Told { sent: true, ..told }),
            Err(error) => failed(error),
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
        Err(error) => failed(error.to_string()),
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
            Err(error) => failed(error),
        }
    }

    fn restart(&self, unit: &str) -> Came {
        match self.call("try-restart", &[unit]) {
            Ok(()) => done(format!("{unit} was restarted, if it ran")),
            Err(error) => failed(error),
        }
    }

    fn start(&self, unit: &str) -> Came {
        match self.call("start", &[unit]) {
            Ok(()) => done(format!("{unit} ended once its work was done and was started again")),
            Err(error) => failed(error),
        }
    }

    /// Which run of a unit this is; empty where systemd does not tell.
    fn invocation(&self, unit: &str) -> String {
        let argv = ["systemctl", "show", "--property=InvocationID", unit];
        let Ok(output) = self.programs.run(&argv, PATIENCE) else { return String::new() };
        let said = String::from_utf8_lossy(&output.stdout);
        said.trim().strip_prefix("InvocationID=").unwrap_or_default().to_owned()
    }

    /// Waits for a unit that was told to end, and starts it again when it has.
    fn wait(&self, unit: &str, signal: &str, told: &Told, patience: Duration) -> Came {
        let until = Instant::now() + patience;
        while self.is_active(unit) {
            if self.invocation(unit) != told.invocation {
                return done(format!("{unit} ended once its work was done, and somebody started it again"));
            }
            if Instant::now() >= until {
                return Came::Ended(
                    Outcome::Pending,
                    format!(
                        "{unit} was told to end once its work is done ({signal}) and is still at it: the next rocworker \
                         apply starts it again"
                    ),
                );
            }
            std::thread::sleep(PAUSE);
        }
        self.start(unit)
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
        let came = udev(&Root::open(folder.path()).unwrap(), &programs, &devices);
        assert!(matches!(came, Came::Ended(Outcome::Done, _)));
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
