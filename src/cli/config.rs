use std::path::{Path, PathBuf};

use clap::Subcommand;
use config::{ClusterBloom, Config};
use printable::printable;
use serde::Serialize;

use super::Outcome;
use super::session::{Session, absolute, caller};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read a configuration and say whether rocworker can follow it; changes nothing
    Validate {
        /// A path of this machine, also with --root; the configuration that apply would read unless given
        file: Option<PathBuf>,
    },
}

#[derive(Serialize)]
struct Answer {
    schema_version: u32,
    path: PathBuf,
    valid: bool,
    /// Why it is not valid, with its line.
    problem: Option<String>,
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    let Command::Validate { file } = command;
    let path = match file {
        Some(file) => absolute(file)?,
        None => session.config_file()?.path(&session.root),
    };
    let read = read(session, file.as_deref());
    let problem = read.as_ref().err().map(|error| format!("{error:#}"));
    let answer = Answer { schema_version: 1, path, valid: problem.is_none(), problem };
    // main prints the error, once.
    if session.format.is_json() || answer.valid {
        session.format.print(&answer, || shown(&answer, file.is_none()))?;
    }
    read.map(|_| Outcome::Done)
}

fn read(session: &Session, file: Option<&Path>) -> anyhow::Result<Config> {
    match file {
        Some(file) => Ok(Config::read_file(&caller()?, &absolute(file)?, &ClusterBloom::default())?),
        None => session.config(),
    }
}

fn shown(answer: &Answer, is_own: bool) -> String {
    let path = printable(&answer.path.display().to_string());
    let next = if is_own { "; rocworker plan shows what it changes" } else { "" };
    if answer.path.exists() {
        format!("{path} is valid{next}\n")
    } else {
        format!("{path} is not there, and every key has its default{next}\n")
    }
}
