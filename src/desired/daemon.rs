//! The unit that keeps the machine so while it runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use minijinja::context;
use reconcile::{Action, Desired, Effect, Stage};

use crate::config::Config;
use crate::desired::own_unit::{self, Error};
use crate::engines;
use crate::facts::Facts;
use crate::render::{self, Templates};

/// What notes are about, and the component.
pub const ABOUT: &str = "daemon";

pub const UNIT: &str = "rocworker.service";
pub const UNIT_FILE: &str = "/etc/systemd/system/rocworker.service";

const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/rocworker.service";

/// Where its template lets it write in any case.
const WRITABLE: [&str; 6] = ["/etc", "/var/lib", "/run", "/dev", "/sys/devices", "/usr/local/lib"];

/// Whether this machine is to have the unit.
#[must_use]
pub fn is_wanted(config: &Config, facts: &Facts) -> bool {
    config.daemon.unit && own_unit::is_for(config, facts)
}

/// What should be so for it. `program`: what it is to run, or why nothing can be named that stays.
///
/// # Errors
/// When the template does not give a unit that runs the program.
pub fn actions(
    config: &Config,
    facts: &Facts,
    templates: &Templates,
    program: &Result<PathBuf, String>,
) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    if !is_wanted(config, facts) {
        return Ok(desired);
    }
    let program = match program {
        Ok(program) => program,
        Err(why) => return Ok(own_unit::without_program(ABOUT, UNIT, why)),
    };
    let unit = text(config, templates, program)?;
    let reason = "it follows the machine's GPUs while it runs";
    let unit = Action::file(Stage::Expose, UNIT_FILE, unit, reason)
        .with(Effect::SystemdReload)
        .with(Effect::Start { unit: UNIT.to_owned() })
        .taken_back_with(vec![Effect::SystemdReload, Effect::Stop { unit: UNIT.to_owned() }]);
    desired.push(unit);
    desired.push(own_unit::enabling_link(Stage::Expose, WANTED, UNIT_FILE));
    Ok(desired)
}

fn text(config: &Config, templates: &Templates, program: &Path) -> Result<String, Error> {
    let expected = [program.display().to_string(), "serve".to_owned()];
    let folders: Vec<String> = folders(config).into_iter().map(str::to_owned).collect();
    own_unit::text(
        templates,
        (render::DAEMON, UNIT_FILE),
        &expected,
        context! { program => &expected[0], folders },
    )
}

/// The folders outside [`WRITABLE`] in which it may have to write. By the configuration alone: a unit that changed with
/// what is there now would begin anew with each GPU that goes.
fn folders(config: &Config) -> Vec<&str> {
    let of_engines = engines::ALL.iter().filter_map(|engine| Some(&(engine.settings)(config)?.config));
    let files = of_engines.chain([&config.cdi.path]);
    let folders = files.filter_map(|path| path.parent()?.to_str());
    // What a unit's line takes as it stands: no blank, no quote, no specifier.
    let is_plain = |folder: &str| {
        folder.starts_with('/')
            && folder.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte))
    };
    let is_known = |folder: &str| WRITABLE.iter().any(|known| Path::new(folder).starts_with(known));
    let found: BTreeSet<&str> = folders.filter(|it| is_plain(it) && !is_known(it)).collect();
    found.into_iter().collect()
}
