use std::path::PathBuf;

use clap::Args;
use engines::canary::probe::probe;
use root::Attributes;

use super::Outcome;
use super::output::print_text;
use super::session::{Misuse, absolute, caller};

/// What `doctor --canary` runs inside a container.
#[derive(Debug, Args)]
pub(crate) struct Probe {
    /// KFD's node
    #[arg(long, value_name = "NODE")]
    kfd: PathBuf,
    /// A render node that the container was given
    #[arg(long, value_name = "NODE")]
    render: PathBuf,
    /// The number of a device that it was not given
    #[arg(long, value_name = "MAJOR:MINOR", value_parser = number)]
    stranger: (u64, u64),
    /// Write the answer here instead of to stdout, of which an engine may lose the end
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
}

fn number(text: &str) -> Result<(u64, u64), Misuse> {
    let wrong = || Misuse(format!("{text} is not two numbers with a colon between them"));
    let (major, minor) = text.split_once(':').ok_or_else(wrong)?;
    Ok((major.parse().map_err(|_| wrong())?, minor.parse().map_err(|_| wrong())?))
}

pub(crate) fn run(args: &Probe) -> anyhow::Result<Outcome> {
    let answer = probe(&args.kfd, &args.render, args.stranger);
    let line = serde_json::to_string(&answer)? + "\n";
    match &args.into {
        None => print_text(&line)?,
        Some(file) => {
            caller()?.write(absolute(file)?, line.as_bytes(), Attributes { mode: 0o644, owner: None })?;
        }
    }
    Ok(Outcome::Done)
}
