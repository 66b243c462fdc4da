//! What a Concourse worker needs so that its containers get the GPUs: tags, and a containerd whose first runc is the
//! wrapper. All of it stands in files of ours; nothing of the worker's or its charm's is edited, and nothing is written
//! to /var/lib/concourse, which other machines may share.
//!
//! No action names a rival. The charm, Concourse itself and its packages write none of these paths: whoever contests
//! one is a person, and is not known by name.

mod containerd;
mod tags;
mod written;

use std::path::Path;

use reconcile::{Action, Content, Desired, Effect, Kind, Stage};
use root::Attributes;
use serde::Serialize;

use super::{Concourse, DROP_IN, ENV_FILE, NAME, UNIT, Worker};
use crate::config::{Config, Configure, Existing};
use crate::engines::env_file::{self, EnvFile};
use crate::render::{self, Templates};
use crate::selection::Selection;

use containerd::{Hindrance, Way};
use tags::Tags;
pub use tags::VARIABLE as TAGS;
pub use written::{out_of_date, written_by};

/// The folder that holds nothing but the wrapper under the name `runc`.
pub const SHIM_FOLDER: &str = "/usr/local/lib/rocworker/shim";
/// containerd's configuration of ours.
const CONTAINERD_CONFIG: &str = "/etc/rocworker/concourse-containerd.toml";
/// What the launcher is called, beside [`SHIM_FOLDER`].
const LAUNCHER: &str = "concourse-containerd";

/// What should be so for the worker of this machine. `wrapper`: runc-amd-wrapper's program; without one no container
/// can be given a GPU, and the worker gets no tag of one. `shim`: the folder that holds it as `runc`, [`SHIM_FOLDER`]
/// on a machine. To be asked with an empty selection too, when the configuration leaves AMD's GPUs alone: the user's
/// own tags stay, and those that a charm left behind go.
#[must_use]
pub fn actions(
    config: &Config,
    selection: &Selection<'_>,
    concourse: &Concourse,
    templates: &Templates,
    wrapper: Option<&Path>,
    shim: &Path,
) -> Desired {
    let mut desired = Desired::default();
    let adopts = config.concourse.existing == Existing::Adopt;
    let charms = concourse.worker.as_ref().is_some_and(|worker| worker.charm.is_in_force());
    // Whether the charm has a part in it cannot be told then either.
    let may_be_charms = charms || concourse.unknown.is_some();
    let has_a_wish = !selection.gpus.is_empty() || !config.tags.is_empty() || (may_be_charms && adopts);
    if config.concourse.configure == Configure::Never || !has_a_wish {
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
    let way = match wrapper.map(|wrapper| (Way::of(templates, worker, shim), wrapper)) {
        Some((Ok(way), wrapper)) => Some((way, wrapper)),
        Some((Err(Hindrance::Unknown(problem)), _)) => return undecided(desired, problem),
        Some((Err(Hindrance::Known(problem)), _)) => {
            desired.problem(NAME, problem);
            None
        }
        None => None,
    };
    let tags = tags::tags(config, selection, worker, way.is_some());
    if let (Tags::Unknown, Some(_)) = (&tags, &way) {
        // Our file holds the worker's tags: without them in it, a worker that has a GPU would lose the tags of it.
        let problem = worker.unfollowed.join("; ");
        return undecided(
            desired,
            format!("{problem}: the worker's tags, and what else is set of it, stay as they are"),
        );
    }
    let files = match way {
        Some((way, wrapper)) => {
            say_of_way(&way, worker, &mut desired);
            containerd_files(&way, wrapper, shim, &mut desired)
        }
        None => Vec::new(),
    };
    match environment_files(templates, worker, files, tags, &mut desired) {
        Ok(()) => desired.of(NAME),
        // Without all of them none does any good.
        Err(problem) => undecided(desired, problem),
    }
}

/// Nothing is to be changed, and what is there of ours stays: landing the worker because somebody could not look costs
/// its builds, and its GPUs until the next look.
fn undecided(mut desired: Desired, problem: String) -> Desired {
    desired.actions.clear();
    desired.problem(NAME, problem);
    desired.leave(NAME);
    desired
}

/// Whether the containers of this machine's worker go through the wrapper.
#[derive(Debug, Clone, Copy)]
pub enum SetUp<'a> {
    /// There is no worker, it is left alone, or it cannot be given GPUs.
    No,
    Yes(&'a Worker),
    /// It cannot be told: they go on as they do.
    Unknown,
}

/// Whether [`actions`] makes the worker's containers go through the wrapper.
#[must_use]
pub fn set_up<'a>(
    config: &Config,
    selection: &Selection<'_>,
    concourse: &'a Concourse,
    templates: &Templates,
) -> SetUp<'a> {
    if config.concourse.configure == Configure::Never || selection.gpus.is_empty() {
        return SetUp::No;
    }
    let worker = managed(config, concourse);
    if worker.is_none() && concourse.worker.is_some() {
        return SetUp::No;
    }
    if concourse.unknown.is_some() {
        return SetUp::Unknown;
    }
    let shim = Path::new(SHIM_FOLDER);
    match worker.map(|worker| (Way::of(templates, worker, shim), worker)) {
        Some((Ok(_), worker)) => SetUp::Yes(worker),
        Some((Err(Hindrance::Unknown(_)), _)) => SetUp::Unknown,
        Some((Err(Hindrance::Known(_)), _)) | None => SetUp::No,
    }
}

/// The worker that is ours to set up, if there is one: neither left alone by the configuration, nor the charm's.
#[must_use]
pub fn managed<'a>(config: &Config, concourse: &'a Concourse) -> Option<&'a Worker> {
    let adopts = config.concourse.existing == Existing::Adopt;
    let worker = concourse.worker.as_ref().filter(|worker| adopts || !worker.charm.is_in_force());
    worker.filter(|_| config.concourse.configure == Configure::Auto)
}

/// What a person should know of the way.
fn say_of_way(way: &Way, worker: &Worker, desired: &mut Desired) {
    if matches!(way, Way::Shims { built_in: Some(4), .. }) {
        desired.note(NAME, containerd::INCOMPLETE);
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
}

/// What the worker is to find at its variables for containerd, with the files that these name.
fn containerd_files(
    way: &Way,
    wrapper: &Path,
    shim: &Path,
    desired: &mut Desired,
) -> Vec<(&'static str, String)> {
    let target = wrapper.to_owned();
    let link = Kind::Owned(Content::Link { target });
    desired.push(Action::new(
        Stage::Expose,
        shim.join("runc"),
        link,
        "the first runc of Concourse's containers",
    ));
    match way {
        Way::Shims { text, .. } => {
            let reason = "Concourse's containerd gives its shims the wrapper as runc";
            // A copy of the worker's containerd.toml, which may be for root alone; only root's containerd reads it.
            let attributes = Attributes { mode: 0o600, owner: None };
            let content = Content::File { bytes: text.clone().into_bytes(), attributes };
            let config = Action::new(Stage::Expose, CONTAINERD_CONFIG, Kind::Owned(content), reason);
            desired.push(config.with(restart()));
            vec![("CONCOURSE_CONTAINERD_CONFIG", CONTAINERD_CONFIG.to_owned())]
        }
        Way::Launcher { text } => {
            let path = shim.parent().unwrap_or(shim).join(LAUNCHER);
            let value = path.display().to_string();
            let attributes = Attributes { mode: 0o755, owner: None };
            let content = Content::File { bytes: text.clone().into_bytes(), attributes };
            let reason = "starts Concourse's containerd with the wrapper as runc";
            desired.push(Action::new(Stage::Expose, path, Kind::Owned(content), reason).with(restart()));
            vec![("CONCOURSE_CONTAINERD_BIN", value)]
        }
        Way::AlreadySo => Vec::new(),
    }
}

/// The environment file and the drop-in that names it, where there is anything to say in them.
fn environment_files(
    templates: &Templates,
    worker: &Worker,
    mut variables: Vec<(&'static str, String)>,
    tags: Tags,
    desired: &mut Desired,
) -> Result<(), String> {
    let mut unset = Vec::new();
    match tags {
        Tags::AsTheyAre => {}
        Tags::Set(tags) => variables.push((tags::VARIABLE, tags)),
        Tags::Unset => unset.push(tags::VARIABLE),
        Tags::Unknown => {
            for problem in &worker.unfollowed {
                let left = "the worker's tags are left as they are, so that none of that file's is lost";
                desired.problem(NAME, format!("{problem}: {left}"));
            }
        }
        Tags::OutOfReach => desired.problem(
            NAME,
            format!(
                "{} sets tags on its command line, which win over CONCOURSE_TAG: set the worker's tags there",
                worker.unit.display()
            ),
        ),
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
    if !variables.is_empty() {
        let reason = "the worker's tags, and where its containerd finds the wrapper";
        desired.push(
            Action::file(Stage::Expose, ENV_FILE, environment_file(templates, &variables)?, reason)
                .with(restart()),
        );
    }
    let environment_file = (!variables.is_empty()).then_some(ENV_FILE);
    let context = DropIn { environment_file, unset };
    let text = templates.render(render::CONCOURSE_DROP_IN, context).map_err(|error| error.to_string())?;
    let reason = "the worker reads rocworker's environment file last";
    let drop_in = Action::file(Stage::Expose, DROP_IN, text, reason);
    desired.push(drop_in.with(Effect::SystemdReload).with(restart()));
    Ok(())
}

#[derive(Serialize)]
struct DropIn {
    environment_file: Option<&'static str>,
    unset: Vec<&'static str>,
}

/// The environment file's text, read again as systemd will.
fn environment_file(templates: &Templates, variables: &[(&'static str, String)]) -> Result<String, String> {
    #[derive(Serialize)]
    struct Context {
        lines: Vec<String>,
    }
    let lines = variables.iter().map(|(name, value)| {
        env_file::line(name, value)
            .ok_or_else(|| format!("{name} cannot be set to {value:?} in an environment file"))
    });
    let context = Context { lines: lines.collect::<Result<_, _>>()? };
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
