//! What taking engines' configuration back has to heed, by how the engines are configured now: settings that name our
//! runtime, and whether an engine may begin anew.

use reconcile::{Named, WayBack};

use super::{containerd, docker};
use crate::config::Config;
use crate::engines::docker::CommandLine;
use crate::engines::{Containerd, Docker};

/// The same for undo, which no configuration of ours keeps from it, and for an engine that is not to be configured any
/// more.
#[must_use]
pub fn way_back(config: &Config, containerd: Option<&Containerd>, docker: &Docker) -> WayBack {
    let mut way_back = WayBack::default();
    if let Some(containerd) = containerd {
        let files = containerd.files.iter().map(|file| file.path.clone());
        way_back.files.insert(containerd::ABOUT.to_owned(), files.collect());
    }
    if let Some(docker) = &docker.installed {
        way_back.files.insert(docker::ABOUT.to_owned(), vec![docker.config.clone()]);
        let default = docker.unit.as_ref().and_then(CommandLine::default_runtime);
        way_back.named.extend(default.map(|runtime| Named {
            concern: docker::ABOUT.to_owned(),
            value: runtime.to_owned(),
            by: format!("{} starts dockerd with --default-runtime {runtime}", docker::UNIT),
        }));
        way_back.starts.insert(docker::UNIT.to_owned(), docker::start_now(config, docker));
    }
    way_back
}
