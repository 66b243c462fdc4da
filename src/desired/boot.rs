//! The unit that runs before engines start, so that none of them finds what was true at the last start.

use std::path::{Path, PathBuf};

use minijinja::context;
use reconcile::{Action, Desired, Effect, Stage};

use crate::config::Config;
use crate::desired::own_unit::{self, Error};
use crate::facts::Facts;
use crate::render::{self, Templates};

/// What notes are about, and the component.
pub const ABOUT: &str = "boot";

pub const UNIT_FILE: &str = "/etc/systemd/system/rocworker-boot.service";

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
        Err(why) => return Ok(own_unit::without_program(ABOUT, "rocworker-boot.service", why)),
    };
    let reason = "before engines start, they are told of the GPUs of this start";
    let unit = Action::file(Stage::Shape, UNIT_FILE, text(config, templates, program)?, reason);
    desired.push(unit.with(Effect::SystemdReload));
    desired.push(own_unit::enabling_link(Stage::Shape, WANTED, UNIT_FILE));
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
