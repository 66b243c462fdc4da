//! The library's calls as if they ran on the fleet's asker, with patience for tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use fleet::ssh::{self, Connecting, Error, Request};
use reconcile::command::{Programs, Stream};
use support::machines::Fleet;

/// As the product's, but faster.
pub(crate) const SOON: Connecting = Connecting {
    limit: Duration::from_secs(2),
    pauses: [Duration::from_millis(100), Duration::from_millis(300)],
    alive: Duration::from_secs(1),
};

pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// Of a machine on which rocworker is installed: this very program.
pub(crate) fn install() -> String {
    format!("ln -s {PROGRAM} /usr/local/bin/rocworker")
}

/// The output of a script, and its exit code.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) code: i32,
}

/// ssh as the asker runs it.
pub(crate) struct Asker {
    folder: tempfile::TempDir,
}

impl Asker {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = fleet.command(&["ssh"]);
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let ssh = folder.path().join("ssh");
        let program = command.get_program().to_str().unwrap();
        fs::write(&ssh, format!("#!/bin/sh\nHOME=/root exec {program} {} \"$@\"\n", words.join(" ")))
            .unwrap();
        fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    pub(crate) fn programs(&self) -> Programs {
        let path = [self.folder.path(), Path::new("/usr/bin"), Path::new("/bin")];
        Programs::in_folders(std::env::join_paths(path).unwrap())
    }

    pub(crate) fn run(&self, host: &str, script: &str) -> Result<Answer, Error> {
        self.run_within(host, script, LONG, SOON)
    }

    pub(crate) fn run_within(
        &self,
        host: &str,
        script: &str,
        limit: Duration,
        connecting: Connecting,
    ) -> Result<Answer, Error> {
        let request = Request { script, limit, most: ssh::MOST, connecting };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let code = ssh::talk(&self.programs(), &host.parse().unwrap(), &request, &mut |stream, chunk, _| {
            if stream == Stream::Stdout { &mut stdout } else { &mut stderr }.extend(chunk);
            true
        })?;
        Ok(Answer { stdout, stderr, code })
    }

    /// What is said where there is no answer.
    #[track_caller]
    pub(crate) fn refused(&self, host: &str) -> String {
        self.run(host, "echo there").unwrap_err().to_string()
    }
}
