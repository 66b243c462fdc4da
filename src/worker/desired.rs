//! What should be on a worker: each concern's part, in the order in which one names the other.

use reconcile::{Action, Content, Desired, Kind, Stage};
use root::Attributes;

use super::{boot, daemon, driver, host, own_unit, packages, policy, therock};
use crate::cdi::{self, Wanted, wanted};
use crate::concern::Concern;
use crate::config::{self, Config};
use crate::engines::concourse::desired::{SetUp, set_up};
use crate::engines::undo_constraints::undo_constraints;
use crate::engines::{self, Wish};
use crate::host::Around;
use crate::premises::Premises;
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

/// What should be, by the configuration, on the machine as it is. Pure: the same premises give the same answer.
///
/// # Errors
/// When the configuration names what is not there, or a template does not give what it should.
pub fn desired(config: &Config, premises: &Premises) -> Result<Desired, Error> {
    let undo_constraints = undo_constraints(config, &premises.engines.in_force, &premises.engines.docker);
    let mut desired = Desired { undo_constraints, ..Desired::default() };
    if is_off(config) {
        desired.note(
            "rocworker",
            "the configuration leaves AMD's GPUs alone (compute-runtime): nothing is set up",
        );
        desired.extend(of_engines(config, premises, &select(config, &premises.facts)?, None));
        return Ok(desired);
    }
    for path in premises.templates.unknown() {
        let path = path.display();
        desired.note("templates", format!("{path} overrides no template: none has this name"));
    }
    let facts = &premises.facts;
    let boot = boot::actions(config, facts, &premises.templates, &premises.own_program)?;
    // The nodes of a container are set at its start by one of the two.
    let has_unit = !boot.actions.is_empty();
    let render_gid = premises.groups.gid(host::GROUP);
    desired.extend(host::actions(config, facts, &premises.templates, render_gid, has_unit)?);
    desired.extend(boot.of(Concern::Boot));
    if let Some(found) = &premises.packages {
        if facts.amd().next().is_some() {
            let drivers = driver::part(config, facts, premises.driver.as_ref(), found);
            let is_container = matches!(facts.virtualization, Some(Around::Container(_)));
            let templates = &premises.templates;
            desired.extend(packages::actions(config, found, templates, &drivers.bring, is_container)?);
            desired.extend(drivers.said);
            desired.extend(therock::actions(config));
        } else {
            // A card that is not there at one boot is no reason to remove gigabytes.
            desired.undecided.push(Concern::Packages.as_ref().to_owned());
        }
    }
    let selection = select(config, &premises.facts)?;
    selection.why_left_out().for_each(|why| desired.problem("gpu", why));
    if premises.facts.amd().next().is_none() {
        if premises.has_pci {
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
        desired.extend(of_engines(config, premises, &selection, None));
        return Ok(desired);
    }
    desired.extend(spec(config, premises, &selection)?);
    match &premises.wrapper {
        // While a card is there, usable or not: a driver that comes late must not restart an engine twice.
        Ok(program) => desired.extend(runtime(config, premises, &selection, program)?),
        Err(why) => {
            desired
                .problem("wrapper", format!("{why}; what engines are told of it stays as it is until then"));
            [Concern::Wrapper, Concern::Policy].into_iter().for_each(|concern| desired.leave(concern));
            engines::ALL.iter().for_each(|engine| desired.leave(engine.about().name));
        }
    }
    let (templates, program) = (&premises.templates, &premises.own_program);
    let keeper = daemon::actions(config, facts, templates, program)?;
    desired.extend(keeper.of(Concern::Daemon));
    Ok(desired)
}

/// Each engine's part. Without the wrapper's program, what of it needs none.
fn of_engines(
    config: &Config,
    premises: &Premises,
    selection: &Selection<'_>,
    program: Option<&Program>,
) -> Desired {
    let mut desired = Desired::default();
    let wish = wish(config, premises, selection, program);
    engines::ALL.iter().for_each(|engine| desired.extend(engine.desired(&wish)));
    desired
}

fn wish<'a>(
    config: &'a Config,
    premises: &'a Premises,
    selection: &'a Selection<'a>,
    program: Option<&'a Program>,
) -> Wish<'a> {
    let (engines, templates) = (&premises.engines, &premises.templates);
    Wish { config, engines, templates, selection, wrapper: program.map(|program| program.path.as_path()) }
}

/// What engines read to find the GPUs; nothing when a container can be given none.
fn spec(config: &Config, premises: &Premises, selection: &Selection<'_>) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    let Wanted::Spec(spec) = wanted(config, selection, &premises.facts.machine) else {
        desired.note(
            "gpu",
            "a container can be given none of this machine's GPUs, and rocworker doctor says why: engines are told of \
             none",
        );
        return Ok(desired);
    };
    match &premises.cdi_place {
        Ok(()) => desired.push(spec_file(config, cdi::text(&premises.templates, &spec)?)),
        Err(error) => desired.problem("cdi", error.to_string()),
    }
    Ok(desired)
}

/// The wrapper, its policy, and the engines that run it.
fn runtime(
    config: &Config,
    premises: &Premises,
    selection: &Selection<'_>,
    program: &Program,
) -> Result<Desired, Error> {
    let mut desired = wrapper(program);
    let wish = wish(config, premises, selection, Some(program));
    let set_up = set_up(config, selection, &premises.engines.concourse, &premises.templates);
    let mut policy = policy::policy(config, selection, matches!(set_up, SetUp::Yes(_)));
    let real_runc = || engines::ALL.iter().find_map(|engine| engine.real_runc(&wish));
    policy.runtime = policy.runtime.or_else(real_runc);
    let is_the_same = policy.runtime.is_some() && policy == policy::policy(config, selection, true);
    let mut told = Desired::default();
    if matches!(set_up, SetUp::Unknown) && !is_the_same {
        // A worker's containers go on getting what they get. Without a policy the wrapper gives nothing.
        told.leave(Concern::Policy);
    } else {
        told.push(policy::action(policy::text(&premises.templates, &policy)?));
    }
    desired.extend(told.of(Concern::Policy));
    if policy.gives_nothing() && !matches!(set_up, SetUp::Unknown) {
        desired.note(
            "wrapper",
            "its policy honours no request and gives nothing by itself, as it does unless it is told: containers get GPUs \
             by CDI, or through the wrapper once wrapper.requests says which requests count",
        );
    }
    desired.extend(of_engines(config, premises, selection, Some(program)));
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
    desired.of(Concern::Wrapper)
}
