//! `partition`: cards divided into devices.

mod device;
mod plan;
pub(super) mod set;
mod show;

use config::Partitions;
use inventory::partitioning::Entry;

use super::Outcome;
use super::session::{Misuse, Session};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Show each card's modes, what each combination of modes gives, and who uses the card
    Show,
    /// Say what setting a profile would do, step by step, and what it would stop
    Plan(plan::Args),
    /// Bring the cards into the modes of a profile, and read them back
    Set(set::Args),
    /// Restore the modes that the cards had before the first switch since the boot
    Reset(set::How),
    /// List the devices that the cards are divided into
    Devices,
    /// Print the variables with which a program outside of containers uses one device
    Env(device::EnvArgs),
    /// Say whether a language model fits into one device
    Fit(device::FitArgs),
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Show => show::run(session),
        Command::Plan(args) => plan::run(session, args),
        Command::Set(args) => set::run(session, args),
        Command::Reset(how) => set::reset(session, how),
        Command::Devices => device::devices(session),
        Command::Env(args) => device::env(session, args),
        Command::Fit(args) => device::fit(session, args),
    }
}

/// The profile that a person names, or that the configuration has for this machine.
pub(super) fn profile<'p>(
    partitions: &'p Partitions,
    named: Option<&str>,
) -> Result<(&'p str, &'p [Entry]), Misuse> {
    let name = named.or(partitions.profile.as_deref()).ok_or_else(|| {
        Misuse("name a profile: config.yaml has no partitions.profile (docs/partitions.md)".to_owned())
    })?;
    let found = partitions.profiles.get_key_value(name);
    found.map(|(name, entries)| (name.as_str(), entries.as_slice())).ok_or_else(|| {
        let known: Vec<&str> = partitions.profiles.keys().map(String::as_str).collect();
        Misuse(match &*known {
            [] => {
                format!("{name} is no profile: config.yaml has no partitions.profiles (docs/partitions.md)")
            }
            known => format!("{name} is no profile: config.yaml has {}", known.join(", ")),
        })
    })
}
