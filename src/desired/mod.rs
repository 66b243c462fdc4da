//! What should be on the machine: pure functions of Observations and Config. Each component gives its part, in the order in
//! which one names the other.

pub mod boot;
pub mod daemon;
pub mod driver;
pub mod host;
pub mod own_unit;
pub mod packages;
pub mod policy;
mod rocm_installer;
pub mod therock;

use reconcile::{Action, Content, Desired, Kind, Stage};
use root::Attributes;

use crate::cdi::{self, Wanted, wanted};
use crate::component::Component;
use crate::config::{self, Config};
use crate::engines::concourse::desired::set_up;
use crate::engines::{self, Wish};
use crate::host::Around;
use crate::observations::Observations;
use crate::program::Program;
use crate::selection::{Selection, is_off, select};

/// Why it cannot be said what should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Unit(#[from] own_unit::Error),
    #[error(transparent)]
    Cdi(#[from] cdi::Error),
    #[error(transparent)]
    Host(#[from] host::Error),
    #[error(transparent)]
    Packages(#[from] packages::Error),
    #[error(transparent)]
    Policy(#[from] policy::Error),
}

/// What should be, by the configuration, on the machine as it is. Pure: the same observations give the same answer.
///
/// # Errors
/// When the configuration names what is not there, or a template does not give what it should.
pub fn desired(config: &Config, observations: &Observations) -> Result<Desired, Error> {
    let undo_constraints = observations.engines.undo_constraints.clone();
    let mut desired = Desired { undo_constraints, ..Desired::default() };
    if is_off(config) {
        desired.note(
            "rocworker",
            "the configuration leaves AMD's GPUs alone (compute-runtime): nothing is set up",
        );
        desired.extend(of_engines(config, observations, &select(config, &observations.facts)?, None));
        return Ok(desired);
    }
    for path in observations.templates.unknown() {
        let path = path.display();
        desired.note("templates", format!("{path} overrides no template: none has this name"));
    }
    let facts = &observations.facts;
    let boot = boot::actions(config, facts, &observations.templates, &observations.own_program)?;
    // The nodes of a container are set at its start by one of the two.
    let has_unit = !boot.actions.is_empty();
    let render_gid = observations.groups.gid(host::GROUP);
    desired.extend(host::actions(config, facts, &observations.templates, render_gid, has_unit)?);
    desired.extend(boot.of(Component::Boot));
    if let Some(found) = &observations.packages {
        if facts.amd().next().is_some() {
            let drivers = driver::part(config, facts, observations.driver.as_ref(), found);
            let is_container = matches!(facts.virtualization, Some(Around::Container(_)));
            let templates = &observations.templates;
            desired.extend(packages::actions(config, found, templates, &drivers.bring, is_container)?);
            desired.extend(drivers.said);
            desired.extend(therock::actions(config));
        } else {
            // A card that is not there at one boot is no reason to remove gigabytes.
            desired.undecided.push(Component::Packages.as_ref().to_owned());
        }
    }
    let selection = select(config, &observations.facts)?;
    selection.why_left_out().for_each(|why| desired.problem("gpu", why));
    if observations.facts.amd().next().is_none() {
        if observations.has_pci {
            desired.note("gpu", "this machine has no AMD GPU: nothing is set up");
        } else {
            desired.is_undecided = true;
            desired.note(
                "gpu",
                "/sys/bus/pci/devices is not there, so that nobody knows which GPUs this machine has: nothing is set up, \
                 and nothing taken back",
            );
            return Ok(desired);
        }
        desired.extend(of_engines(config, observations, &selection, None));
        return Ok(desired);
    }
    desired.extend(spec(config, observations, &selection)?);
    match &observations.wrapper {
        // While a card is there, usable or not: a driver that comes late must not restart an engine twice.
        Ok(program) => desired.extend(runtime(config, observations, &selection, program)?),
        Err(why) => {
            desired
                .problem("wrapper", format!("{why}; what engines are told of it stays as it is until then"));
            [Component::Wrapper, Component::Policy]
                .into_iter()
                .for_each(|component| desired.leave(component));
            engines::ALL.iter().for_each(|engine| desired.leave(engine.name));
        }
    }
    let (templates, program) = (&observations.templates, &observations.own_program);
    let keeper = daemon::actions(config, facts, templates, program)?;
    desired.extend(keeper.of(Component::Daemon));
    Ok(desired)
}

/// Each engine's part. Without the wrapper's program, what of it needs none.
fn of_engines(
    config: &Config,
    observations: &Observations,
    selection: &Selection<'_>,
    program: Option<&Program>,
) -> Desired {
    let mut desired = Desired::default();
    let wish = wish(config, observations, selection, program);
    engines::ALL.iter().for_each(|engine| desired.extend((engine.desired)(&wish)));
    desired
}

fn wish<'a>(
    config: &'a Config,
    observations: &'a Observations,
    selection: &'a Selection<'a>,
    program: Option<&'a Program>,
) -> Wish<'a> {
    let (engines, templates) = (&observations.engines, &observations.templates);
    Wish { config, engines, templates, selection, wrapper: program.map(|program| program.path.as_path()) }
}

/// What engines read to find the GPUs; nothing when a container can be given none.
fn spec(config: &Config, observations: &Observations, selection: &Selection<'_>) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    let Wanted::Spec(spec) = wanted(config, selection, &observations.facts.machine) else {
        desired.note(
            "gpu",
            "a container can be given none of this machine's GPUs, and rocworker doctor says why: engines are told of \
             none",
        );
        return Ok(desired);
    };
    match &observations.cdi_place {
        Ok(()) => desired.push(spec_file(config, cdi::text(&observations.templates, &spec)?)),
        Err(error) => desired.problem("cdi", error.to_string()),
    }
    Ok(desired)
}

/// The wrapper, its policy, and the engines that run it.
fn runtime(
    config: &Config,
    observations: &Observations,
    selection: &Selection<'_>,
    program: &Program,
) -> Result<Desired, Error> {
    let mut desired = wrapper(program);
    let wish = wish(config, observations, selection, Some(program));
    let set_up = set_up(config, selection, &observations.engines.concourse, &observations.templates);
    let mut policy = policy::policy(config, selection, set_up == Some(true));
    let real_runc = || engines::ALL.iter().find_map(|engine| (engine.real_runc)(&wish));
    policy.runtime = policy.runtime.or_else(real_runc);
    let is_the_same = policy.runtime.is_some() && policy == policy::policy(config, selection, true);
    let mut told = Desired::default();
    if set_up.is_none() && !is_the_same {
        // A worker's containers go on getting what they get. Without a policy the wrapper gives nothing.
        told.leave(Component::Policy);
    } else {
        told.push(policy::action(policy::text(&observations.templates, &policy)?));
    }
    desired.extend(told.of(Component::Policy));
    if policy.gives_nothing() && set_up.is_some() {
        desired.note(
            "wrapper",
            "its policy honours no request and gives nothing by itself, as it does unless it is told: containers get GPUs \
             by CDI, or through the wrapper once wrapper.requests says which requests count",
        );
    }
    desired.extend(of_engines(config, observations, selection, Some(program)));
    Ok(desired)
}

/// The CDI spec as a file of ours.
#[must_use]
pub fn spec_file(config: &Config, text: String) -> Action {
    Action::file(Stage::Expose, &config.cdi.path, text, "engines find the GPUs here")
        .contested_by("amd-ctk or the Concourse charm")
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
    desired.of(Component::Wrapper)
}
