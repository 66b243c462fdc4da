//! What dpkg's maintainer scripts ask before the program goes, and after another version of it has come.
//!
//! dpkg holds its lock meanwhile, so that packages can neither come nor go: what rocworker has installed by apt stays as
//! it is, with the repositories that it came from.

use std::path::Path;
use std::time::Duration;

use config::Component;
use engines::program::PACKAGED;
use engines::undo_constraints::running;
use reconcile::Resource;

use crate::daemon::LOCK;
use crate::daemon::socket::{Answer, serving};
use crate::memory;
use crate::own_program;
use crate::run::{Error, Run, State};

/// A daemon ends within a second of the signal.
const STOPS_WITHIN: Duration = Duration::from_secs(2);

/// What is stored on a machine from one version to the next: a file, and the newest schema_version of it that this version
/// reads.
pub fn formats() -> Vec<(&'static str, u32)> {
    reconcile::FORMATS.into_iter().chain([memory::FORMAT]).collect()
}

/// Why the program cannot go, in sentences, before anything is reverted. `forever`: the package is purged, and what it
/// remembers of its changes goes too.
pub fn keeps_program(run: &Run<'_>, forever: bool) -> Result<Vec<String>, Error> {
    let by_apt = installed_by_apt(&State::of_receipt(run.root)?);
    let by_apt = by_apt.first().filter(|_| forever).map(|first| {
        let what = match by_apt.len() {
            1 => "it came".to_owned(),
            count => format!("it and {} more came", count - 1),
        };
        format!(
            "{}: {what} by apt, and dpkg can remove none of it while dpkg itself is at work: run rocworker undo",
            first.shown(run.root)
        )
    });
    let runs = running().into_iter().map(|running| running.by(run.root, Path::new(PACKAGED)));
    let engines = runs.filter_map(Result::transpose).map(|what| {
        let path = run.root.shown(PACKAGED).display().to_string();
        match what {
            Ok(what) => format!("{path}: {what} runs by it, and could not be stopped without it: stop it"),
            Err(unknown) => format!("{path}: {unknown}; see that it can be read"),
        }
    });
    Ok(by_apt.into_iter().chain(engines).chain(daemon(run)?).collect())
}

/// A daemon that still runs. The package has stopped the one of systemd, as far as the machine's policy lets it; one
/// that runs on would act by a program that is gone, and be in the way of the next.
fn daemon(run: &Run<'_>) -> Result<Option<String>, Error> {
    let (who, kill) = match serving(run.root, STOPS_WITHIN)? {
        None => return Ok(None),
        Some(Answer::Report(report)) => {
            (format!("as process {}", report.pid), format!("kill {}", report.pid))
        }
        Some(Answer::Silent { .. }) => {
            let lock = run.root.shown(LOCK).display().to_string();
            (format!("as the process that has {lock}"), format!("fuser --kill -TERM {lock}"))
        }
    };
    Ok(Some(format!(
        "{}: rocworker serve runs still, {who}, and would outlive its program: systemctl stop rocworker.service, or \
         {kill}",
        run.root.shown(own_program::PACKAGED).display()
    )))
}

/// The managed packages, and the files by which apt finds them. A run that leaves packages alone cannot revert them.
pub fn installed_by_apt(state: &State) -> Vec<Resource> {
    let entries = state.receipt.entries.iter();
    let of_packages = entries.filter(|entry| entry.component == Component::Packages.as_ref());
    of_packages.map(|entry| entry.path.clone()).collect()
}
