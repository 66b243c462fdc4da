//! What the units of ours have in common: which machines they are for, and that a template gives one that runs this program.

use std::path::Path;

use minijinja::Value;
use reconcile::{Action, Content, Desired, Effect, Kind, Stage};

use crate::config::Config;
use crate::engines::unit::Unit;
use crate::facts::Facts;
use crate::render::{self, Templates};
use crate::selection::is_off;

/// Why a unit cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Template(#[from] render::Error),
    #[error("{place}: the unit that it gives does not run `{expected}`: mend the template")]
    Unfit { place: String, expected: String },
}

/// Whether this machine is one for units of ours: systemd starts it, and it has a card of AMD's, usable or not.
#[must_use]
pub fn is_for(config: &Config, facts: &Facts) -> bool {
    !is_off(config) && facts.systemd && facts.amd().next().is_some()
}

/// No unit, because no program can be named that stays. `about`: its section of the configuration.
pub(super) fn without_program(about: &str, unit: &str, why: &str) -> Desired {
    let mut desired = Desired::default();
    desired.note(
        about,
        format!("{unit} is not written: {why}, then apply again; or set `{about}: {{unit: false}}`"),
    );
    desired
}

/// What `systemctl enable` would make, as a managed link, which undo removes.
pub(super) fn enabling_link(stage: Stage, link: &str, unit_file: &str) -> Action {
    let kind = Kind::Owned(Content::Link { target: unit_file.into() });
    Action::new(stage, link, kind, "systemd runs it at each start").with(Effect::SystemdReload)
}

/// The text of a unit's template, which runs what is expected: the program and its command.
///
/// # Errors
/// When the template does not give such a unit.
pub(super) fn text(
    templates: &Templates,
    (template, file): (&'static str, &str),
    expected: &[String],
    context: Value,
) -> Result<String, Error> {
    let text = templates.render(template, context)?;
    if Unit::parse(Path::new(file), &text).exec_start == expected {
        Ok(text)
    } else {
        Err(Error::Unfit { place: templates.place(template), expected: expected.join(" ") })
    }
}
