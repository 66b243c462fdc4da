//! Which commands change this machine, and so need root.

use std::path::Path;

use clap::{ArgMatches, CommandFactory as _};
use printable::quoted;

use super::args::{Args, Command as Asked, Person, Script};
use super::options::{Format, Options};
use super::words::words;
use super::{cdi, lease, partition};

/// Refuses, before anything else is done, to change this machine for a user who may not.
pub(crate) fn require_root(options: &Options, command: &Asked, matches: &ArgMatches) -> anyhow::Result<()> {
    let changes = match command {
        Asked::Person(Person::Apply { dry_run, .. } | Person::Undo { dry_run, .. }) => !dry_run,
        Asked::Person(Person::Cdi(cdi::Command::Generate { file: None })) => true,
        Asked::Person(Person::Lease(lease::Command::Release { .. } | lease::Command::Cancel { .. })) => true,
        Asked::Person(Person::Partition(partition::Command::Set(_) | partition::Command::Reset(_))) => true,
        Asked::Person(Person::Serve) | Asked::Script(Script::Boot | Script::BootPartitions) => true,
        _ => false,
    };
    if !changes || options.root != Path::new("/") || nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let words = words(&Args::command(), matches)?;
    let asked = words.join(" ");
    let config = options.config.iter().flat_map(|path| ["--config".to_owned(), path.display().to_string()]);
    let output = Some(options.output).filter(|output| *output != Format::Table);
    let output = output.into_iter().flat_map(|output| ["-o", output.name()].map(str::to_owned));
    let verbose = (0..options.verbose).map(|_| "-v".to_owned());
    let line = config.chain(output).chain(verbose).chain(words).map(|word| quoted(&word));
    let line = line.collect::<Vec<_>>().join(" ");
    anyhow::bail!("{asked} changes this machine, which only root may: sudo rocworker {line}")
}
