//! What taking engines' configuration back has to heed, by how the engines are configured now: settings that name our
//! runtime, and whether an engine may begin anew.

use reconcile::{Desired, Effect, Named, Running, WayBack};

use super::concern::Concern;
use super::{containerd, docker};
use crate::config::Config;
use crate::engines::containerd::UNIT;
use crate::engines::docker::CommandLine;
use crate::engines::{Containerd, Docker};

/// Where the system's containerd and one that dockerd starts keep the bundles of what runs.
const BUNDLES: [&str; 2] = [
    "/run/containerd/io.containerd.runtime.v2.task",
    "/run/docker/containerd/daemon/io.containerd.runtime.v2.task",
];

/// containerd's shim writes its options and the runtime's path there (`WriteOptions` and `WriteRuntime` of
/// runtime/v2/runc), and calls that path to stop a container, whatever containerd's configuration says by then.
fn bundles(folder: &str) -> Running {
    let files = ["options.json", "runtime"].map(str::to_owned).to_vec();
    Running { folder: folder.into(), files, what: "container".to_owned() }
}

/// The same for undo, which no configuration of ours keeps from it, and for an engine that is not to be configured any
/// more.
#[must_use]
pub fn way_back(config: &Config, containerd: Option<&Containerd>, docker: &Docker) -> WayBack {
    let mut way_back = WayBack::default();
    way_back.running.insert(name(Concern::Wrapper), BUNDLES.map(bundles).into());
    if let Some(containerd) = containerd {
        let files = containerd.files.iter().map(|file| file.path.clone());
        way_back.files.insert(name(Concern::Containerd), files.collect());
    }
    if let Some(docker) = &docker.installed {
        way_back.files.insert(name(Concern::Docker), vec![docker.config.clone()]);
        let default = docker.unit.as_ref().and_then(CommandLine::default_runtime);
        way_back.named.extend(default.map(|runtime| Named {
            concern: name(Concern::Docker),
            value: runtime.to_owned(),
            by: format!("{} starts dockerd with --default-runtime {runtime}", docker::UNIT),
        }));
        if docker.ends_with.iter().any(|unit| unit == UNIT) {
            way_back.starts.insert(UNIT.to_owned(), docker::start_with(config, docker, UNIT));
        }
        way_back.starts.insert(docker::UNIT.to_owned(), docker::start_now(config, docker));
    }
    way_back
}

fn name(concern: Concern) -> String {
    concern.as_ref().to_owned()
}

/// containerd's part, where docker ends with containerd: then its restart is docker's.
pub(super) fn with_docker(mut part: Desired, now: &WayBack) -> Desired {
    for action in &mut part.actions {
        action.effects = now.effects(&action.effects);
    }
    let waits = |effect: &Effect| matches!(effect, Effect::NextStart { .. });
    if part.actions.iter().any(|action| action.effects.iter().any(waits)) {
        part.note(
            containerd::ABOUT,
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
