//! Whether the node's containerd reads CDI specs: the one that k3s, RKE2 or MicroK8s brings, or the system's where
//! rocworker is not to configure it. Otherwise the check of engines asks the system's.

use std::path::Path;
use std::time::Duration;

use check::{About, Check, NO_COMMANDS};
use edit::Format;
use engines::Containerd;
use host::own_containerd::{Cdi, by_dump};

use super::NAME;
use super::distribution::Distribution;
use crate::doctor::machine::Subject;

/// How long containerd may take to print its configuration.
const PATIENCE: Duration = Duration::from_secs(10);

/// `by_cdi`: whether a device plugin gives pods CDI names. Device nodes need no CDI.
pub(super) fn check(subject: &Subject<'_>, distribution: &Distribution, by_cdi: bool) -> Option<Check> {
    let about = About::one(NAME, "containerd");
    let Some(own) = distribution.containerd else {
        return if by_cdi { of_system(subject, about) } else { None };
    };
    let is_made = subject.root.exists(own.file);
    let dumped = is_made.then(|| dumped(subject, Path::new(own.program), Path::new(own.file))).flatten();
    let folder = subject.config.cdi.path.parent()?.display().to_string();
    let wrong = |about: About, what: &str, remedy: String| match by_cdi {
        true => about.failed(
            format!("{what}, and pods are given their GPUs by CDI names"),
            format!("start the device plugin with --allocate=devices, or {remedy}"),
        ),
        false => {
            about.ok(format!("{what}; only a device plugin with --allocate=cdi needs it. For that {remedy}"))
        }
    };
    Some(match dumped.unwrap_or_else(|| own.by_file(subject.root)) {
        Cdi::On(folders) if folders.contains(&folder) => about.ok(format!("CDI is on, and reads {folder}")),
        Cdi::On(mut folders) => {
            let what = format!("CDI reads {}, and not {folder}", folders.join(", "));
            folders.push(folder);
            wrong(about, &what, own.remedy_of_folders(subject.root, &folders))
        }
        Cdi::Off => wrong(about, "CDI is off", own.remedy(subject.root)),
        Cdi::Lacking => {
            wrong(about, "this containerd is older than 1.7 and has no CDI", format!("update {}", own.name))
        }
        Cdi::ByRelease => about.skipped(format!(
            "CDI is off in containerd 1.7 and on from 2.0: {} does not say which this is",
            own.file
        )),
        Cdi::Unknown(why) => about.skipped(format!("whether CDI is on is not known: {why}")),
    })
}

/// The system's containerd, where pods are given CDI names.
fn of_system(subject: &Subject<'_>, about: About) -> Option<Check> {
    subject.config.containerd.managed.off()?;
    let containerd = Containerd::find(subject.root, &subject.config.containerd.config)?;
    let main = &containerd.main()?.path;
    if subject.programs.is_none() {
        return Some(about.skipped(format!("containerd is not asked: {NO_COMMANDS}")));
    }
    let folder = subject.config.cdi.path.parent()?.display().to_string();
    Some(match dumped(subject, &containerd.program, main)? {
        Cdi::On(folders) if folders.contains(&folder) => about.ok(format!("CDI is on, and reads {folder}")),
        _ => about.failed(
            format!("containerd reads no CDI specs from {folder}, and pods are given their GPUs by CDI names"),
            "containerd: {configure: auto} in /etc/rocworker/config.yaml, then rocworker apply. containerd before 1.7 has \
             no CDI: start the device plugin with --allocate=devices",
        ),
    })
}

/// What containerd says of the file that it reads; `None` where it cannot be asked. containerd 1 dumps nothing without
/// the file, and runs with its defaults.
fn dumped(subject: &Subject<'_>, program: &Path, file: &Path) -> Option<Cdi> {
    let (program, path) = (program.to_string_lossy(), file.to_string_lossy());
    let argv = match subject.root.exists(file) {
        true => vec![&*program, "--config", &path, "config", "dump"],
        false => vec![&*program, "config", "default"],
    };
    let output = subject.programs?.run(&argv, PATIENCE).ok()?;
    Some(by_dump(&Format::Toml.read(&String::from_utf8_lossy(&output.stdout)).ok()?))
}
