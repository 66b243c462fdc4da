//! Which version of Concourse wrote the configuration of containerd from which rocworker makes the managed one. A worker
//! that has the managed configuration writes none of its own. After an upgrade of Concourse, the file that is there is
//! still the older release's.

use host::version::Version;

use crate::concourse::{Concourse, Worker};

/// The version of Concourse that wrote the worker's configuration of containerd. Rocworker remembers it for later runs. `before`: the remembered version.
#[must_use]
pub fn written_by(concourse: &Concourse, before: Option<Version>) -> Option<Version> {
    match &concourse.worker {
        // A worker that was given no configuration writes one at each start.
        Some(Worker { was_given_config: false, version: Ok(version), .. }) => Some(*version),
        Some(_) => before,
        // A worker that cannot be looked at just now keeps its version.
        None => before.filter(|_| concourse.unknown.is_some()),
    }
}

/// A warning after an upgrade of Concourse. `before`: the version that [`written_by`] remembers.
#[must_use]
pub fn out_of_date(concourse: &Concourse, before: Option<Version>) -> Option<String> {
    let worker = concourse.worker.as_ref().filter(|it| it.was_given_config && it.written_config.is_some())?;
    let (now, then) = (*worker.version.as_ref().ok()?, before?);
    (now != then).then(|| {
        format!(
            "its containerd is configured by what Concourse {then} wrote, with rocworker's PATH, and Concourse is {now} now, \
             which may mean other settings: rocworker undo, start the worker once, and apply again"
        )
    })
}
