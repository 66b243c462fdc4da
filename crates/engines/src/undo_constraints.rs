//! What limits an undo of engines' configuration, whoever wrote it and wherever rocworker's own keys are now: settings
//! that name the managed runtime or the wrapper, and whether an engine may be restarted. Files may have moved since an apply, and a
//! daemon may run with an earlier text of its file.

use std::path::{Path, PathBuf};

use config::{Component, Config};
use reconcile::{Finding, Named, Running, UndoConstraints};
use root::{Kind, Root};

use super::containerd::UNIT;
use super::docker::desired::{restart_now, restart_with};
use super::docker::{self, DefaultRuntime, Installed};
use super::{ALL, Docker};
use crate::program::{INSTALLED, PACKAGED};
use host::unit::{Unit, named};

/// The files in which containerd's shims name the wrapper of a running container. A shim writes its options and the
/// runtime's path there (`WriteOptions` and `WriteRuntime` of runtime/v2/runc), and calls that path to stop a
/// container, whatever containerd's configuration says by then.
pub fn running() -> Vec<Running> {
    let bundles = |folder: &str| Running {
        folder: folder.into(),
        files: ["options.json", "runtime"].map(str::to_owned).to_vec(),
        what: "container".to_owned(),
    };
    ALL.iter().filter_map(|engine| engine.bundles).map(bundles).collect()
}

/// What limits an undo by the files beneath `root`, also for an engine that is not to be configured any more.
/// [`named_by_dockerd`] has what a running dockerd adds.
#[must_use]
pub fn undo_constraints(root: &Root, config: &Config, docker: &Docker) -> UndoConstraints {
    let mut found = UndoConstraints::default();
    found.running.insert(name(Component::Wrapper), running());
    for engine in &ALL {
        let files = sorted((engine.files)(root, config));
        found.namers.extend(files.iter().cloned());
        found.files.insert(engine.name.to_owned(), files);
        let Some((files, folders)) = engine.names_programs_in else { continue };
        engine.unit.into_iter().for_each(|unit| add_unit(&mut found, root, unit));
        found.namers.extend(files.iter().map(PathBuf::from));
        folders.iter().for_each(|folder| add_folder(&mut found, root, Path::new(folder)));
    }
    found.namers = sorted(found.namers);
    let Some(docker) = &docker.installed else { return found };
    let default = docker.unit.as_ref().and_then(|line| line.value(&["default-runtime"]));
    found.named.extend(default.map(|runtime| Named {
        component: name(Component::Docker),
        value: runtime.to_owned(),
        why: format!(
            "{} starts dockerd with --default-runtime {runtime}, which would name nothing: change that first",
            docker::UNIT
        ),
    }));
    let remedy = format!("{} (it keeps a default that is only taken out)", remedy(docker));
    found.remedies.insert(name(Component::Docker), remedy);
    if docker.ends_with.iter().any(|unit| unit == UNIT) {
        found.starts.insert(UNIT.to_owned(), vec![restart_with(config, docker, UNIT)]);
    }
    found.starts.insert(docker::UNIT.to_owned(), restart_now(config, docker));
    found
}

fn sorted(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.sort();
    files.dedup();
    files
}

/// A unit, its drop-ins and its environment files.
fn add_unit(found: &mut UndoConstraints, root: &Root, name: &str) {
    let unit = match Unit::of_engine(root, name) {
        (Some(unit), _) => unit,
        (None, unread) => {
            return found.unread.extend(unread.into_iter().map(|text| Finding { path: name.into(), text }));
        }
    };
    for file in &unit.environment_files {
        match named(root, name, &file.path) {
            Some(paths) => found.namers.extend(paths),
            None => found.unread.push(Finding {
                path: file.named_by.as_path().into(),
                text: format!(
                    "only systemd can tell which environment file {} is: write its path out",
                    file.path.display()
                ),
            }),
        }
    }
    found.namers.push(unit.path);
    found.namers.extend(unit.drop_ins);
}

fn add_folder(found: &mut UndoConstraints, root: &Root, folder: &Path) {
    let names = root.list(folder).unwrap_or_else(|error| {
        if !error.is_not_found() {
            found.unread.push(Finding { path: folder.into(), text: error.to_string() });
        }
        Vec::new()
    });
    let files = names.into_iter().map(|name| folder.join(name));
    // No engine reads a folder.
    let is_folder = |path: &PathBuf| root.stat(path).is_ok_and(|meta| meta.kind == Kind::Directory);
    found.namers.extend(files.filter(|path| !is_folder(path)));
}

fn remedy(docker: &Installed) -> String {
    let file = docker.config.display();
    format!("set \"default-runtime\": \"runc\" in {file}, then systemctl reload docker")
}

/// What the dockerd that runs names, which is asked: its default runtime, and the program of that.
#[must_use]
pub fn named_by_dockerd(root: &Root, config: &Config, docker: &Docker) -> Vec<Named> {
    let Some(docker) = &docker.installed else { return Vec::new() };
    let running = DefaultRuntime::of_running(root, docker);
    running.map_or_else(Vec::new, |default| named_by_default(config, docker, default))
}

/// What the running dockerd names, by its answer or by the reason why it gave none.
#[must_use]
pub fn named_by_default(
    config: &Config,
    docker: &Installed,
    default: Result<DefaultRuntime, String>,
) -> Vec<Named> {
    // Every path of the wrapper that an engine may have been given.
    let managed = || [INSTALLED, PACKAGED].map(str::to_owned).into();
    let (runtime, programs, why): (_, Vec<String>, _) = match default {
        Ok(default) => {
            let why = format!(
                "The running dockerd still uses default runtime {}; without it every `docker run` fails. To go on, \
                 {}, or systemctl restart docker",
                default.name,
                remedy(docker)
            );
            let programs = match default.program {
                Some(program) => vec![program],
                // The runtime has the managed name, and dockerd does not tell its program.
                None if default.name == config.docker.runtime => managed(),
                None => Vec::new(),
            };
            (default.name, programs, why)
        }
        Err(problem) => {
            let why = format!(
                "dockerd runs and does not say which default runtime it has ({problem}): see that it answers, or stop it \
                 (systemctl stop docker)"
            );
            (config.docker.runtime.clone(), managed(), why)
        }
    };
    let named = |component, value| Named { component: name(component), value, why: why.clone() };
    let programs = programs.into_iter().map(|program| named(Component::Wrapper, program));
    std::iter::once(named(Component::Docker, runtime)).chain(programs).collect()
}

fn name(component: Component) -> String {
    component.as_ref().to_owned()
}
