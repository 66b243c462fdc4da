//! A machine with the program, and a server with a repository in AMD's place.

use std::path::{Path, PathBuf};

use lab::key::Key;
use lab::machine::Machine;
use lab::package::Package;
use lab::repository::Repository;
use lab::server::Server;
use serde_json::Value;
use support::said::Said;

pub(crate) const PROGRAM: &str = "/usr/bin/rocworker";
pub(crate) const KEYRING: &str = "/etc/apt/keyrings/rocworker-amd.gpg";

pub(crate) struct Worker {
    pub(crate) machine: Machine,
    pub(crate) repository: Repository,
    pub(crate) server: Server,
    pub(crate) key: Key,
    folder: PathBuf,
}

/// Stand-ins for AMD's.
pub(crate) fn amds() -> Vec<Package> {
    vec![
        Package::new("amd-container-toolkit", "1.3.0").depends("lab-library"),
        Package::new("rocm-smi-lib", "7.8.0.70204-1").program("/opt/rocm-7.2.4/bin/rocm-smi", "#!/bin/sh\n"),
        Package::new("rocm", "7.2.4.70204-1").depends("rocm-smi-lib"),
        Package::new("lab-library", "1.0").conffile("/etc/lab-library.conf", "b=1\n"),
    ]
}

impl Worker {
    /// Serves these for the suite that Debian 12 takes.
    pub(crate) fn new(machine: Machine, packages: Vec<Package>) -> Self {
        let key = Key::generate("AMD's stand-in");
        let mut repository = Repository::new("repo.radeon.com", "jammy", "main").with(packages);
        let folder = repository.release(&key);
        std::fs::write(folder.join("rocm.gpg.key"), key.armored()).unwrap();
        let server = Server::start(&folder);
        machine.put_program(env!("CARGO_BIN_EXE_rocworker").as_ref(), PROGRAM);
        machine.put_script("/usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
        // As udev's package makes it.
        let groups = machine.text("/etc/group").unwrap();
        if !groups.contains("\nrender:") {
            machine.put("/etc/group", groups + "render:x:991:\n");
        }
        machine.put("/etc/apt/apt.conf.d/99lab", "Acquire::http::Timeout \"2\";\nAcquire::Retries \"0\";\n");
        Self { machine, repository, server, key, folder }
    }

    /// What is served.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new release, signed by another key, which is served in place of the other.
    pub(crate) fn sign_with(&mut self, key: Key) {
        self.folder = self.repository.release(&key);
        std::fs::write(self.folder.join("rocm.gpg.key"), key.armored()).unwrap();
        self.server.show(&self.folder);
        self.key = key;
    }

    /// The repositories of the server, with their key, and these lines.
    pub(crate) fn configure(&self, lines: &str) {
        self.configure_with(self.key.fingerprint(), lines);
    }

    pub(crate) fn configure_with(&self, fingerprint: &str, lines: &str) {
        let url = self.server.url();
        let text = format!(
            "{lines}\nrepositories:\n  key: {url}/rocm.gpg.key\n  fingerprints: [{fingerprint}]\n  \
             container-toolkit: {{url: {url}}}\n  rocm: {{url: {url}}}\n"
        );
        self.machine.put("/etc/rocworker/config.yaml", text);
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.machine.call(&[&[PROGRAM], arguments].concat())
    }

    /// What it answers to a program, whatever its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let said = self.run(&[arguments, &["--output", "json"]].concat());
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    #[track_caller]
    pub(crate) fn has(&self, name: &str, status: Option<&str>) {
        assert_eq!(self.machine.package(name).as_deref(), status, "{name}");
    }
}
