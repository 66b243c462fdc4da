//! What taking engines' configuration back has to heed, by how the engines are configured now: settings that name our
//! runtime, and whether an engine may begin anew.

use reconcile::{Desired, Effect, Named, Running, UndoConstraints};

use super::containerd::UNIT;
use super::docker::{self, CommandLine, desired::start_now, desired::start_with};
use super::{Docker, InForce};
use crate::component::Component;
use crate::config::Config;
use crate::program::{INSTALLED, PACKAGED};

/// containerd's shim writes its options and the runtime's path there (`WriteOptions` and `WriteRuntime` of
/// runtime/v2/runc), and calls that path to stop a container, whatever containerd's configuration says by then.
fn bundles(folder: &str) -> Running {
    let files = ["options.json", "runtime"].map(str::to_owned).to_vec();
    Running { folder: folder.into(), files, what: "container".to_owned() }
}

/// Where whoever runs by the wrapper names it.
pub(crate) fn running() -> Vec<Running> {
    super::ALL.iter().filter_map(|engine| engine.about().bundles).map(bundles).collect()
}

/// The same for undo, which no configuration of ours keeps from it, and for an engine that is not to be configured any
/// more.
#[must_use]
pub fn undo_constraints(config: &Config, in_force: &InForce, docker: &Docker) -> UndoConstraints {
    let mut undo_constraints = UndoConstraints {
        namers: in_force.all.clone(),
        unread: in_force.unread.clone(),
        ..UndoConstraints::default()
    };
    undo_constraints.running.insert(name(Component::Wrapper), running());
    let files = in_force.files.iter().map(|(engine, files)| ((*engine).to_owned(), files.clone()));
    undo_constraints.files.extend(files);
    if let Some(docker) = &docker.installed {
        let default = docker.unit.as_ref().and_then(CommandLine::default_runtime);
        undo_constraints.named.extend(default.map(|runtime| Named {
            component: name(Component::Docker),
            value: runtime.to_owned(),
            why: format!(
                "{} starts dockerd with --default-runtime {runtime}, which would name nothing: change that first",
                docker::UNIT
            ),
        }));
        let file = docker.config.display();
        let remedy = format!("set \"default-runtime\": \"runc\" in {file}, then systemctl reload docker");
        undo_constraints.named.extend(of_running(in_force, config, &remedy));
        let remedy = format!("{remedy} (it keeps a default that is only taken out)");
        undo_constraints.remedies.insert(name(Component::Docker), remedy);
        if docker.ends_with.iter().any(|unit| unit == UNIT) {
            undo_constraints.starts.insert(UNIT.to_owned(), start_with(config, docker, UNIT));
        }
        undo_constraints.starts.insert(docker::UNIT.to_owned(), start_now(config, docker));
    }
    undo_constraints
}

/// What the dockerd that runs would name: its default runtime, and the program of that.
fn of_running(in_force: &InForce, config: &Config, remedy: &str) -> Vec<Named> {
    let (runtime, programs, why): (_, Vec<String>, _) = match &in_force.running {
        None => return Vec::new(),
        Some(Ok(default)) => {
            let why = format!(
                "The running dockerd still uses default runtime {}; without it every `docker run` fails. To go on, \
                 {remedy}, or systemctl restart docker",
                default.name
            );
            let programs = match &default.program {
                Some(program) => vec![program.clone()],
                // Ours by its name, and dockerd does not say which program it is.
                None if default.name == config.docker.runtime => ours(),
                None => Vec::new(),
            };
            (default.name.clone(), programs, why)
        }
        Some(Err(problem)) => {
            let why = format!(
                "dockerd runs and does not say which default runtime it has ({problem}): see that it answers, or stop it \
                 (systemctl stop docker)"
            );
            (config.docker.runtime.clone(), ours(), why)
        }
    };
    let named = |component, value| Named { component: name(component), value, why: why.clone() };
    let programs = programs.into_iter().map(|program| named(Component::Wrapper, program));
    std::iter::once(named(Component::Docker, runtime)).chain(programs).collect()
}

/// Every path of the wrapper that an engine may have been given.
fn ours() -> Vec<String> {
    [INSTALLED, PACKAGED].map(str::to_owned).into()
}

fn name(component: Component) -> String {
    component.as_ref().to_owned()
}

/// containerd's part, where docker ends with containerd: then its restart is docker's.
pub(super) fn with_docker(mut part: Desired, now: &UndoConstraints) -> Desired {
    for action in &mut part.actions {
        action.effects = now.effects(&action.effects);
    }
    let waits = |effect: &Effect| matches!(effect, Effect::NextStart { .. });
    if part.actions.iter().any(|action| action.effects.iter().any(waits)) {
        part.note(
            super::containerd::NAME,
            format!(
                "{} ends whenever {UNIT} does (its Requires=, BindsTo= or PartOf=), and may stop its containers: {UNIT} \
                 is not restarted unless restart is now, or dockerd says that they outlive it; systemctl restart \
                 containerd does it",
                docker::UNIT
            ),
        );
    }
    part
}
