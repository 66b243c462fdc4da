//! What of the engines' configuration counts now, whoever wrote it and wherever rocworker's own keys stand: files may have
//! moved since an apply, and a daemon may run with what its file said once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reconcile::Finding;
use root::{Kind, Root};

use super::docker::DefaultRuntime;
use super::unit::{Unit, named};
use super::{ALL, Containerd, Docker};

/// Files of engines that count now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InForce {
    /// What each engine reads that names a default runtime.
    pub files: BTreeMap<&'static str, Vec<PathBuf>>,
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
        for engine in ALL {
            let about = engine.about();
            found.files.insert(about.name, engine.in_force(root, containerd, docker));
            let Some((files, folders)) = about.names_programs_in else { continue };
            about.unit.into_iter().for_each(|unit| found.add_unit(root, unit));
            found.all.extend(files.iter().map(PathBuf::from));
            folders.iter().for_each(|folder| found.add_folder(root, Path::new(folder)));
        }
        found.all.extend(found.files.values().flatten().cloned());
        for files in found.files.values_mut().chain([&mut found.all]) {
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
