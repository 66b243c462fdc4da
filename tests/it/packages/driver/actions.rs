//! What a driver that is asked for comes to, as actions.

use std::path::Path;

use config::Config;
use host::facts::Facts;
use packages::Packages;
use packages::desired::apt::actions;
use packages::desired::driver::part;
use packages::driver::{Driver, Ground, offered};
use reconcile::{Desired, Resource};
use render::Templates;

use crate::packages::driver::machines::{beneath, ubuntu};

const SOURCE: &str = "/etc/apt/sources.list.d/rocworker-amdgpu.sources";

/// `offered`: what apt has, whose sources lack AMD's repository of the wanted driver.
fn wanted(offered: &str) -> Desired {
    wanted_by("driver: {install: amdgpu-dkms, version: 30.30.3}\n", offered)
}

fn wanted_by(text: &str, offered: &str) -> Desired {
    let (_folder, root) = beneath(&ubuntu());
    let config = Config::parse(Path::new("/etc/rocworker/config.yaml"), text).unwrap();
    let ground = Ground { driver: Driver::read(&root), offered: Ok(Some(offered::parse(offered))) };
    let found = Packages::read(&root);
    let (bring, said) = part(&config, &Facts::read(&root), Some(&ground), &found);
    let mut desired = actions(&config, &found, &Templates::read(&root), bring.as_deref(), false).unwrap();
    desired.extend(said);
    desired
}

fn needs(desired: &Desired, resource: &Resource) -> Option<Vec<Resource>> {
    desired.actions.iter().find(|action| action.path == *resource).map(|action| action.needs.clone())
}

fn driver() -> Resource {
    Resource::Package("amdgpu-dkms".to_owned())
}

fn module() -> Resource {
    Resource::Module("amdgpu".to_owned())
}

const DISTRIBUTIONS: &str = "linux-headers-6.8.0-45-generic | 6.8.0-45.45 | http://lab noble/main amd64 Packages\n\
     python3-setuptools | 68.1.2-2ubuntu1 | http://lab noble/main amd64 Packages\n";

#[test]
fn the_driver_comes_after_its_headers_and_the_module_after_the_driver() {
    let desired = wanted(DISTRIBUTIONS);
    let headers = Resource::Package("linux-headers-6.8.0-45-generic".to_owned());
    assert_eq!(needs(&desired, &driver()).unwrap(), [headers, SOURCE.into()]);
    assert_eq!(needs(&desired, &module()).unwrap(), [driver()]);
    assert_eq!(desired.undecided, Vec::<String>::new());
}

#[test]
fn where_another_release_would_win_the_repository_comes_alone_and_it_is_said() {
    let others = "amdgpu-dkms | 1:6.18.4.31400000-2400000.24.04 | http://other noble/main amd64 Packages\n";
    let desired = wanted(&format!("{DISTRIBUTIONS}{others}"));
    assert!(needs(&desired, &SOURCE.into()).is_some());
    assert!(needs(&desired, &driver()).is_none() && needs(&desired, &module()).is_none());
    assert_eq!(desired.undecided, ["packages"]);
    let problems: Vec<_> = desired.notes.iter().filter(|note| note.problem).map(|note| &note.text).collect();
    assert!(problems.len() == 1 && problems[0].contains("installs from there once it has"), "{problems:?}");
}

#[test]
fn gpu_node_brings_headers_then_the_installer_then_the_module() {
    let installer = || Resource::Package("amdgpu-install".to_owned());
    let desired = wanted_by("GPU_NODE: true\n", DISTRIBUTIONS);
    let headers = Resource::Package("linux-headers-6.8.0-45-generic".to_owned());
    let at =
        |resource: &Resource| desired.actions.iter().position(|action| action.path == *resource).unwrap();
    assert!(at(&headers) < at(&installer()), "{:#?}", desired.actions);
    assert!(at(&Resource::Package("python3-setuptools".to_owned())) < at(&installer()));
    assert_eq!(needs(&desired, &installer()).unwrap(), [headers]);
    assert_eq!(needs(&desired, &module()).unwrap(), [installer()]);
    assert_eq!(desired.undecided, Vec::<String>::new());

    // Without headers dkms would build nothing.
    let desired = wanted_by("GPU_NODE: true\n", "");
    assert!(needs(&desired, &installer()).is_none() && needs(&desired, &module()).is_none());
    assert_eq!(desired.undecided, ["packages"]);
    let problems: Vec<_> = desired.notes.iter().filter(|note| note.problem).map(|note| &note.text).collect();
    let said = "amdgpu-install is not run: it is built with the running kernel's headers, and apt has no";
    assert!(problems.len() == 1 && problems[0].starts_with(said), "{problems:?}");

    // ROCm alone builds nothing.
    let desired = wanted_by("GPU_NODE: true\nrocm: {usecases: [rocm]}\n", "");
    assert_eq!(needs(&desired, &installer()).unwrap(), Vec::<Resource>::new());
    assert!(needs(&desired, &module()).is_none());
    let desired = wanted_by("GPU_NODE: false\n", DISTRIBUTIONS);
    assert!(desired.actions.is_empty(), "{:#?}", desired.actions);
}
