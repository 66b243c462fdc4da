//! Juju's hook tools, through the one doorway to commands.

use std::time::Duration;

use printable::printable;
use reconcile::command::Programs;
use serde_json::{Map, Value};

use super::unit_status::UnitStatus;

/// A tool asks the agent, and the agent the controller, which may be far away.
const LIMIT: Duration = Duration::from_secs(60);

/// The tools of one hook's context.
#[derive(Debug)]
pub struct Tools {
    programs: Programs,
    /// Whether this is the hook of another charm, which sets its unit's status and version itself.
    is_guest: bool,
}

/// Juju's tools do not answer: the hook fails, for no status can say so.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// How much trouble a line of the log is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
    Error,
}

impl Tools {
    pub fn new(programs: Programs, is_guest: bool) -> Self {
        Self { programs, is_guest }
    }

    /// The charm's options that have a value.
    pub fn options(&self) -> Result<Map<String, Value>, Error> {
        self.answer("config-get")?.ok_or_else(|| {
            let problem =
                "it is null, and says nothing of the options, not even of their defaults; the machine stays as it is";
            Error::of_answer("config-get", problem)
        })
    }

    /// An action's parameters.
    pub fn parameters(&self) -> Result<Map<String, Value>, Error> {
        // An action without parameters has none.
        Ok(self.answer("action-get")?.unwrap_or_default())
    }

    /// Sets the unit's status; nothing in another charm's hook.
    pub fn status(&self, status: &UnitStatus) -> Result<(), Error> {
        if self.is_guest { Ok(()) } else { self.call(&["status-set", status.state.word(), &status.text]) }
    }

    /// Sets what `juju status` shows as the application's version; nothing in another charm's hook.
    pub fn version(&self, version: &str) -> Result<(), Error> {
        if self.is_guest { Ok(()) } else { self.call(&["application-version-set", version]) }
    }

    /// Lets other machines reach a TCP port of the unit's, once the application is exposed.
    pub fn open_port(&self, port: u16) -> Result<(), Error> {
        self.call(&["open-port", &format!("{port}/tcp")])
    }

    pub fn close_port(&self, port: u16) -> Result<(), Error> {
        self.call(&["close-port", &format!("{port}/tcp")])
    }

    pub fn log(&self, level: Level, text: &str) -> Result<(), Error> {
        let level = match level {
            Level::Info => "INFO",
            Level::Warning => "WARNING",
            Level::Error => "ERROR",
        };
        self.call(&["juju-log", "--log-level", level, &printable(text)])
    }

    /// Sets an action's answer: arguments `key=value`.
    pub fn set(&self, pairs: &[String]) -> Result<(), Error> {
        let argv: Vec<&str> = std::iter::once("action-set").chain(pairs.iter().map(String::as_str)).collect();
        self.call(&argv)
    }

    /// Fails an action.
    pub fn fail(&self, why: &str) -> Result<(), Error> {
        self.call(&["action-fail", &printable(why)])
    }

    fn call(&self, argv: &[&str]) -> Result<(), Error> {
        self.output(argv).map(drop)
    }

    /// The tool's answer. `None`: the tool answered `null`.
    fn answer(&self, tool: &'static str) -> Result<Option<Map<String, Value>>, Error> {
        let output = self.output(&[tool, "--format=json"])?;
        serde_json::from_slice(&output).map_err(|error| Error::of_answer(tool, error))
    }

    fn output(&self, argv: &[&str]) -> Result<Vec<u8>, Error> {
        let ran = self.programs.run(argv, LIMIT).map_err(|error| {
            Error(format!("{error}; hook tools are there inside a hook of Juju's, or with juju exec"))
        })?;
        Ok(ran.stdout)
    }
}

impl Error {
    fn of_answer(tool: &str, problem: impl std::fmt::Display) -> Self {
        Self(format!("{tool} answers what is not its JSON: {problem}"))
    }
}
