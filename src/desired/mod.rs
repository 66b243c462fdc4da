//! What should be on the machine: pure functions of Observations and Config. Each component gives its part, in the
//! order in which one names the other.

pub mod exporter;
pub mod host;
pub mod own_unit;
pub mod policy;

use std::path::PathBuf;

use ::host::facts::Facts;
use ::host::remarks::remarks;
use cdi::{Wanted, wanted};
use config::selection::{Selection, select};
use config::{Component, Config, DefaultGrant, Devices, Managed};
use engines::concourse::desired::{replaced_script, set_up};
use engines::program::Program;
use engines::{Wish, WrapperAsDefault};
use inventory::{Around, Inventory};
use packages::desired::{apt, driver, rocm};
use reconcile::{Action, Content, Desired, Kind, Stage};
use root::Attributes;

use crate::observations::Observations;
use own_unit::{BOOT, DAEMON, PARTITION};
use policy::{Callers, Policy};

/// Why the desired state is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] config::Error),
    #[error(transparent)]
    Template(#[from] render::Error),
    #[error(transparent)]
    Cdi(#[from] cdi::Error),
    #[error("which GPUs there are is not known, so that rocworker changes nothing for them: {0}")]
    Unanswered(String),
    /// A person has to decide something first. `path`: the configuration's.
    #[error("{}: {question}", path.display())]
    Undecided { path: PathBuf, question: String },
}

/// Refuses to plan while a driver file has not answered which GPUs there are.
///
/// # Errors
/// When the configuration asks for AMD's GPUs, and a driver file that names them has not answered or cannot be read.
pub fn require_known_gpus(config: &Config, facts: &Facts) -> Result<(), Error> {
    let unanswered = facts.inventory.unanswered().next().filter(|_| config.gpus.is_on());
    unanswered.map_or(Ok(()), |unread| Err(Error::Unanswered(unread.to_string())))
}

/// Refuses to apply until a person has decided what the desired state asks.
///
/// # Errors
/// When the configuration leaves open whether a Concourse worker without tags gets tags of its GPUs.
pub fn require_decision(config: &Config, desired: &Desired) -> Result<(), Error> {
    desired.question.as_ref().map_or(Ok(()), |question| {
        Err(Error::Undecided { path: config.path().to_owned(), question: question.text.clone() })
    })
}

/// The desired state, by the configuration and the machine as it was observed. Pure: equal inputs give equal results.
///
/// # Errors
/// When the configuration names what is not there, or a template does not give what it should.
pub fn desired(config: &Config, observations: &Observations) -> Result<Desired, Error> {
    let undo_constraints = observations.engines.undo_constraints.clone();
    let mut desired = Desired { undo_constraints, ..Desired::default() };
    let Observations { facts, templates, own_program: program, .. } = observations;
    let has_amd = facts.has_amd();
    config.spellings.iter().for_each(|text| desired.note("configuration", text.clone()));
    let selection = select(config, facts);
    if let Managed::Off(why) = config.gpus {
        desired.note("rocworker", format!("{why}: nothing is set up"));
        desired.extend(engines::desired(&wish(config, observations, &selection?, None)));
        return Ok(desired);
    }
    require_known_gpus(config, facts)?;
    for path in templates.unknown() {
        let path = path.display();
        desired.note("templates", format!("{path} overrides no template: none has this name"));
    }
    config.unused_keys.iter().for_each(|text| desired.note(rocm::ROCM, text.clone()));
    policy::needs_exclusive(config).into_iter().for_each(|text| desired.note("wrapper", text));
    let boot = BOOT.actions(config, facts, templates, program)?;
    // The nodes of a container are set at its start by one of the two.
    let has_unit = !boot.actions.is_empty();
    desired.extend(host::actions(config, facts, templates, &observations.groups, has_unit)?);
    desired.extend(boot);
    desired.extend(PARTITION.actions(config, facts, templates, program)?);
    match &observations.packages {
        Some(found) if has_amd => {
            let (bring, actions) = driver::part(config, facts, observations.driver.as_ref(), found);
            let is_container = matches!(facts.inventory.virtualization, Some(Around::Container(_)));
            desired.extend(apt::actions(config, found, templates, bring.as_deref(), is_container)?);
            desired.extend(actions);
            desired.extend(rocm::archive(config));
        }
        // A card that is not there at one boot is no reason to remove gigabytes.
        Some(_) => desired.leave(Component::Packages),
        None => {}
    }
    let selection = selection?;
    selection.why_left_out().for_each(|why| desired.problem("gpu", why));
    for remark in remarks(facts) {
        // Whoever chose GPUs in gpu-device-ids needs no remark about GPUs.
        if remark.about != "gpu" || config.devices == Devices::All {
            desired.note(remark.about, remark.text);
        }
    }
    if !has_amd && !observations.has_pci {
        desired.is_undecided = true;
        desired.note(
            "gpu",
            "/sys/bus/pci/devices is missing, so rocworker cannot tell which GPUs this machine has: it sets up nothing and \
             reverts nothing",
        );
        return Ok(desired);
    }
    if !has_amd {
        desired
            .note("gpu", format!("this machine has no AMD GPU{}: nothing is set up", without_compute(facts)));
        desired.extend(engines::desired(&wish(config, observations, &selection, None)));
        return Ok(desired);
    }
    desired.extend(spec(config, observations, &selection)?);
    match &observations.wrapper {
        // While a card is there, usable or not: a driver that comes late must not restart an engine twice.
        Ok(program) => desired.extend(runtime(config, observations, &selection, program)?),
        Err(why) => {
            let text = format!("{why}; until then the configuration of engines stays as it is");
            desired.problem("wrapper", text);
            desired.leave(Component::Wrapper);
            desired.leave(Component::Policy);
            engines::ALL.iter().for_each(|engine| desired.leave(engine.name));
        }
    }
    desired.extend(DAEMON.actions(config, facts, templates, program)?);
    desired.extend(exporter::actions(config, facts, templates, &observations.exporter)?);
    Ok(desired)
}

/// Names the devices of a machine where no GPU computes.
fn without_compute(facts: &Facts) -> String {
    let mut never: Vec<String> =
        facts.amd().filter_map(|gpu| Some(gpu.never_computes()?.to_string())).collect();
    never.dedup();
    match never.as_slice() {
        [] => String::new(),
        never => format!(" that can compute ({})", never.join("; ")),
    }
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
    let Wanted::Spec(spec) = wanted(config, selection, &observations.facts.inventory) else {
        desired.note(
            "gpu",
            "no container can get a GPU of this machine, and rocworker doctor says why: engines find no GPU",
        );
        return Ok(desired);
    };
    let refused = match &observations.cdi_place {
        Ok(siblings) => {
            siblings.unknown().for_each(|text| desired.note("cdi", text));
            let conflicts = siblings.conflicts(spec.names());
            for conflict in conflicts.iter().filter(|it| !it.ends_what_works()) {
                match conflict.breaks() {
                    true => desired.problem("cdi", format!("{}: {}", conflict.text(), conflict.remedy())),
                    false => desired.note("cdi", conflict.text()),
                }
            }
            let refusal = cdi::refusal(&conflicts);
            let replaced = siblings.replaced(spec.names()).filter(|_| refusal.is_none());
            replaced.into_iter().for_each(|text| desired.note("cdi", text));
            refusal.map(|refusal| refusal.to_string())
        }
        Err(problem) => Some(problem.clone()),
    };
    match refused {
        None => {
            let text = cdi::text(&observations.templates, &spec)?;
            let edits: Vec<String> = cdi::other_edits(&text).into_iter().collect();
            if !edits.is_empty() {
                let place = observations.templates.place(render::CDI);
                let edits = edits.join(" and ");
                let text = format!(
                    "{place} adds {edits} to the CDI spec: containers that get GPUs through the wrapper do not have this, \
                     and wrapper.edits is for them"
                );
                desired.note("cdi", text);
            }
            desired.push(spec_file(config, text));
        }
        Some(problem) => {
            desired.problem("cdi", problem);
            // A spec at an earlier path stays: engines go on finding the GPUs by it.
            desired.leave(Component::Cdi);
        }
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
    let mut desired = Desired::default();
    // The program has bytes only where no package put it there.
    if let Some(bytes) = program.bytes.clone() {
        let content = Content::File { bytes, attributes: Attributes { mode: 0o755, owner: None } };
        let reason = "engines run it in place of runc";
        desired.push(Action::new(Stage::Expose, &program.path, Kind::Owned(content), reason));
    }
    desired = desired.of(Component::Wrapper);
    let wish = wish(config, observations, selection, Some(program));
    let inventory = &observations.facts.inventory;
    let (policy, part) = wrapper_policy(&wish, inventory, observations.wrapper_as_default.as_deref())?;
    desired.extend(part);
    if policy.quarantine && !policy.gives_nothing() && !DAEMON.is_wanted(config, &observations.facts) {
        let text = "wrapper.quarantine withholds no GPU until rocworker's daemon runs, and apply does not start it here: \
                    set daemon.unit to true, or run `rocworker serve`";
        desired.note("wrapper", text);
    }
    desired.extend(engines::desired(&wish));
    Ok(desired)
}

/// What containers may have, and its file where that is known.
fn wrapper_policy(
    wish: &Wish<'_>,
    inventory: &Inventory,
    defaults: Result<&[WrapperAsDefault], &String>,
) -> Result<(Policy, Desired), Error> {
    let Wish { config, selection, templates, .. } = *wish;
    let concourse = &wish.engines.concourse;
    let set_up = set_up(config, selection, concourse, templates);
    let script = replaced_script(config, concourse);
    let either = |known: Option<bool>| known.map_or(vec![false, true], |known| vec![known]);
    let is_default = either(defaults.ok().map(|defaults| !defaults.is_empty()));
    let policies = either(set_up).into_iter().flat_map(|concourse| {
        let had_srv = concourse && script.is_some();
        let of = move |is_default: &bool| Callers { concourse, had_srv, is_default_runtime: *is_default };
        is_default.iter().map(move |is_default| policy::policy(config, selection, inventory, of(is_default)))
    });
    let mut policies: Vec<_> = policies.collect();
    policies.dedup();
    let is_known = policies.len() == 1
        && !selection.gpus.iter().any(|gpu| policy::has_unread_mode(gpu))
        && (set_up.is_some() || config.wrapper.runtime.is_some());
    let mut policy = policies.swap_remove(0);
    policy.runtime = policy.runtime.or_else(|| engines::real_runc(wish));
    let mut desired = Desired::default();
    if !is_known {
        // Containers go on getting what they get. Without a policy the wrapper gives nothing.
        desired.leave(Component::Policy);
        return Ok((policy, desired));
    }
    desired.push(policy::action(policy::text(templates, &policy)?, wish.wrapper));
    for (engine, (config_file, is)) in defaults.into_iter().flatten() {
        if let Some(remark) = policy::of_default_runtime(config, &policy) {
            let config_file = config_file.display();
            desired.note(
                "wrapper",
                format!("{engine}'s default runtime {is} the wrapper ({config_file}): {remark}"),
            );
        }
    }
    // Its default runtime has a note of its own.
    let is_dockers_default =
        defaults.is_ok_and(|all| all.iter().any(|it| it.0 == Component::Docker.as_ref()));
    if policy.default == DefaultGrant::All
        && config.wrapper.default.is_none()
        && wish.engines.docker.installed.is_some()
        && config.docker.managed.is_on()
        && !is_dockers_default
    {
        let text = format!(
            "docker run --runtime {} gives a container every GPU on this Concourse worker, unless it asks for other ones \
             (AMD_VISIBLE_DEVICES); `wrapper: {{default: none}}` ends that for docker and for the worker's tasks",
            config.docker.runtime
        );
        desired.note(Component::Docker.as_ref(), text);
    }
    if policy.gives_nothing() && config.wrapper.requests.is_some() {
        let text = "wrapper.requests is deny: the wrapper provides no GPUs; containers get GPUs by CDI";
        desired.note("wrapper", text);
    }
    if let Some((script, _)) = script.filter(|_| config.wrapper.folders.is_none() && set_up == Some(true)) {
        let text = format!(
            "the wrapper mounts the folders in {} into every container, as {script} of the Concourse charm did, which it \
             replaces; `wrapper: {{folders: []}}` ends that",
            policy::SRV
        );
        desired.note("wrapper", text);
    }
    Ok((policy, desired))
}

/// The CDI spec as a managed file.
#[must_use]
pub fn spec_file(config: &Config, text: String) -> Action {
    Action::file(Stage::Expose, &config.cdi.path, text, "engines find the GPUs here")
        .contested_by("amd-ctk or the Concourse charm")
}
