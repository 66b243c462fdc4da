//! What the system's containerd needs: a runtime that is the wrapper, and CDI. Nothing of the user's loses its effect.
//!
//! containerd 2 merges drop-ins key by key, so there a drop-in of ours is enough, and the main file at most gets one
//! import. containerd 1.x takes a plugin's whole section from the last file that has one, and the defaults of what that
//! leaves out: there our keys go into the section that counts.

mod drop_in;
mod in_place;
mod said;

use std::path::Path;

use reconcile::{Action, Desired, Effect};

use super::{Containerd, NAME, Text, UNIT};
use crate::cdi::DEFAULT_FOLDERS as CDI_DIRS;
use crate::config::{Config, Configure};
use crate::render::Templates;
use crate::selection::is_off;
use crate::version::Version;

use said::Said;

const RUNTIME_TYPE: &str = "io.containerd.runc.v2";

/// What should be so of the system's containerd. `wrapper`: where the wrapper stands.
#[must_use]
pub fn actions(config: &Config, containerd: &Containerd, templates: &Templates, wrapper: &Path) -> Desired {
    let mut desired = Desired::default();
    if is_off(config) || config.containerd.configure == Configure::Never {
        return desired;
    }
    for note in &containerd.notes {
        desired.note(NAME, note.as_str());
    }
    if let Err(problem) = want(config, containerd, templates, wrapper, &mut desired) {
        desired.problem(NAME, format!("containerd is left alone: {problem}"));
    }
    desired.of_or_undecided(NAME)
}

/// What the two ways of putting it in need to know.
struct Wanted<'a> {
    containerd: &'a Containerd,
    templates: &'a Templates,
    version: Version,
    runtime: &'a str,
    wrapper: &'a str,
    /// The folder of our CDI spec, where containerd does not look by itself.
    cdi_dir: Option<&'a str>,
}

fn want(
    config: &Config,
    containerd: &Containerd,
    templates: &Templates,
    wrapper: &Path,
    desired: &mut Desired,
) -> Result<(), String> {
    if !containerd.unread.is_empty() {
        let unread = containerd.unread.join("; ");
        return Err(format!("{unread}: which files it reads, and whether {UNIT} starts it, is not known"));
    }
    let version =
        containerd.version.clone().map_err(|reason| format!("its version is not known: {reason}"))?;
    if (version.major, version.minor) < (1, 6) || version.major > 2 {
        return Err(format!("rocworker knows containerd 1.6 to 2, and this is {version}"));
    }
    let said = Said::of(containerd, version)?;
    if said.cri_is_disabled {
        desired.note(
            NAME,
            format!(
                "containerd's CRI plugin is switched off (disabled_plugins), as Docker's packages have it: it runs no \
                 containers of its own, and runtime {} is not set",
                config.containerd.runtime
            ),
        );
        return Ok(());
    }
    let utf8 =
        |path: &'_ Path| path.to_str().map(str::to_owned).ok_or(format!("{} is not UTF-8", path.display()));
    let (wrapper, runtime) = (utf8(wrapper)?, &config.containerd.runtime);
    if let Some(other) = said.runtime_is_somebody_elses(runtime, &wrapper) {
        return Err(format!(
            "it has a runtime {runtime} already, which runs {other}: name another one (containerd.runtime), or take that \
             one away"
        ));
    }
    let cdi_dir = config.cdi.path.parent().unwrap_or(Path::new("/"));
    let cdi_dir = utf8(cdi_dir)?;
    let is_default = CDI_DIRS.contains(&cdi_dir.as_str()) || cdi_dir == "/run/cdi";
    let cdi_dir = Some(cdi_dir.as_str()).filter(|_| !is_default);
    let wanted = Wanted { containerd, templates, version, runtime, wrapper: &wrapper, cdi_dir };
    if version.major == 1 {
        in_place::want(&wanted, &said, desired)
    } else {
        drop_in::want(&wanted, &said, desired)
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

/// Whether a file can be edited, or why not.
fn writable(text: &Text) -> Result<(), String> {
    match text {
        Text::Refused(reason) => Err(reason.clone()),
        Text::Absent | Text::There(_) => Ok(()),
    }
}
