//! A package as data, and real dpkg-deb that builds it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::control::Control;

/// A script that dpkg runs, by its name in the package (deb-preinst(5) and its neighbours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Script {
    Preinst,
    Postinst,
    Prerm,
    Postrm,
    /// The script that debconf runs before the installation, to ask.
    Config,
}

impl Script {
    fn name(self) -> &'static str {
        match self {
            Self::Preinst => "preinst",
            Self::Postinst => "postinst",
            Self::Prerm => "prerm",
            Self::Postrm => "postrm",
            Self::Config => "config",
        }
    }
}

#[derive(Clone, Debug)]
enum Content {
    File { bytes: Vec<u8>, mode: u32 },
    Link(String),
}

/// A binary package. Without further settings it has what dpkg requires at least.
#[derive(Clone, Debug)]
pub struct Package {
    control: Control,
    content: BTreeMap<String, Content>,
    conffiles: Vec<String>,
    scripts: BTreeMap<Script, String>,
    templates: Option<String>,
}

impl Package {
    /// A package for every architecture, so that it suits whatever machine runs the test.
    pub fn new(name: &str, version: &str) -> Self {
        let control = Control::default()
            .with("Package", name)
            .with("Version", version)
            .with("Architecture", "all")
            .with("Maintainer", "rocworker's tests <tests@example.invalid>")
            .with("Description", "made by a test of rocworker");
        Self {
            control,
            content: BTreeMap::new(),
            conffiles: Vec::new(),
            scripts: BTreeMap::new(),
            templates: None,
        }
    }

    /// A field of its control file, in place of what it holds now.
    #[must_use]
    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.control = self.control.with(name, value);
        self
    }

    #[must_use]
    pub fn architecture(self, architecture: &str) -> Self {
        self.field("Architecture", architecture)
    }

    #[must_use]
    pub fn depends(self, on: &str) -> Self {
        self.field("Depends", on)
    }

    #[must_use]
    pub fn conflicts(self, with: &str) -> Self {
        self.field("Conflicts", with)
    }

    #[must_use]
    pub fn breaks(self, what: &str) -> Self {
        self.field("Breaks", what)
    }

    /// A file by its absolute path.
    #[must_use]
    pub fn file(self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.put(path, Content::File { bytes: bytes.into(), mode: 0o644 })
    }

    /// A file that can be executed.
    #[must_use]
    pub fn program(self, path: &str, text: &str) -> Self {
        self.put(path, Content::File { bytes: text.into(), mode: 0o755 })
    }

    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.put(path, Content::Link(target.to_owned()))
    }

    /// A file that is the user's to change.
    #[must_use]
    pub fn conffile(mut self, path: &str, text: &str) -> Self {
        self.conffiles.push(path.to_owned());
        self.file(path, text)
    }

    /// A maintainer script, with its `#!`.
    #[must_use]
    pub fn script(mut self, script: Script, text: &str) -> Self {
        self.scripts.insert(script, text.to_owned());
        self
    }

    /// debconf's questions (debconf-devel(7)); [`Script::Config`] asks them.
    #[must_use]
    pub fn templates(mut self, text: &str) -> Self {
        self.templates = Some(text.to_owned());
        self
    }

    /// A file of this many bytes that no compression makes smaller, for disks that fill and downloads that stop.
    #[must_use]
    pub fn weight(self, bytes: usize) -> Self {
        let path = format!("/usr/share/{}/weight", self.name());
        self.file(&path, noise(bytes))
    }

    fn put(mut self, path: &str, content: Content) -> Self {
        assert!(path.starts_with('/'), "{path} is to be absolute");
        self.content.insert(path.to_owned(), content);
        self
    }

    pub fn name(&self) -> &str {
        self.control.get("Package").unwrap()
    }

    pub fn version(&self) -> &str {
        self.control.get("Version").unwrap()
    }

    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// `NAME_VERSION_ARCHITECTURE.deb`, without the version's epoch, as archives name it.
    pub fn file_name(&self) -> String {
        let version = self.version().split_once(':').map_or(self.version(), |(_, version)| version);
        format!("{}_{version}_{}.deb", self.name(), self.control.get("Architecture").unwrap())
    }

    /// Builds it into a folder.
    ///
    /// # Panics
    /// Where dpkg-deb refuses.
    pub fn build(&self, into: &Path) -> PathBuf {
        let stage = tempfile::tempdir().unwrap();
        let tree = stage.path().join("tree");
        let meta = tree.join("DEBIAN");
        fs::create_dir_all(&meta).unwrap();
        set_mode(&tree, 0o755);
        set_mode(&meta, 0o755);
        fs::write(meta.join("control"), self.control.text()).unwrap();
        if !self.conffiles.is_empty() {
            fs::write(meta.join("conffiles"), self.conffiles.join("\n") + "\n").unwrap();
        }
        if let Some(templates) = &self.templates {
            fs::write(meta.join("templates"), templates).unwrap();
        }
        for (script, text) in &self.scripts {
            let path = meta.join(script.name());
            fs::write(&path, text).unwrap();
            set_mode(&path, 0o755);
        }
        for (path, content) in &self.content {
            lay_out(&tree, path, content);
        }
        let file = into.join(self.file_name());
        let mut command = Command::new("dpkg-deb");
        // Compression would take longer than everything else.
        command.args(["--build", "--root-owner-group", "-Znone"]).arg(&tree).arg(&file);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        file
    }
}

fn lay_out(tree: &Path, path: &str, content: &Content) {
    let file = tree.join(path.trim_start_matches('/'));
    // Each folder gets its mode by itself: create_dir_all follows the caller's umask.
    let mut folders: Vec<&Path> = file.ancestors().skip(1).take_while(|folder| *folder != tree).collect();
    folders.reverse();
    for folder in folders {
        fs::create_dir_all(folder).unwrap();
        set_mode(folder, 0o755);
    }
    match content {
        Content::File { bytes, mode } => {
            fs::write(&file, bytes).unwrap();
            set_mode(&file, *mode);
        }
        Content::Link(target) => symlink(target, &file).unwrap(),
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Bytes without a pattern, equal in each run (xorshift64, Marsaglia 2003).
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend(state.to_le_bytes());
    }
    out.truncate(bytes);
    out
}
