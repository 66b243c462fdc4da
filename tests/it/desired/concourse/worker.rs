//! A machine with a worker, laid out beneath a folder. The programs are empty files whose versions are known already:
//! none is run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use config::Config;
use config::selection::select;
use engines::concourse::Concourse;
use engines::concourse::desired::set_up;
use engines::{Answer, Engines, Known, Version, Versions, Wish};
use host::facts::Facts;
use reconcile::command::Programs;
use reconcile::{Action, Content, Desired, Effect, Kind};
use render::Templates;
use root::Root;

/// The charm's unit (fourdollars/concourse-ci-machine, lib/concourse_worker.py).
pub(crate) const UNIT: &str = "[Unit]
Description=Concourse CI Worker
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
User=root
Group=root
WorkingDirectory=/var/lib/concourse
EnvironmentFile=/var/lib/concourse-worker/worker-config.env
EnvironmentFile=-/etc/default/concourse
ExecStart=/var/lib/concourse/bin/concourse worker
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
";

/// What the charm writes into the worker's environment file, tags and secrets left out.
pub(crate) const ENVIRONMENT: &str = "CONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir
CONCOURSE_RUNTIME=containerd
CONCOURSE_CONTAINERD_DNS_SERVER=1.1.1.1,8.8.8.8
PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/snap/bin
";

pub(crate) const ENVIRONMENT_FILE: &str = "var/lib/concourse-worker/worker-config.env";
pub(crate) const DROP_INS: &str = "etc/systemd/system/concourse-worker.service.d";
pub(crate) const WRITTEN_CONFIG: &str = "var/lib/concourse-worker/work_dir/containerd.toml";
pub(crate) const WRAPPER: &str = "/usr/local/bin/runc-amd-wrapper";

pub(crate) struct Machine {
    dir: tempfile::TempDir,
    versions: BTreeMap<PathBuf, Version>,
}

impl Machine {
    /// One with an AMD GPU and a worker of these versions, as the charm makes it.
    pub(crate) fn with_worker(concourse: (u32, u32, u32), containerd: (u32, u32, u32)) -> Self {
        let machine = Self::without_worker(&support::captures::phoenix_beside_rtx4080());
        machine.put("etc/systemd/system/concourse-worker.service", UNIT);
        machine.put(ENVIRONMENT_FILE, ENVIRONMENT);
        machine
            .with_program("/var/lib/concourse/bin/concourse", concourse)
            .with_program("/var/lib/concourse/bin/containerd", containerd)
    }

    pub(crate) fn without_worker(machine: &layout::Machine) -> Self {
        let dir = support::detect::scratch();
        machine.lay_out(dir.path(), layout::Nodes::Recorded).unwrap();
        Self { dir, versions: BTreeMap::new() }
    }

    pub(crate) fn with_program(mut self, path: &str, (major, minor, patch): (u32, u32, u32)) -> Self {
        let file = self.put(path.trim_start_matches('/'), "\u{7f}ELF");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        self.versions.insert(path.into(), Version { major, minor, patch });
        self
    }

    /// Of this program nobody can tell the version.
    pub(crate) fn with_unknown(mut self, path: &str) -> Self {
        self.versions.remove(Path::new(path)).unwrap();
        fs::remove_file(self.dir.path().join(path.trim_start_matches('/'))).unwrap();
        self.put(path.trim_start_matches('/'), "");
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn put(&self, path: &str, text: &str) -> PathBuf {
        let file = self.dir.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// Adds lines to the worker's environment file.
    pub(crate) fn set(&self, lines: &str) -> &Self {
        let text = fs::read_to_string(self.dir.path().join(ENVIRONMENT_FILE)).unwrap();
        self.put(ENVIRONMENT_FILE, &format!("{text}{lines}\n"));
        self
    }

    pub(crate) fn drop_in(&self, name: &str, text: &str) -> &Self {
        self.put(&format!("{DROP_INS}/{name}"), text);
        self
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        let link = self.dir.path().join(path);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
        self
    }

    pub(crate) fn concourse(&self) -> Concourse {
        let root = Root::open(self.dir.path()).unwrap();
        let programs = Programs::in_folders("");
        // Of a program that a test has taken away nothing is known.
        let known = self.versions.iter().filter_map(|(path, version)| {
            Some((
                path.clone(),
                Known { identity: root.identity(path).ok()?, answer: Answer::Version(*version) },
            ))
        });
        Concourse::read(&root, &mut Versions::new(&root, Some(&programs), known.collect()))
    }

    /// The desired state where a person has decided for tags of the GPUs, unless `config` decides otherwise.
    pub(crate) fn desired(&self, config: &str) -> Desired {
        self.desired_with(config, Some(Path::new(WRAPPER)))
    }

    pub(crate) fn desired_with(&self, config: &str, wrapper: Option<&Path>) -> Desired {
        let mut config = Config::parse(Path::new("config.yaml"), config).unwrap();
        config.concourse.tags = config.concourse.tags.or(Some(true));
        self.desired_by(&config, wrapper)
    }

    /// The desired state by this configuration alone.
    pub(crate) fn desired_by(&self, config: &Config, wrapper: Option<&Path>) -> Desired {
        let root = Root::open(self.dir.path()).unwrap();
        let facts = Facts::read(&root);
        let selection = select(config, &facts).unwrap();
        let engines = Engines { concourse: self.concourse(), ..Engines::default() };
        let (templates, engines, selection) = (&Templates::built_in(), &engines, &selection);
        engines::desired(&Wish { config, engines, templates, selection, wrapper })
    }

    /// Whether the worker's containers go through the wrapper, in a word.
    pub(crate) fn set_up(&self, config: &str) -> &'static str {
        let config = Config::parse(Path::new("config.yaml"), config).unwrap();
        let facts = Facts::read(&Root::open(self.dir.path()).unwrap());
        let selection = select(&config, &facts).unwrap();
        let (concourse, templates) = (self.concourse(), Templates::built_in());
        match set_up(&config, &selection, &concourse, &templates) {
            Some(false) => "no",
            Some(true) => "yes",
            None => "unknown",
        }
    }

    /// Writes what should be, as an executor would.
    pub(crate) fn apply(&self, desired: &Desired) {
        for action in &desired.actions {
            let path = action.path.path().unwrap().to_str().unwrap().trim_start_matches('/');
            match &action.kind {
                Kind::Owned(Content::File { bytes, attributes }) => {
                    let file = self.put(path, std::str::from_utf8(bytes).unwrap());
                    fs::set_permissions(file, fs::Permissions::from_mode(attributes.mode)).unwrap();
                }
                Kind::Owned(Content::Link { target }) => {
                    self.link(path, target.to_str().unwrap());
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// What should be, for reading.
pub(crate) fn shown(desired: &Desired) -> String {
    let mut text = String::new();
    for note in &desired.notes {
        text += &format!("{} {}: {}\n", if note.problem { "problem" } else { "note" }, note.about, note.text);
    }
    for action in &desired.actions {
        text += &shown_action(action);
    }
    if text.is_empty() { "nothing\n".to_owned() } else { text }
}

fn shown_action(action: &Action) -> String {
    let path = action.path.display();
    let effects: Vec<String> = action.effects.iter().map(shown_effect).collect();
    let effects = effects.join(", ");
    match &action.kind {
        Kind::Owned(Content::File { bytes, attributes }) => {
            let text = std::str::from_utf8(bytes).unwrap();
            format!("== {path} {:04o} ({}) [{effects}]\n{text}", attributes.mode, action.reason)
        }
        Kind::Owned(Content::Link { target }) => {
            format!("== {path} -> {} ({}) [{effects}]\n", target.display(), action.reason)
        }
        other => panic!("{other:?}"),
    }
}

fn shown_effect(effect: &Effect) -> String {
    match effect {
        Effect::SystemdReload => "reload systemd".to_owned(),
        Effect::Restart { unit, drain } => {
            format!("restart {unit} after {}", drain.as_deref().unwrap_or("nothing"))
        }
        other => panic!("{other:?}"),
    }
}

/// The value that rocworker's environment file of the worker gives a variable.
pub(crate) fn value(desired: &Desired, name: &str) -> Option<String> {
    let text = text(desired, "/etc/rocworker/concourse.env")?;
    host::env_file::EnvFile::parse(&text).get(name).map(str::to_owned)
}

/// The text of a file that should be there.
pub(crate) fn text(desired: &Desired, path: &str) -> Option<String> {
    let action = desired.actions.iter().find(|action| action.path == Path::new(path))?;
    let Kind::Owned(Content::File { bytes, .. }) = &action.kind else { panic!("{action:?}") };
    Some(String::from_utf8(bytes.clone()).unwrap())
}
