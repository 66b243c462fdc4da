//! A program that uses HIP, started by `rocworker-hip-run`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::built;

#[derive(Debug)]
pub struct Program<'a> {
    pub worker: &'a str,
    pub key: Option<&'a Path>,
}

impl Program<'_> {
    /// `rocworker-hip-run --connect … -- PROGRAM ARGUMENTS`. It ends with the thread that starts it.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(built().join("bin/rocworker-hip-run"));
        command.args(["--connect", self.worker]);
        if let Some(key) = self.key {
            command.arg("--key").arg(key);
        }
        command.arg("--").args(arguments);
        command
    }

    /// Over the wire, without TLS.
    pub fn on(worker: &str) -> Program<'_> {
        Program { worker, key: None }
    }
}
