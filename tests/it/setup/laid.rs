//! A laid-out machine with a configuration, on which the program runs.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt as _;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use layout::{Entry, Machine};
use serde_json::Value;

pub(crate) struct Laid {
    machine: support::laid::Laid,
}

impl Deref for Laid {
    type Target = support::laid::Laid;

    fn deref(&self) -> &Self::Target {
        &self.machine
    }
}

impl Laid {
    /// The demo's machine, with the wrapper where a package puts it, and this configuration.
    pub(crate) fn demo(config: &str) -> Self {
        Self::out(&Machine::demo(), config)
    }

    /// With docker and containerd 2.1.
    pub(crate) fn with_engines(config: &str) -> Self {
        let laid = Self::demo(config);
        let status = "Package: containerd\nStatus: install ok installed\nVersion: 2.1.9-1\n\n\
             Package: docker.io\nStatus: install ok installed\nVersion: 28.5.2-1\n";
        laid.put("var/lib/dpkg/status", status);
        for program in ["usr/bin/containerd", "usr/sbin/dockerd"] {
            laid.put(program, "");
            fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
        }
        laid.put("etc/containerd/config.toml", "version = 3\n");
        laid.put("etc/docker/daemon.json", "{}\n");
        laid
    }

    /// A Concourse worker as the charm sets one up, without its programs.
    pub(crate) fn put_worker(&self, tag: &str) {
        self.put(
            "etc/systemd/system/concourse-worker.service",
            "[Service]\nEnvironmentFile=/var/lib/concourse-worker/worker-config.env\n\
             ExecStart=/var/lib/concourse/bin/concourse worker\n",
        );
        self.put(
            "var/lib/concourse-worker/worker-config.env",
            &format!(
                "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG={tag}\nCONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\n"
            ),
        );
    }

    pub(crate) fn out(machine: &Machine, config: &str) -> Self {
        let machine = support::laid::Laid::out(machine);
        machine.put("etc/rocworker/config.yaml", config);
        Self { machine }
    }

    /// The demo's machine, started by systemd or not, with the programs where a package puts them or without.
    pub(crate) fn started(is_by_systemd: bool, has_program: bool, config: &str) -> Self {
        let machine = Machine::demo();
        let machine =
            if is_by_systemd { machine.put("/run/systemd/system", Entry::Directory) } else { machine };
        let laid = Self::out(&machine, config);
        if has_program {
            for program in ["rocworker", "rocworker-exporter"] {
                laid.put(&format!("usr/bin/{program}"), "stands for the program\n");
            }
        }
        laid
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Assert {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
        command.arg("--root").arg(self.top()).args(arguments).assert()
    }

    /// What a command answers to a program, whatever its exit code.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat()).get_output().clone();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        })
    }

    /// What a command says on stderr, and its exit code.
    pub(crate) fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments).get_output().clone();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }
}

/// A unit of rocworker's own stands where systemd starts the machine and the program stays, unless the
/// configuration says otherwise. `about`: what its key and its notes are called.
pub(crate) fn stands_where_it_can_run(unit: &str, about: &str) {
    for (systemd, program, config, has_unit) in [
        (true, true, String::new(), true),
        (true, true, format!("{about}: {{unit: false}}"), false),
        (true, true, "compute-runtime: cuda".to_owned(), false),
        (true, false, String::new(), false),
        (false, true, String::new(), false),
    ] {
        let laid = Laid::started(systemd, program, &config);
        let applied = laid.json(&["apply"]);
        assert_eq!(laid.path(unit).exists(), has_unit, "{systemd} {program} {config}: {applied:#}");
        let told = applied["notes"].as_array().unwrap().iter().any(|note| note["about"] == about);
        assert_eq!(told, systemd && !program, "{systemd} {program} {config}: {applied:#}");
    }
}
