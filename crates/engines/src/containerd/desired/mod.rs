//! What the system's containerd needs: a runtime that is the wrapper, and CDI. Nothing of the user's loses its effect.
//!
//! containerd 2 merges drop-ins key by key, so there rocworker's drop-in is enough, and the main file at most gets one
//! import. containerd 1.x takes a plugin's whole section from the last file that has one, and the defaults of what that
//! leaves out: there the managed keys go into the section that counts.

mod drop_in;
mod in_place;
mod settings;

use std::path::Path;

use config::Config;
use host::version::Version;
use reconcile::{Action, Desired, Effect};
use render::Templates;

use super::{Containerd, ENGINE, NAME, UNIT};
use crate::{configured, spec_folder};
use settings::Settings;

const RUNTIME_TYPE: &str = "io.containerd.runc.v2";

/// What rocworker configures of the system's containerd. `wrapper`: where the wrapper is.
#[must_use]
pub fn actions(config: &Config, containerd: &Containerd, templates: &Templates, wrapper: &Path) -> Desired {
    let Containerd { notes, unread, version, .. } = containerd;
    let (wrapper, runtime) = (&*wrapper.display().to_string(), config.containerd.runtime.as_str());
    configured((&ENGINE, NAME), notes, unread, version, |version, desired| {
        let cdi_dir = spec_folder(config);
        want(&Wanted { containerd, templates, version, runtime, wrapper, cdi_dir }, desired)
    })
}

/// What both ways to configure containerd need: the drop-in, and keys in its files.
struct Wanted<'a> {
    containerd: &'a Containerd,
    templates: &'a Templates,
    version: Version,
    runtime: &'a str,
    wrapper: &'a str,
    /// The folder of rocworker's CDI spec, where containerd does not look by itself.
    cdi_dir: Option<&'a str>,
}

fn want(wanted: &Wanted<'_>, desired: &mut Desired) -> Result<(), String> {
    let Wanted { containerd, version, runtime, .. } = *wanted;
    if (version.major, version.minor) < (1, 6) || version.major > 2 {
        return Err(format!("rocworker knows containerd 1.6 to 2, and this is {version}"));
    }
    let settings = Settings::of(containerd, version)?;
    if settings.cri_is_disabled {
        desired.note(
            NAME,
            format!(
                "containerd's CRI plugin is switched off (disabled_plugins), as Docker's packages have it: it runs no \
                 containers of its own, and runtime {runtime} is not set"
            ),
        );
        return Ok(());
    }
    if let Some(other) = settings.runs_other(runtime, wanted.wrapper) {
        return Err(format!(
            "it has a runtime {runtime} already, which runs {other}: name another one (containerd.runtime), or take that \
             one away"
        ));
    }
    if version.major == 1 {
        in_place::want(wanted, &settings, desired)
    } else {
        drop_in::want(wanted, &settings, desired)
    }
}

impl Wanted<'_> {
    /// Containers outlive a restart of containerd: their shims keep them.
    fn with_restart(&self, action: Action) -> Action {
        if !self.containerd.unit {
            return action;
        }
        action.with(Effect::Restart { unit: UNIT.to_owned(), drain: None })
    }
}
