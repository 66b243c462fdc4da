//! runc alone, and the wrapper in front of that runc, in one engine's root: both must print equal output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::Machine;
use serde_json::{Value, json};
use support::rootfs;

use crate::engine::{Engine, Unpacked, releases};
use support::said::Said;

use crate::host::Host;
use crate::machine;

/// runc's state folder.
pub const STATE: &str = "/run/pair";

/// The program that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Runc,
    Wrapper,
}

impl Program {
    pub const BOTH: [Self; 2] = [Self::Runc, Self::Wrapper];

    /// Both programs are called by the name `runc`, with which messages begin; PATH decides which one it is.
    fn search_path(self) -> &'static str {
        match self {
            Self::Runc => "/usr/sbin:/usr/bin",
            Self::Wrapper => "/opt/rocworker/shim:/usr/sbin:/usr/bin",
        }
    }
}

/// The demo machine in an engine's root, with a policy under which requests count.
#[derive(Debug)]
pub struct Pair {
    pub engine: Engine,
    pub host: Host,
}

impl Pair {
    /// A pair for each release; none where the calling test is to be skipped.
    ///
    /// # Panics
    /// Where a pair cannot be set up, or something is missing in a full run.
    #[track_caller]
    pub fn of_every_engine(policy: &str) -> Vec<Self> {
        let engines = releases();
        let unpacked: Option<Vec<_>> = engines.iter().map(Engine::unpacked).collect();
        engines
            .iter()
            .zip(unpacked.unwrap_or_default())
            .map(|(engine, unpacked)| Self::of(engine, &unpacked, policy))
            .collect()
    }

    fn of(engine: &Engine, unpacked: &Unpacked, policy: &str) -> Self {
        let stage = machine::stage(&Machine::demo(), policy);
        rootfs::lay_out(&machine::rootfs(&stage));
        Self { engine: *engine, host: Host::set(stage, unpacked) }
    }

    /// A call of one of the programs, not yet run.
    pub fn command(&self, program: Program, arguments: &[&str]) -> Command {
        self.command_within(program, &[], &[&["--root", STATE], arguments].concat())
    }

    /// The wrapper or runc, not yet run, with a program before it that runs it, and without `--root`.
    pub fn command_within(&self, program: Program, before: &[&str], arguments: &[&str]) -> Command {
        self.host.command(program.search_path(), &[before, &["runc"], arguments].concat())
    }

    /// The output of one of the programs, without times.
    ///
    /// # Panics
    /// Where the program cannot be started.
    pub fn say(&self, program: Program, arguments: &[&str]) -> Said {
        // runc copies itself for each container, and finds its own copy in use when another one has just ended: its
        // own fault, with the wrapper and without (nsexec, `cloned_binary.c`).
        const RUNCS_OWN: &str = "could not ensure we are a cloned binary";
        let once = || timeless(self.command(program, arguments).output().unwrap().into());
        (0..5).map(|_| once()).find(|said| !said.stderr.contains(RUNCS_OWN)).unwrap_or_else(once)
    }

    /// The output as [`Pair::say`] gives it, of a call without `--root`.
    ///
    /// # Panics
    /// Where [`Pair::say`] panics.
    pub fn say_at_large(&self, program: Program, arguments: &[&str]) -> Said {
        timeless(self.command_within(program, &[], arguments).output().unwrap().into())
    }

    /// Checks that both outputs are equal, byte for byte, and returns the output.
    ///
    /// # Panics
    /// Where the outputs differ.
    #[track_caller]
    pub fn same(&self, arguments: &[&str]) -> Said {
        let [runc, wrapper] = Program::BOTH.map(|program| self.say(program, arguments));
        assert_eq!(runc, wrapper, "{}: {arguments:?}", self.engine.name);
        wrapper
    }

    /// A bundle that runs a script, and where it stands there. The script's own folder is `/seen`.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn bundle(&self, name: &str, env: &[&str], script: &str) -> String {
        let config = self.config(name, env, script);
        self.bundle_of(name, &config)
    }

    /// # Panics
    /// Where [`Pair::bundle`] panics.
    pub fn bundle_of(&self, name: &str, config: &Value) -> String {
        let folder = self.outside("bundles").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(self.outside("seen")).unwrap();
        fs::create_dir_all(self.outside("rootfs/seen")).unwrap();
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
        format!("/stage/bundles/{name}")
    }

    /// A container as an engine describes it: nothing in /dev, and every device denied.
    pub fn config(&self, name: &str, env: &[&str], script: &str) -> Value {
        let env: Vec<&str> = ["PATH=/bin"].iter().chain(env).copied().collect();
        let namespaces: Vec<Value> =
            ["pid", "mount", "ipc", "uts", "network"].iter().map(|kind| json!({"type": kind})).collect();
        json!({
            "ociVersion": "1.0.2",
            "process": {"terminal": false, "user": {"uid": 0, "gid": 0}, "cwd": "/", "env": env,
                        "args": ["/bin/sh", "-c", script], "capabilities": {}, "noNewPrivileges": true},
            "root": {"path": "/stage/rootfs"},
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                {"destination": "/dev/pts", "type": "devpts", "source": "devpts"},
                {"destination": "/seen", "type": "bind", "source": "/stage/seen", "options": ["rbind", "rw"]},
            ],
            "linux": {
                "namespaces": namespaces,
                "cgroupsPath": format!("/{}/{name}", self.host.cgroup()),
                "resources": {"devices": [{"allow": false, "access": "rwm"}]},
            },
        })
    }

    /// The path on this machine of a path below `/stage`.
    pub fn outside(&self, below_stage: &str) -> PathBuf {
        self.host.folder().join(below_stage)
    }

    /// The text that a container left in its folder; removes it.
    ///
    /// # Panics
    /// Where the container left none.
    #[track_caller]
    pub fn seen(&self, name: &str) -> String {
        let file = self.outside("seen").join(name);
        let seen = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        fs::remove_file(&file).unwrap();
        seen
    }
}

/// The first process below this one that runs a program of this name: nsenter(1) stands between.
pub fn below(parent: u32, name: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().filter_map(|child| child.parse().ok()).find_map(|child: u32| {
        let is_it = fs::read_link(format!("/proc/{child}/exe"))
            .is_ok_and(|program| program.file_name() == Path::new(name).file_name());
        if is_it { Some(child) } else { below(child, name) }
    })
}

/// The output with `time="…"` and `"time":"…"` of runc's two log formats emptied.
pub fn timeless(said: Said) -> Said {
    Said { stderr: without_time(&said.stderr), ..said }
}

/// A log in either of runc's formats, without the times.
pub fn without_time(log: &str) -> String {
    let mut left = log.to_owned();
    for mark in ["time=\"", "\"time\":\""] {
        let mut parts = left.split(mark);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            whole.push_str(mark);
            whole.push_str(part.find('"').map_or(part, |end| &part[end..]));
        }
        left = whole;
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_times_are_taken_out_of_a_log() {
        for (log, expected) in [
            ("time=\"2026-11-21T01:02:03Z\" level=error msg=\"x\"\n", "time=\"\" level=error msg=\"x\"\n"),
            (
                "{\"level\":\"e\",\"time\":\"2026\",\"msg\":\"time\"}",
                "{\"level\":\"e\",\"time\":\"\",\"msg\":\"time\"}",
            ),
            ("runc: timeout\n", "runc: timeout\n"),
        ] {
            assert_eq!(without_time(log), expected);
        }
    }
}
