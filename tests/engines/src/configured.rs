//! containerd's configuration as `rocworker apply` leaves it, in the root of a real engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use config::Config;
use edit::Format;
use engines::containerd::desired::actions;
use engines::{Containerd, Versions};
use layout::Machine;
use reconcile::{Action, Content, Desired, Kind};
use render::Templates;
use root::Root;
use serde_json::Value;
use support::said::Said;

use crate::engine::{Engine, Unpacked};
use crate::host::Host;

/// The wrapper's path in these configurations.
pub const WRAPPER: &str = "/opt/rocworker/shim/runc";

const ETC: &str = "etc/containerd";

/// A configuration to start with: a folder of tests/engines/configs, what /etc/containerd holds.
#[derive(Debug, Clone)]
pub struct Start {
    pub name: String,
    folder: PathBuf,
}

impl Start {
    /// # Panics
    /// Where the folder cannot be read.
    pub fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<Self> = entries
            .map(|folder| Self { name: folder.file_name().unwrap().to_string_lossy().into_owned(), folder })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = tree(&self.folder);
        files.remove(Path::new("about.txt"));
        files
    }
}

/// Every file below a folder, by its path from there.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// An engine whose /etc/containerd lies beneath a Root.
#[derive(Debug)]
pub struct Configured {
    pub engine: Engine,
    host: Host,
    root: PathBuf,
}

impl Configured {
    /// # Panics
    /// Where the engine's root cannot be set up.
    pub fn set(engine: &Engine, unpacked: &Unpacked) -> Self {
        let host = Host::of(&Machine::demo(), unpacked);
        let root = host.folder().join("root");
        for folder in [ETC, "usr/bin", "lib/systemd/system", "var/lib/dpkg"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("usr/bin/containerd"), "").unwrap();
        host.busybox(&["mkdir", "-p", "/etc/containerd"]).well();
        host.busybox(&["mount", "--bind", "/stage/root/etc/containerd", "/etc/containerd"]).well();
        let unit = ["lib/systemd/system", "usr/lib/systemd/system"]
            .map(|folder| unpacked.tree.join(folder).join("containerd.service"));
        fs::copy(
            unit.iter().find(|path| path.exists()).unwrap(),
            root.join("lib/systemd/system/containerd.service"),
        )
        .unwrap();
        let said = host.call("/usr/bin", &["/usr/bin/containerd", "--version"]).well();
        let version = engines::Version::find(&said).unwrap();
        let status = format!("Package: containerd\nStatus: install ok installed\nVersion: {version}~ds1-1\n");
        fs::write(root.join("var/lib/dpkg/status"), status).unwrap();
        Self { engine: *engine, host, root }
    }

    /// Lays a configuration out, and nothing else.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn lay_out(&self, start: &Start) {
        let etc = self.root.join(ETC);
        for entry in fs::read_dir(&etc).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        for (path, bytes) in start.files() {
            let path = etc.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    /// A file of /etc/containerd.
    ///
    /// # Panics
    /// Where it is not there.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(ETC).join(name)).unwrap()
    }

    /// Puts a file into /etc/containerd.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn put(&self, name: &str, text: &str) {
        fs::write(self.root.join(ETC).join(name), text).unwrap();
    }

    /// Every file of /etc/containerd.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        tree(&self.root.join(ETC))
    }

    /// The state that rocworker wants for containerd now.
    ///
    /// # Panics
    /// Where rocworker does not find the engine.
    pub fn wanted(&self, config: &str) -> Desired {
        let root = Root::open(&self.root).unwrap();
        let config = Config::parse(Path::new("config.yaml"), config).unwrap();
        let mut versions = Versions::new(&root, None, BTreeMap::new());
        let containerd = Containerd::read(&root, &config, &mut versions).unwrap();
        actions(&config, &containerd, &Templates::built_in(), Path::new(WRAPPER))
    }

    /// Applies the desired state, as the reconciler would.
    ///
    /// # Panics
    /// For an action that is not containerd's, or that cannot be done.
    pub fn apply(&self, desired: &Desired) {
        apply_below(&self.root, desired);
    }

    /// Reverts the desired state. `before`: the files before it was applied.
    ///
    /// # Panics
    /// Where [`Configured::apply`] panics.
    pub fn undo(&self, desired: &Desired, before: &BTreeMap<PathBuf, Vec<u8>>) {
        for action in desired.actions.iter().rev() {
            let path = self.path(action);
            let Kind::Edited(edit) = &action.kind else {
                fs::remove_file(path).unwrap();
                continue;
            };
            let was = before.get(path.strip_prefix(self.root.join(ETC)).unwrap());
            let was = was.map(|bytes| String::from_utf8(bytes.clone()).unwrap());
            let back = edit.revert(&fs::read_to_string(&path).unwrap(), was.as_deref()).unwrap();
            assert_eq!(back.left, Vec::<String>::new());
            match back.text {
                Some(text) => fs::write(path, text).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
    }

    fn path(&self, action: &Action) -> PathBuf {
        self.root.join(action.path.path().unwrap().strip_prefix("/").unwrap())
    }

    /// `containerd config …`
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn config(&self, what: &str) -> Said {
        self.host.call("/usr/bin", &["/usr/bin/containerd", "config", what])
    }

    /// The effective configuration, or why containerd cannot load it. Without a file containerd 1.x dumps
    /// nothing, and uses the default.
    pub fn effective(&self) -> Result<Value, String> {
        let absent = !self.root.join(ETC).join("config.toml").exists();
        let said = self.config(if absent { "default" } else { "dump" });
        if !said.status.success() {
            return Err(said.stderr);
        }
        Ok(Format::Toml.read(&said.stdout).unwrap())
    }
}

/// Applies the desired state below a folder that is a machine's `/`.
///
/// # Panics
/// For an action that is not containerd's, or that cannot be done.
pub fn apply_below(root: &Path, desired: &Desired) {
    for action in &desired.actions {
        let path = root.join(action.path.path().unwrap().strip_prefix("/").unwrap());
        match &action.kind {
            Kind::Owned(Content::File { bytes, .. }) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            Kind::Edited(edit) => {
                let text = fs::read_to_string(&path).unwrap_or_default();
                fs::write(path, edit.apply(&text).unwrap()).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}
