//! What a Concourse worker needs so that its containers get the GPUs: tags, and a containerd whose first runc is the
//! wrapper. All of it is in managed files; nothing of the worker's or its charm's is edited, and nothing is written
//! to /var/lib/concourse, which other machines may share.
//!
//! No action names a rival. The charm, Concourse itself and its packages write none of these paths: whoever contests
//! one is a person, and is not known by name.

mod containerd;
mod tagged;
mod written;

use std::path::Path;

use config::selection::Selection;
use config::{Config, Existing};
use reconcile::{Action, Content, Desired, Effect, Kind, Stage};
use render::{self, Templates};
use serde_json::json;

use super::tags::{self, VARIABLE as TAGS};
use super::{Concourse, DROP_IN, ENV_FILE, NAME, UNIT, Worker};
use containerd::{Hindrance, Way, way};
use host::env_file::{self, EnvFile};

pub use tagged::{Tagged, has_tagged, tagged};
pub use written::{out_of_date, written_by};

/// The folder that holds nothing but the wrapper under the name `runc`.
pub const SHIM_FOLDER: &str = "/usr/local/lib/rocworker/shim";
/// The managed configuration of containerd.
const CONTAINERD_CONFIG: &str = "/etc/rocworker/concourse-containerd.toml";
/// What starts containerd, beside [`SHIM_FOLDER`].
const LAUNCHER: &str = "/usr/local/lib/rocworker/concourse-containerd";

/// Note for a worker that gets its first tags.
const FIRST_TAGS: &str =
    "this worker gets its first tags, and takes only steps with tags from its restart on";

/// The question that an apply asks about a worker without tags.
pub const UNTAGGED: &str = "this Concourse worker has no tags, and the configuration does not say whether it gets tags of its GPUs. Write \
     `concourse: {tags: true}` if other workers take the steps without tags: this one then takes only steps with tags. Write \
     `concourse: {tags: false}` if it is the only one: it goes on taking every step, and a step needs no tag to get GPUs";

/// What rocworker configures of this machine's worker. `wrapper`: runc-amd-wrapper's program; without one no container
/// can be given a GPU, and the worker gets no tag of one. An empty selection, of a configuration that leaves AMD's GPUs
/// alone, still gives actions: the user's own tags stay, and tags that a charm left behind go.
#[must_use]
pub fn actions(
    config: &Config,
    selection: &Selection<'_>,
    concourse: &Concourse,
    templates: &Templates,
    wrapper: Option<&Path>,
) -> Desired {
    let mut desired = Desired::default();
    let adopts = config.concourse.existing == Existing::Adopt;
    let charms = concourse.worker.as_ref().is_some_and(|worker| worker.charm.is_in_force());
    // An unknown worker may be the charm's, too.
    let may_be_charms = charms || concourse.unknown.is_some();
    let has_a_wish = !selection.gpus.is_empty() || !config.tags.is_empty() || (may_be_charms && adopts);
    if !has_a_wish {
        return desired;
    }
    for note in &concourse.notes {
        desired.note(NAME, note);
    }
    if let Some(worker) = concourse.worker.as_ref().filter(|_| charms && !adopts) {
        desired.note(NAME, left_alone(worker));
        return desired;
    }
    if let Some(problem) = &concourse.unknown {
        return undecided(desired, format!("{problem}: what is set of the worker stays as it is"));
    }
    let Some(worker) = &concourse.worker else { return desired };
    for problem in &worker.unread {
        desired.note(NAME, problem);
    }
    let wrapper = wrapper.filter(|_| !selection.gpus.is_empty());
    let through = match wrapper.map(|wrapper| (way(templates, worker), wrapper)) {
        Some((Ok(way), wrapper)) => Some((way, wrapper)),
        Some((Err(Hindrance::Unknown(problem)), _)) => return undecided(desired, problem),
        Some((Err(Hindrance::Known(problem)), _)) => {
            desired.problem(NAME, problem);
            None
        }
        None => None,
    };
    let tags = tags::wanted(config, selection, worker, through.is_some());
    let is_tag_unknown = tags.is_some() && !worker.options.has("tag") && !worker.unfollowed.is_empty();
    if is_tag_unknown && through.is_some() {
        // The managed environment file holds the worker's tags. Written without them, it would take from the worker
        // the tags of a GPU that it has.
        let problem = worker.unfollowed.join("; ");
        return undecided(
            desired,
            format!("{problem}: the worker's tags, and what else is set of it, stay as they are"),
        );
    }
    if through.is_some() && !tags::are_decided(config, worker) {
        desired.ask(NAME, UNTAGGED);
    } else if through.is_some() && tags.is_some() && worker.has_no_tags() && !worker.was_tagged {
        desired.note(NAME, FIRST_TAGS);
    }
    let variable = through.and_then(|(way, wrapper)| through_wrapper(way, wrapper, worker, &mut desired));
    match environment_files(templates, worker, variable, tags, &mut desired) {
        Ok(()) => desired.of(NAME),
        // The environment files do good only together.
        Err(problem) => undecided(desired, problem),
    }
}

/// Changes nothing and keeps what is managed: landing the worker because a look failed would cost its builds, and its
/// GPUs until the next look.
fn undecided(mut desired: Desired, problem: String) -> Desired {
    desired.actions.clear();
    desired.problem(NAME, problem);
    desired.leave(NAME);
    desired
}

/// Whether [`actions`] makes the containers of this machine's worker go through the wrapper: not where the worker is
/// absent, left alone, or cannot be given GPUs. `None`: that is unknown, and the containers stay as they are.
#[must_use]
pub fn set_up(
    config: &Config,
    selection: &Selection<'_>,
    concourse: &Concourse,
    templates: &Templates,
) -> Option<bool> {
    let worker = managed(config, concourse);
    let is_left = !config.concourse.managed.is_on() || (worker.is_none() && concourse.worker.is_some());
    if is_left || selection.gpus.is_empty() {
        return Some(false);
    }
    if concourse.unknown.is_some() {
        return None;
    }
    match worker.map(|worker| way(templates, worker)) {
        Some(Ok(_)) => Some(true),
        Some(Err(Hindrance::Unknown(_))) => None,
        Some(Err(Hindrance::Known(_))) | None => Some(false),
    }
}

/// The worker that rocworker sets up where Concourse is managed at all: not the charm's, unless it is adopted.
pub(crate) fn managed<'a>(config: &Config, concourse: &'a Concourse) -> Option<&'a Worker> {
    let adopts = config.concourse.existing == Existing::Adopt;
    concourse.worker.as_ref().filter(|worker| adopts || !worker.charm.is_in_force())
}

/// The script of the charm's that the wrapper replaces on an adopted worker, and the runc that the wrapper runs in its
/// stead. A worker that is not adopted keeps its script behind the wrapper.
#[must_use]
pub fn replaced_script<'a>(config: &Config, concourse: &'a Concourse) -> Option<(&'static str, &'a Path)> {
    let worker = managed(config, concourse).filter(|_| config.concourse.existing == Existing::Adopt)?;
    Some((worker.charm.script?, worker.charm.real_runc.as_deref()?))
}

/// What makes the worker's containers go through the wrapper, and the variable that has to be set for it.
fn through_wrapper(
    way: Option<Way>,
    wrapper: &Path,
    worker: &Worker,
    desired: &mut Desired,
) -> Option<(&'static str, String)> {
    if let Some(note) = way.as_ref().and_then(|way| way.note) {
        desired.note(NAME, note);
    }
    if worker.charm.lacks_real_runc {
        desired.problem(
            NAME,
            format!(
                "a script of the Concourse charm's is {} and there is no runc.real beside it: behind rocworker's wrapper \
                 it still adds the nodes of every vendor's GPUs to each container",
                worker.bin.join("runc").display()
            ),
        );
    }
    let link = Kind::Owned(Content::Link { target: wrapper.to_owned() });
    let reason = "the first runc of Concourse's containers";
    desired.push(Action::new(Stage::Expose, Path::new(SHIM_FOLDER).join("runc"), link, reason));
    let Way { action, variable, .. } = way?;
    desired.push(action.with(restart()));
    Some(variable)
}

/// The environment file and the drop-in that names it, where there is anything to say in them.
fn environment_files(
    templates: &Templates,
    worker: &Worker,
    variable: Option<(&'static str, String)>,
    tags: Option<String>,
    desired: &mut Desired,
) -> Result<(), String> {
    let mut variables: Vec<_> = variable.into_iter().collect();
    let mut unset = Vec::new();
    match tags {
        None => {}
        Some(_) if worker.options.has("tag") => desired.problem(
            NAME,
            format!(
                "{} sets tags on its command line, which win over CONCOURSE_TAG: set the worker's tags there",
                worker.unit.display()
            ),
        ),
        Some(_) if !worker.unfollowed.is_empty() => {
            for problem in &worker.unfollowed {
                let left = "the worker's tags are left as they are, so that none of that file's is lost";
                desired.problem(NAME, format!("{problem}: {left}"));
            }
        }
        // An empty value would be a tag too, the empty one.
        Some(tags) if tags.is_empty() => unset.push(TAGS),
        Some(tags) => variables.push((TAGS, tags)),
    }
    if variables.is_empty() && unset.is_empty() {
        return Ok(());
    }
    for drop_in in &worker.later {
        desired.problem(
            NAME,
            format!(
                "{} comes after {DROP_IN} and sets the worker's environment too: what it says wins",
                drop_in.display()
            ),
        );
    }
    let environment_file = (!variables.is_empty()).then_some(ENV_FILE);
    if let Some(path) = environment_file {
        let reason = "the worker's tags, and where its containerd finds the wrapper";
        let text = environment_text(templates, &variables)?;
        desired.push(Action::file(Stage::Expose, path, text, reason).with(restart()));
    }
    let context = json!({ "environment_file": environment_file, "unset": unset });
    let text = templates.render(render::CONCOURSE_DROP_IN, context).map_err(|error| error.to_string())?;
    let reason = "the worker reads rocworker's environment file last";
    let drop_in = Action::file(Stage::Expose, DROP_IN, text, reason);
    desired.push(drop_in.with(Effect::SystemdReload).with(restart()));
    Ok(())
}

/// The environment file's text, read again as systemd will.
fn environment_text(templates: &Templates, variables: &[(&'static str, String)]) -> Result<String, String> {
    let lines = variables.iter().map(|(name, value)| {
        env_file::line(name, value)
            .ok_or_else(|| format!("{name} cannot be set to {value:?} in an environment file"))
    });
    let context = json!({ "lines": lines.collect::<Result<Vec<_>, _>>()? });
    let text = templates.render(render::CONCOURSE_ENVIRONMENT, context).map_err(|error| error.to_string())?;
    let read = EnvFile::parse(&text).variables;
    let is_meant = read.len() == variables.len()
        && read.iter().zip(variables).all(|((name, value), (key, meant))| name == key && value == meant);
    if is_meant {
        Ok(text)
    } else {
        Err(format!(
            "{} gives other variables than it was asked for",
            templates.place(render::CONCOURSE_ENVIRONMENT)
        ))
    }
}

/// Landing the worker lets its builds end; systemd does not start it again by itself after that.
fn restart() -> Effect {
    Effect::Restart { unit: UNIT.to_owned(), drain: Some("SIGUSR1".to_owned()) }
}

fn left_alone(worker: &Worker) -> String {
    format!(
        "the Concourse charm has set this worker up for AMD's GPUs by itself ({}): it is left alone. With \
         `concourse: {{existing: adopt}}` rocworker's settings would come after the charm's and win",
        worker.charm.signs.join(", ")
    )
}
