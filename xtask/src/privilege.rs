//! Finds how to install packages and make device nodes.

use std::ffi::OsStr;

use anyhow::Result;

use crate::command::Command;
use crate::refusal::Refusal;

/// How this process gets root's rights for the few commands that need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privilege {
    Root,
    Sudo,
}

impl Privilege {
    /// # Errors
    /// A [`Refusal`] for an ordinary user on a machine without sudo.
    pub(crate) fn of_this_process() -> Result<Self> {
        if nix::unistd::geteuid().is_root() {
            return Ok(Self::Root);
        }
        if which::which("sudo").is_ok() {
            return Ok(Self::Sudo);
        }
        Err(Refusal::new(
            "the tests of real components make device nodes, mounts and containers, which takes root, and there is \
             no sudo here: run `cargo xtask test` as root, or `cargo test` for what an ordinary user can run",
        ))
    }

    /// The argv that runs this one as root.
    pub(crate) fn as_root(self, argv: &[&str]) -> Vec<String> {
        let own = match self {
            Self::Root => None,
            Self::Sudo => Some("sudo"),
        };
        own.into_iter().chain(argv.iter().copied()).map(str::to_owned).collect()
    }

    /// Lets the test programs, and them alone, run as root: cargo and its files stay the user's.
    pub(crate) fn run_tests_as_root(self, command: Command, path: &OsStr) -> Command {
        match self {
            Self::Root => command,
            // sudo sets a PATH of its own even where it keeps the rest of the environment.
            Self::Sudo => {
                let runner = format!("sudo --preserve-env env PATH={}", path.to_string_lossy());
                let variable = |libc| runner_variable(std::env::consts::ARCH, libc);
                command.environment(&variable("MUSL"), &runner).environment(&variable("GNU"), &runner)
            }
        }
    }
}

/// The variable by which cargo and nextest learn what to start a test program of this libc with.
fn runner_variable(architecture: &str, libc: &str) -> String {
    format!("CARGO_TARGET_{}_UNKNOWN_LINUX_{libc}_RUNNER", architecture.to_uppercase())
}
