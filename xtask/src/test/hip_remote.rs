//! The checks of hip-remote, whose workspace is its own.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::command::Command;
use crate::hip_remote::{DEV, built, cargo};
use crate::programs;

pub(super) fn formatting() -> Result<()> {
    cargo("fmt").arguments(["--all", "--check"]).run()
}

pub(super) fn lints() -> Result<()> {
    cargo("clippy").arguments(["--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
}

/// Builds the tests, the libraries and the programs, and returns the folder with the libraries and the programs.
pub(super) fn build() -> Result<PathBuf> {
    nextest("run").arguments(["--no-run"]).run()?;
    built(&DEV)
}

/// nextest over the workspace, in the target folder in which the libraries are built.
pub(super) fn nextest(subcommand: &str) -> Command {
    cargo("nextest").arguments([subcommand, "--locked", "--workspace", "--target", &programs::glibc_target()])
}

/// The variable by which the tests find the folder of [`build`].
pub(super) fn with_folder(command: Command, folder: &Path) -> Command {
    command.environment("ROCWORKER_HIP_BUILT", folder)
}
