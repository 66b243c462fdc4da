//! What of the engines' configuration counts now, whoever wrote it and wherever rocworker's own keys stand: files may have
//! moved since an apply, and a daemon may run with what its file said once.

use std::path::{Path, PathBuf};

use reconcile::Finding;
use root::{Kind, Root};

use super::containerd::{self, Containerd};
use super::docker::{self, CommandLine, DefaultRuntime, Docker};
use super::unit::{Unit, named};

/// Where podman and CRI-O, which rocworker does not configure, name a runtime (containers.conf(5), crio.conf.d(5)).
const OTHERS: [&str; 3] =
    ["/etc/containers/containers.conf", "/usr/share/containers/containers.conf", "/etc/crio/crio.conf"];
/// Folders of such files.
const OTHER_FOLDERS: [&str; 2] = ["/etc/containers/containers.conf.d", "/etc/crio/crio.conf.d"];

/// Files of engines that count now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InForce {
    /// That containerd loads.
    pub containerd: Vec<PathBuf>,
    /// That dockerd reads.
    pub docker: Vec<PathBuf>,
    /// All that can name a runtime's program: these, units with their environment files, and files of other engines.
    pub all: Vec<PathBuf>,
    /// What could name one too, and is not read, with the reason.
    pub unread: Vec<Finding>,
    /// What the dockerd that runs has, or why it does not say; `None`: none runs, or nobody asked.
    pub running: Option<Result<DefaultRuntime, String>>,
}

impl InForce {
    /// Looks at the files beneath `root`.
    #[must_use]
    pub fn read(root: &Root, containerd: Option<&Containerd>, docker: &Docker) -> Self {
        let mut found = Self::default();
        if let Some(containerd) = containerd {
            found.containerd.extend(containerd.files.iter().map(|file| file.path.clone()));
            // The configuration may name another than its unit does.
            found.containerd.extend(containerd::loaded_by_unit(root));
        }
        if let Some(docker) = &docker.installed {
            let by_unit = docker.unit.as_ref().and_then(CommandLine::config);
            found.docker.push(by_unit.unwrap_or_else(|| docker::DEFAULT_CONFIG.into()));
            found.docker.push(docker.config.clone());
        }
        for name in [containerd::UNIT, docker::UNIT] {
            found.add_unit(root, name);
        }
        found.all.extend(OTHERS.map(PathBuf::from));
        for folder in OTHER_FOLDERS {
            found.add_folder(root, Path::new(folder));
        }
        found.all.extend(found.containerd.iter().chain(&found.docker).cloned());
        for files in [&mut found.containerd, &mut found.docker, &mut found.all] {
            files.sort();
            files.dedup();
        }
        found
    }

    fn add_unit(&mut self, root: &Root, name: &str) {
        let unit = match Unit::read(root, name, None) {
            Ok(Some(unit)) => unit,
            Ok(None) => return,
            // It starts nothing.
            Err(_) if Unit::is_masked(root, name) => return,
            Err(text) => return self.unread.push(Finding { path: name.into(), text }),
        };
        for file in &unit.environment_files {
            match named(root, name, &file.path) {
                Some(paths) => self.all.extend(paths),
                None => self.unread.push(Finding {
                    path: file.named_by.as_path().into(),
                    text: format!(
                        "only systemd can tell which environment file {} is: write its path out",
                        file.path.display()
                    ),
                }),
            }
        }
        self.all.push(unit.path);
        self.all.extend(unit.drop_ins);
    }

    fn add_folder(&mut self, root: &Root, folder: &Path) {
        let names = match root.list(folder) {
            Ok(names) => names,
            Err(error) => {
                if !error.is_not_found() {
                    self.unread.push(Finding { path: folder.into(), text: error.to_string() });
                }
                return;
            }
        };
        let files = names.into_iter().map(|name| folder.join(name));
        // No engine reads a folder.
        let is_folder = |path: &PathBuf| root.stat(path).is_ok_and(|meta| meta.kind == Kind::Directory);
        self.all.extend(files.filter(|path| !is_folder(path)));
    }

    /// The same, and the dockerd that runs is asked.
    #[must_use]
    pub fn asking(self, root: &Root, docker: &Docker) -> Self {
        let running = docker.installed.as_ref().and_then(|docker| DefaultRuntime::of_running(root, docker));
        Self { running, ..self }
    }
}
