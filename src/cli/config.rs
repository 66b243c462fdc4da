use std::path::{Path, PathBuf};

use clap::Subcommand;
use config::selection::select;
use config::{ClusterBloom, Config};
use host::facts::Facts;
use printable::printable;
use serde::Serialize;

use super::Outcome;
use super::output::{WARN, styled};
use super::session::{Session, absolute, caller};
use crate::desired::{self, require_known_gpus};

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
    /// What apply follows all the same, with its line.
    warnings: Vec<String>,
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    let Command::Validate { file } = command;
    let path = match file {
        Some(file) => absolute(file)?,
        None => session.config_file()?.path(&session.root),
    };
    let read = match read(session, file.as_deref()) {
        Ok(config) => match require_its_gpus(&config, &session.facts()?) {
            // The machine's fault is none of the configuration.
            Err(unknown) if unknown.is::<desired::Error>() => return Err(unknown),
            fits => fits.map(|()| config),
        },
        wrong => wrong,
    };
    let problem = read.as_ref().err().map(|error| format!("{error:#}"));
    let warnings = read.as_ref().map_or_else(|_| Vec::new(), |config| config.spellings.clone());
    let answer = Answer { schema_version: 1, path, valid: problem.is_none(), problem, warnings };
    // main prints the error, once.
    if session.format.is_json() || answer.valid {
        session.format.print(&answer, || shown(&answer, read.as_ref().ok(), file.is_none()))?;
    }
    read.map(|_| Outcome::Done)
}

/// Refuses a configuration that names a GPU which this machine lacks. A machine without AMD's GPUs is not the one that the
/// configuration is for.
fn require_its_gpus(config: &Config, facts: &Facts) -> anyhow::Result<()> {
    match select(config, facts) {
        Err(wrong) if facts.has_amd() => {
            // A GPU whose driver file hangs is missing, too.
            require_known_gpus(config, facts)?;
            Err(wrong.into())
        }
        _ => Ok(()),
    }
}

fn read(session: &Session, file: Option<&Path>) -> anyhow::Result<Config> {
    match file {
        Some(file) => Ok(Config::read_file(&caller()?, &absolute(file)?, &ClusterBloom::default())?),
        None => session.config(),
    }
}

fn shown(answer: &Answer, config: Option<&Config>, is_own: bool) -> String {
    let path = printable(&answer.path.display().to_string());
    let next = if is_own { "; rocworker plan shows what it changes" } else { "" };
    let warnings =
        answer.warnings.iter().map(|text| format!("{} {}\n", styled(WARN, "warning:"), printable(text)));
    let is = match config {
        _ if !answer.path.exists() => "is not there, and every key has its default",
        Some(config) if config.says_nothing() => "has no key, and every key has its default",
        _ => "is valid",
    };
    format!("{}{path} {is}{next}\n", warnings.collect::<String>())
}
