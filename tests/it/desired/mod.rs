//! What each component should be: a pure function of the configuration and the machine.

mod concourse;
mod containerd;
mod crio;
mod docker;
mod host;
mod policy;
mod real_docker;
mod real_getent;
mod real_udev;
mod tags;
mod templates;
mod wanted;

use std::path::Path;

use config::Config;
use config::selection::Selection;
use engines::{Engines, Wish};
use reconcile::Desired;
use render::Templates;

/// What is wanted of engines on a machine whose GPUs are not selected.
fn of_engines(config: &str, engines: &Engines) -> Desired {
    let config = &Config::parse(Path::new("config.yaml"), config).unwrap();
    let selection = &Selection { gpus: Vec::new(), listed: false, left_out: Vec::new() };
    let wrapper = Some(Path::new("/usr/local/bin/runc-amd-wrapper"));
    engines::desired(&Wish { config, engines, templates: &Templates::built_in(), selection, wrapper })
}
