//! Juju's hook tools, through the one doorway to commands.

use std::time::Duration;

use reconcile::command::{Error as CommandError, Programs};
use serde_json::{Map, Value};

use super::answer::Answer;
use super::workload::Workload;
use crate::printable::printable;

/// A tool asks the agent, and the agent the controller, which may be far away.
const LIMIT: Duration = Duration::from_secs(60);

/// Whose hook this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// This charm's: its unit's status and version are ours to set.
    Own,
    /// Another charm's, which sets its unit's status itself.
    Guest,
}

/// The tools of one hook's context.
#[derive(Debug)]
pub struct Tools {
    programs: Programs,
    way: Way,
}

/// Why Juju was not asked, or not told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}; hook tools are there inside a hook of Juju's, or with juju exec")]
    Command(CommandError),
    #[error("{tool} answers what is not its JSON: {problem}")]
    Answer { tool: &'static str, problem: String },
}

/// How much a line of the log tells of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

impl Tools {
    pub fn new(programs: Programs, way: Way) -> Self {
        Self { programs, way }
    }

    pub fn way(&self) -> Way {
        self.way
    }

    /// The charm's options, those without a value left out.
    pub fn options(&self) -> Result<Map<String, Value>, Error> {
        self.answer(&["config-get", "--format=json"])?.ok_or_else(|| Error::Answer {
            tool: "config-get",
            problem: "it is null, and says nothing of the options, not even of their defaults; the machine stays as it is"
                .to_owned(),
        })
    }

    /// An action's parameters.
    pub(super) fn parameters(&self) -> Result<Map<String, Value>, Error> {
        // An action without parameters has none.
        Ok(self.answer(&["action-get", "--format=json"])?.unwrap_or_default())
    }

    /// Sets the unit's status; nothing in another charm's hook.
    pub(super) fn status(&self, workload: &Workload) -> Result<(), Error> {
        if self.way == Way::Guest {
            return Ok(());
        }
        self.call(&["status-set", workload.state.word(), &workload.text])
    }

    /// Sets what `juju status` shows as the application's version; nothing in another charm's hook.
    pub(super) fn version(&self, version: &str) -> Result<(), Error> {
        if self.way == Way::Guest {
            return Ok(());
        }
        self.call(&["application-version-set", version])
    }

    pub(super) fn log(&self, level: Level, text: &str) -> Result<(), Error> {
        let level = match level {
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        };
        self.call(&["juju-log", "--log-level", level, &printable(text)])
    }

    /// An action's answer.
    pub(super) fn set(&self, answer: &Answer) -> Result<(), Error> {
        let pairs = answer.pairs();
        let argv: Vec<&str> = std::iter::once("action-set").chain(pairs.iter().map(String::as_str)).collect();
        self.call(&argv)
    }

    /// That an action has not done what it should.
    pub(super) fn fail(&self, why: &str) -> Result<(), Error> {
        self.call(&["action-fail", &printable(why)])
    }

    fn call(&self, argv: &[&str]) -> Result<(), Error> {
        self.programs.run(argv, LIMIT).map(drop).map_err(Error::Command)
    }

    /// `None`: `null`.
    fn answer(&self, argv: &[&'static str]) -> Result<Option<Map<String, Value>>, Error> {
        let tool = argv.first().copied().unwrap_or_default();
        let output = self.programs.run(argv, LIMIT).map_err(Error::Command)?;
        let said: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| Error::Answer { tool, problem: error.to_string() })?;
        match said {
            Value::Object(said) => Ok(Some(said)),
            Value::Null => Ok(None),
            _ => Err(Error::Answer { tool, problem: "it is no object".to_owned() }),
        }
    }
}
