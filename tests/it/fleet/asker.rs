//! The library's calls as if they ran on the fleet's asker, with patience for tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use fleet::ssh::{self, Answer, Connecting, Error, Request, Rights};
use reconcile::command::Programs;
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

    pub(crate) fn run(&self, host: &str, script: &str, rights: Rights) -> Result<Answer, Error> {
        self.run_within(host, script, rights, LONG)
    }

    pub(crate) fn run_within(
        &self,
        host: &str,
        script: &str,
        rights: Rights,
        limit: Duration,
    ) -> Result<Answer, Error> {
        let request = Request { script, rights, limit };
        ssh::run_by(&self.programs(), &SOON, &host.parse().unwrap(), &request)
    }

    /// What is said where there is no answer.
    #[track_caller]
    pub(crate) fn refused(&self, host: &str, rights: Rights) -> String {
        self.run(host, "echo there", rights).unwrap_err().to_string()
    }
}
