use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Follows from a change, and runs once after all changes, in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "kebab-case")]
pub enum Effect {
    /// apt reads what a repository offers, before the first package is installed; where its source is gone, what it had
    /// read goes.
    AptUpdate {
        /// A file in /etc/apt/sources.list.d.
        source: PathBuf,
        /// The repository's address and suite as the source names them.
        uri: String,
        suite: String,
    },
    /// udev reads its rules again and applies them to these devices of /sys, as if each had just come. One that is not
    /// there any more is passed over.
    Udev { devices: Vec<PathBuf> },
    /// systemd reads its units again.
    SystemdReload,
    /// A unit of rocworker's own runs as it is written now.
    Start { unit: String },
    /// A unit of rocworker's own ends, for it has gone.
    Stop { unit: String },
    /// A unit reads its configuration again, and keeps running.
    Reload { unit: String },
    /// A unit begins anew, if it runs.
    Restart {
        unit: String,
        /// The signal on which it ends by itself once its work is done; without one it can be restarted at any
        /// time.
        drain: Option<String>,
    },
    /// A change takes effect only when the unit restarts, which would end what runs there. A person decides that;
    /// `status` shows it until then.
    NextStart {
        unit: String,
        /// The program that knows whether what runs there survives the restart after all: then the unit may
        /// restart at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Ask>,
    },
    /// The machine has to be restarted, which a person decides; `status` shows it until then.
    Reboot {
        /// "the driver that is built is not the one that is loaded".
        reason: String,
        /// The module that the new boot is to load: where a restart did not help, rocworker does not ask for
        /// it again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        module: Option<ModuleBuild>,
    },
}

/// A build of a kernel module, and the boot in which another one was loaded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModuleBuild {
    /// The version in dkms's spelling.
    pub version: String,
    pub kernel: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// A question to the program that runs: its file may say by now what it has not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ask {
    pub argv: Vec<String>,
    /// The program's output for "yes", without blanks around it.
    pub yes: String,
}

/// When units whose configuration has changed are restarted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Restarts {
    #[default]
    Never,
    /// A unit restarts once its work is done.
    Drain,
    Now,
}

/// An effect with its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settled {
    #[serde(flatten)]
    pub effect: Effect,
    pub outcome: Outcome,
    /// A sentence on the result.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Done,
    /// There was nothing to do: the unit does not run, or systemd or udev does not.
    Skipped,
    /// The effect stays pending.
    Pending,
    Failed,
}

impl Effect {
    /// Whether this effect makes a pending one obsolete: a start and a stop of one unit.
    pub(crate) fn replaces(&self, pending: &Self) -> bool {
        match (self, pending) {
            (Self::Start { unit }, Self::Stop { unit: other })
            | (Self::Stop { unit }, Self::Start { unit: other }) => unit == other,
            _ => false,
        }
    }
}

/// A plan's words for the effect.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AptUpdate { uri, suite, .. } => write!(f, "apt reads what {uri} offers for {suite}"),
            Self::Udev { devices } => match devices.as_slice() {
                [device] => write!(f, "apply udev's rules to {} again", device.display()),
                devices => write!(f, "apply udev's rules to {} devices again", devices.len()),
            },
            Self::Reboot { reason, .. } => write!(f, "the machine has to be restarted by you: {reason}"),
            Self::SystemdReload => f.write_str("systemctl daemon-reload"),
            Self::Start { unit } => write!(f, "systemctl restart {unit}, which is rocworker's own"),
            Self::Stop { unit } => write!(f, "systemctl stop {unit}"),
            Self::Reload { unit } => write!(f, "systemctl reload {unit}"),
            Self::NextStart { unit, ask: None } => write!(f, "takes effect when {unit} restarts"),
            Self::NextStart { unit, ask: Some(ask) } => {
                write!(
                    f,
                    "systemctl restart {unit}, if what runs there outlives it by `{}`",
                    ask.argv.join(" ")
                )
            }
            Self::Restart { unit, drain: None } => write!(f, "systemctl restart {unit}"),
            Self::Restart { unit, drain: Some(signal) } => {
                write!(f, "restart {unit}, once its work is done ({signal})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_unit_runs_is_what_came_last() {
        let [one, other] = ["a.service", "b.service"].map(|unit| {
            let unit = unit.to_owned();
            [Effect::Start { unit: unit.clone() }, Effect::Stop { unit }]
        });
        assert!(one[0].replaces(&one[1]) && one[1].replaces(&one[0]));
        assert!(!one[0].replaces(&one[0]) && !one[0].replaces(&other[1]), "the same, and another unit's");
        assert!(!other[0].replaces(&Effect::SystemdReload));
    }
}
