//! A machine with udev and a kernel of its own.

use std::path::{Path, PathBuf};

use config::Config;
use host::facts::Facts;
use host::groups::Groups;
use host::module_load::{self, ModuleLoad};
use minijinja::context;
use reconcile::{Action, Desired, Effect, Stage};
use render::{self, Error, Templates};

use super::{ABOUT, GROUP, check, lacks_group, rendered};

/// The path that AMD's documents, ClusterBloom and AMD's own package use: one file, not two that contradict.
const RULES: &str = "/etc/udev/rules.d/70-amdgpu.rules";
const RIVALS: &str = "ClusterBloom, or AMD's package amdgpu-insecure-instinct-udev-rules";

/// The managed file where an unmanaged file has the usual name of `module_load::PATH`.
const LOAD_BESIDE: &str = "/etc/modules-load.d/rocworker-amdgpu.conf";

/// modprobe.d(5). People write options themselves in /etc/modprobe.d/amdgpu.conf. Both files count; of a parameter
/// that both name, modprobe takes the value of the later file, which is this one.
const OPTIONS: &str = "/etc/modprobe.d/rocworker-amdgpu.conf";

pub(super) fn actions(
    config: &Config,
    facts: &Facts,
    templates: &Templates,
    groups: &Groups,
) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    let render_gid = groups.gid(GROUP);
    if lacks_group(config, render_gid) {
        desired.problem(
            ABOUT,
            format!(
                "this machine has no group {GROUP}, so that root alone may open /dev/kfd and the render nodes: \
                 {}, and apply again",
                Groups::made(GROUP, None)
            ),
        );
    }
    desired.push(rules(config, facts, templates, render_gid)?);
    if let Some(path) = place(facts.module_load) {
        let text = rendered(templates, render::MODULE_LOAD, context! {}, check::modules_load)?;
        let text = module_load::headed(&text);
        desired.push(Action::file(Stage::Shape, path, text, "the driver of AMD's GPUs is loaded at boot"));
    }
    if !config.module_options.is_empty() {
        desired.push(options(config, templates)?);
    }
    Ok(desired)
}

/// The file that shall load amdgpu; `None` where one does. An unmanaged file may load more than amdgpu, and stays.
fn place(load: ModuleLoad) -> Option<&'static str> {
    match load {
        ModuleLoad::Free => Some(module_load::PATH),
        ModuleLoad::SaysElse => Some(LOAD_BESIDE),
        ModuleLoad::Loads | ModuleLoad::Operators => None,
    }
}

fn rules(
    config: &Config,
    facts: &Facts,
    templates: &Templates,
    render_gid: Option<u32>,
) -> Result<Action, Error> {
    let (permissions, mode) = (config.permissions.name(), config.permissions.mode());
    // Where there is no such group the name would be an error; once there is, the rules change and are triggered.
    let assigned = match render_gid {
        Some(_) => format!("GROUP=\"{GROUP}\", MODE=\"{mode:04o}\""),
        None => format!("MODE=\"{mode:04o}\""),
    };
    let context = context! { permissions, rights => assigned };
    let text = rendered(templates, render::UDEV, context, check::rules)?;
    Ok(Action::file(Stage::Shape, RULES, text, "who may open AMD's compute nodes")
        .with(Effect::Udev { devices: devices(facts) })
        .contested_by(RIVALS))
}

/// The sysfs folders of the devices that the udev rules are about.
fn devices(facts: &Facts) -> Vec<PathBuf> {
    let render = facts.amd().filter_map(|gpu| gpu.render.as_ref()?.path.file_name());
    let render = render.map(|name| Path::new("/sys/class/drm").join(name));
    [PathBuf::from("/sys/class/kfd/kfd")].into_iter().chain(render).collect()
}

fn options(config: &Config, templates: &Templates) -> Result<Action, Error> {
    let options: Vec<String> =
        config.module_options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let text = rendered(templates, render::MODULE_OPTIONS, context! { options }, check::modprobe)?;
    let reason = "parameters of amdgpu, which it reads when it is loaded: after a reboot, and before that \
                  `update-initramfs -u` where the initramfs has the driver in it";
    Ok(Action::file(Stage::Shape, OPTIONS, text, reason))
}
