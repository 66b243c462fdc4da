//! What the units of ours have in common: which machines they are for, and that a template gives one that runs this program.

use std::path::Path;

use minijinja::Value;

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
