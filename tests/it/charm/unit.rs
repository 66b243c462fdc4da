//! A unit with stand-ins for Juju's hook tools, whose hooks are run beneath a Root.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::said::Said;
use tempfile::TempDir;

use crate::charm::record::{Call, calls};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");
const TOOL: &str = include_str!("hook_tool.py");
pub(crate) const TOOLS: [&str; 9] = [
    "config-get",
    "status-set",
    "juju-log",
    "application-version-set",
    "action-get",
    "action-set",
    "action-fail",
    "open-port",
    "close-port",
];

/// The model's.
const PROXY: &str = "http://proxy.example:3128";

/// What an agent keeps for a unit, and what its hooks told.
pub(crate) struct Unit {
    dir: TempDir,
    name: String,
    program: PathBuf,
}

/// A hook that has run.
pub(crate) struct Ran {
    pub(crate) said: Said,
    /// What Juju was told, whether it counts or not.
    pub(crate) calls: Vec<Call>,
}

impl Ran {
    /// What Juju was told by a hook that ended well.
    #[track_caller]
    pub(crate) fn well(self) -> Vec<Call> {
        self.said.well();
        self.calls
    }

    /// The status at the end of a hook that ended well.
    #[track_caller]
    pub(crate) fn status(self) -> String {
        let calls = self.well();
        let last = calls.iter().rfind(|call| call.name() == "status-set").unwrap();
        last.words().get(1..).unwrap().join(": ")
    }
}

impl Unit {
    pub(crate) fn new() -> Self {
        Self::named("rocworker/0")
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::kept_in(support::detect::scratch(), name)
    }

    /// One that is there on a stage too, which has a /dev of its own.
    pub(crate) fn on_disk() -> Self {
        Self::kept_in(tempfile::tempdir().unwrap(), "rocworker/0")
    }

    /// One beneath this folder, for a machine that shares it.
    pub(crate) fn in_folder(folder: &Path, name: &str) -> Self {
        Self::kept_in(tempfile::tempdir_in(folder).unwrap(), name)
    }

    fn kept_in(dir: TempDir, name: &str) -> Self {
        let tools = dir.path().join("tools");
        fs::create_dir(&tools).unwrap();
        put(&tools.join("hook-tool"), TOOL);
        for name in TOOLS {
            symlink("hook-tool", tools.join(name)).unwrap();
        }
        let unit = Self { dir, name: name.to_owned(), program: PROGRAM.into() };
        unit.options("{}");
        unit.parameters("{}");
        unit
    }

    /// Has hooks run where something is mounted over this file, which keeps it from being replaced.
    pub(crate) fn mount_over(&mut self, file: &Path) {
        let script = format!(
            "#!/bin/sh\nexec unshare --mount sh -ec 'mount --bind \"$0\" \"$0\"; exec {PROGRAM} \"$@\"' {} \"$@\"\n",
            file.display()
        );
        self.program = self.program("with-a-mount", &script);
    }

    /// Has hooks run without such a mount again.
    pub(crate) fn unmount(&mut self) {
        self.program = PROGRAM.into();
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> &Path {
        self.dir.path()
    }

    /// A program of the test's own beside the tools.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join("tools").join(name);
        put(&path, text);
        path
    }

    /// What config-get answers.
    pub(crate) fn options(&self, json: &str) {
        checked(json);
        fs::write(self.dir.path().join("config.json"), json).unwrap();
    }

    /// What action-get answers.
    pub(crate) fn parameters(&self, json: &str) {
        checked(json);
        fs::write(self.dir.path().join("params.json"), json).unwrap();
    }

    /// `NAME=VALUE` for each variable of a hook's context; `path`: hooks/NAME or actions/NAME.
    pub(crate) fn environment(&self, path: &str) -> Vec<String> {
        let folder = self.dir.path().display();
        let mut variables = vec![
            format!("PATH={folder}/tools:/usr/sbin:/usr/bin:/sbin:/bin"),
            format!("STAND_IN={folder}"),
            format!("JUJU_CONTEXT_ID={}-run", self.name),
            "JUJU_AGENT_SOCKET_ADDRESS=@/var/lib/juju/agents/agent.socket".to_owned(),
            format!("JUJU_UNIT_NAME={}", self.name),
            "JUJU_MODEL_NAME=ci".to_owned(),
            "JUJU_VERSION=3.6.0".to_owned(),
            format!("JUJU_CHARM_HTTP_PROXY={PROXY}"),
            format!("JUJU_DISPATCH_PATH={path}"),
        ];
        match path.split_once('/') {
            Some(("actions", name)) => variables.push(format!("JUJU_ACTION_NAME={name}")),
            Some((_, name)) => variables.push(format!("JUJU_HOOK_NAME={name}")),
            None => {}
        }
        variables
    }

    /// The command of a hook beneath this folder; `more`: further arguments.
    pub(crate) fn argv(&self, root: &Path, path: &str, more: &[&str]) -> Vec<String> {
        let program = [self.program.to_str().unwrap(), "--root", root.to_str().unwrap(), "hook"];
        ["env", "-i"]
            .iter()
            .map(ToString::to_string)
            .chain(self.environment(path))
            .chain(program.iter().chain(more).map(ToString::to_string))
            .collect()
    }

    pub(crate) fn run(&self, root: &Path, path: &str) -> Ran {
        self.run_with(root, path, &[])
    }

    pub(crate) fn run_with(&self, root: &Path, path: &str, more: &[&str]) -> Ran {
        self.forget();
        let argv = self.argv(root, path, more);
        let (program, arguments) = argv.split_first().unwrap();
        let said = Said::from(Command::new(program).args(arguments).output().unwrap());
        Ran { said, calls: self.pending() }
    }

    /// The program as somebody calls it on the machine.
    pub(crate) fn by_hand(root: &Path, arguments: &[&str]) -> Said {
        Said::from(Command::new(PROGRAM).arg("--root").arg(root).args(arguments).output().unwrap())
    }

    /// What was told since the last run began.
    pub(crate) fn pending(&self) -> Vec<Call> {
        calls(&fs::read_to_string(self.dir.path().join("pending")).unwrap_or_default())
    }

    pub(crate) fn forget(&self) {
        fs::write(self.dir.path().join("pending"), "").unwrap();
    }
}

pub(crate) fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn checked(json: &str) {
    serde_json::from_str::<Value>(json).unwrap();
}
