//! The unit that runs before engines start, so that none of them finds what was true at the last start.

use std::path::{Path, PathBuf};

use minijinja::context;
use reconcile::{Action, Content, Desired, Effect, Kind, Stage};

use crate::config::Config;
use crate::desired::own_unit::{self, Error};
use crate::facts::Facts;
use crate::render::{self, Templates};

/// What notes are about, and the component.
pub const ABOUT: &str = "boot";

pub const UNIT_FILE: &str = "/etc/systemd/system/rocworker-boot.service";

/// What `systemctl enable` would make. It is a link of ours instead, which undo takes back like everything else.
const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/rocworker-boot.service";

/// Beyond what is waited for GPUs: each of two looks may have to wait a minute for an apply that is at work.
const BEYOND_THE_WAIT_S: u32 = 120;

/// Whether this machine is to have the unit.
#[must_use]
pub fn is_wanted(config: &Config, facts: &Facts) -> bool {
    config.boot.unit && own_unit::is_for(config, facts)
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
        Err(why) => {
            let text = format!(
                "rocworker-boot.service is not written: {why}, then apply again; or set `boot: {{unit: false}}`"
            );
            desired.note(ABOUT, text);
            return Ok(desired);
        }
    };
    let reason = "before engines start, they are told of the GPUs of this start";
    let unit = Action::file(Stage::Shape, UNIT_FILE, text(config, templates, program)?, reason);
    desired.push(unit.with(Effect::SystemdReload));
    let link = Kind::Owned(Content::Link { target: UNIT_FILE.into() });
    let link = Action::new(Stage::Shape, WANTED, link, "systemd runs it at each start");
    desired.push(link.with(Effect::SystemdReload));
    Ok(desired)
}

fn text(config: &Config, templates: &Templates, program: &Path) -> Result<String, Error> {
    let limit_s = config.boot.wait_s + BEYOND_THE_WAIT_S;
    let expected = [program.display().to_string(), "boot".to_owned()];
    own_unit::text(
        templates,
        (render::BOOT, UNIT_FILE),
        &expected,
        context! { program => &expected[0], limit_s },
    )
}
