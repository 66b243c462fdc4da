use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::repository;

/// A program with its arguments and what is added to its environment; never a shell's line.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    argv: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    folder: PathBuf,
}

impl Command {
    /// Runs at the top of the repository unless [`Command::inside`] says otherwise.
    pub(crate) fn new<A: AsRef<OsStr>>(argv: impl IntoIterator<Item = A>) -> Self {
        let argv = argv.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        Self { argv, environment: Vec::new(), folder: repository::top().to_owned() }
    }

    pub(crate) fn arguments<A: AsRef<OsStr>>(mut self, more: impl IntoIterator<Item = A>) -> Self {
        self.argv.extend(more.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn inside(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The argv as a person would type it; only for reading.
    pub(crate) fn shown(&self) -> String {
        self.argv.iter().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// Says the command, then runs it on this process's own streams.
    pub(crate) fn run(&self) -> Result<()> {
        println!("$ {}", self.shown());
        let output = self.expression()?.run().with_context(|| format!("starting `{}`", self.shown()))?;
        if !output.status.success() {
            bail!("`{}` ended with {}", self.shown(), output.status);
        }
        Ok(())
    }

    /// Whether the program ends with 0; the output of both streams goes into a file.
    pub(crate) fn ends_well_with_its_words_in(&self, log: &Path) -> Result<bool> {
        let expression = self.expression()?.stderr_to_stdout().stdout_path(log);
        let output = expression.run().with_context(|| format!("starting `{}`", self.shown()))?;
        Ok(output.status.success())
    }

    /// Runs it in silence; what it writes to stderr is shown only in the error.
    pub(crate) fn read(&self) -> Result<String> {
        let expression = self.expression()?.stdout_capture().stderr_capture();
        let output = expression.run().with_context(|| format!("starting `{}`", self.shown()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` ended with {}: {}", self.shown(), output.status, said.trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no text", self.shown()))
    }

    /// The program's output, whatever its exit code, which may be a part of the answer.
    pub(crate) fn read_whatever_it_ends_with(&self) -> Result<String> {
        let expression = self.expression()?.stdout_capture().stderr_capture();
        let output = expression.run().with_context(|| format!("starting `{}`", self.shown()))?;
        String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no text", self.shown()))
    }

    /// Whether the program runs and ends with 0; both streams are dropped.
    pub(crate) fn succeeds(&self) -> bool {
        self.read().is_ok()
    }

    fn expression(&self) -> Result<duct::Expression> {
        let (program, arguments) = self.argv.split_first().context("a command without a program")?;
        let mut expression = duct::cmd(program, arguments).dir(&self.folder).unchecked();
        for (name, value) in &self.environment {
            expression = expression.env(name, value);
        }
        Ok(expression)
    }
}

/// This process's PATH behind a folder of fetched programs, and with the sbin folders. Those hold runc, and Debian leaves
/// them out of an ordinary user's PATH.
pub(crate) fn search_path(fetched: Option<PathBuf>) -> Result<OsString> {
    let mut folders: Vec<PathBuf> = fetched.into_iter().collect();
    let own = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&own));
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    std::env::join_paths(folders).context("a folder on PATH has a colon in its name")
}
