//! What should be on a worker: each concern's part, in the order in which one names the other.

use reconcile::{Action, Content, Desired, Kind, Stage};
use root::Attributes;

use super::cdi::{Wanted, wanted};
use super::selection::{Selection, is_off, select};
use crate::cdi;
use crate::config::{self, Config};
use crate::premises::Premises;
use crate::program::Program;

/// Why it cannot be said what should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Cdi(#[from] cdi::Error),
}

/// What should be, by the configuration, on the machine as it is. Pure: the same premises give the same answer.
///
/// # Errors
/// When the configuration names what is not there, or a template does not give what it should.
pub fn desired(config: &Config, premises: &Premises) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    if is_off(config) {
        desired.note(
            "rocworker",
            "the configuration leaves AMD's GPUs alone (compute-runtime): nothing is set up",
        );
        return Ok(desired);
    }
    let selection = select(config, &premises.facts)?;
    say_what_is_left_out(&selection, &mut desired);
    let Wanted::Spec(spec) = wanted(config, &selection, &premises.facts.machine) else {
        desired.note(
            "gpu",
            "a container can be given none of this machine's GPUs, and rocworker doctor says why: engines are told of \
             none",
        );
        return Ok(desired);
    };
    if let Err(error) = &premises.cdi_place {
        desired.problem("cdi", error.to_string());
    } else {
        desired.push(spec_file(config, cdi::text(&spec)?));
    }
    match &premises.wrapper {
        Ok(program) => desired.extend(wrapper(program)),
        Err(why) => desired.problem("wrapper", why.clone()),
    }
    Ok(desired)
}

/// The CDI spec as a file of ours.
#[must_use]
pub fn spec_file(config: &Config, text: String) -> Action {
    Action::file(Stage::Expose, &config.cdi.path, text, "engines find the GPUs here")
        .contested_by("amd-ctk or the Concourse charm")
}

fn say_what_is_left_out(selection: &Selection<'_>, desired: &mut Desired) {
    for gpu in &selection.left_out {
        let name = gpu.index.map_or_else(String::new, |index| index.to_string());
        for problem in &gpu.problems {
            desired.problem("gpu", format!("GPU {name} is configured and left out: {problem}"));
        }
    }
}

/// The wrapper's program, where no package has put it.
fn wrapper(program: &Program) -> Desired {
    let mut desired = Desired::default();
    if let Some(bytes) = &program.bytes {
        let attributes = Attributes { mode: 0o755, owner: None };
        let content = Content::File { bytes: bytes.clone(), attributes };
        let reason = "engines run it in place of runc";
        desired.push(Action::new(Stage::Expose, &program.path, Kind::Owned(content), reason));
    }
    desired
}
