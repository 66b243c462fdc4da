//! A container: its nodes are what was passed in, root:root 0660 by LXD's default, and no uevent reaches it.

use std::path::Path;

use config::Config;
use host::UNMAPPED_ID;
use host::facts::Facts;
use host::groups::Groups;
use inventory::Device;
use inventory::DeviceNode;
use minijinja::context;
use reconcile::{Action, Desired, Kind, Stage};
use render::{self, Error, Templates};

use super::{ABOUT, GROUP, check, lacks_group, rendered};

/// tmpfiles.d(5). systemd-tmpfiles-setup-dev.service applies what it says of /dev at every start, from systemd 241
/// on in containers too (systemd's pull request 11563).
const TMPFILES: &str = "/etc/tmpfiles.d/rocworker.conf";

pub(super) fn actions(
    config: &Config,
    facts: &Facts,
    templates: &Templates,
    groups: &Groups,
    around: &str,
    has_boot_unit: bool,
) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    let render_gid = groups.gid(GROUP);
    if !config.module_options.is_empty() {
        desired.problem(
            ABOUT,
            format!(
                "module-options cannot be set from inside a container ({around}): configure them on its host"
            ),
        );
    }
    let nodes = settable(facts, &mut desired);
    if nodes.is_empty() {
        return Ok(desired);
    }
    if lacks_group(config, render_gid) {
        desired.problem(
            ABOUT,
            format!(
                "this container has no group {GROUP}, so that /dev/kfd and the render nodes are left as they were \
                 passed in: {}, and apply again",
                Groups::made(GROUP, None)
            ),
        );
        return Ok(desired);
    }
    if facts.systemd {
        if !has_boot_unit {
            desired.push(at_boot(config, templates, render_gid, &nodes)?);
        }
    } else {
        desired.note(
            ABOUT,
            format!(
                "this container ({around}) does not run systemd: the nodes' group and mode hold until its next \
                 start; apply again from whatever starts its services"
            ),
        );
    }
    for (path, device) in nodes {
        // Rocworker also wants a node that is right already: apply reverts what is no longer wanted.
        let kind = Kind::Node { mode: config.permissions.mode(), gid: render_gid.unwrap_or(device.gid) };
        let reason = "who may open it: it was passed in with the group and mode of the container's manager";
        desired.push(Action::new(Stage::Shape, path, kind, reason));
    }
    Ok(desired)
}

/// AMD's compute nodes that are there and can be changed, in the order of the GPUs.
fn settable<'a>(facts: &'a Facts, desired: &mut Desired) -> Vec<(&'a Path, Device)> {
    let render = facts.amd().filter_map(|gpu| gpu.render.as_ref());
    let mut nodes = Vec::new();
    for DeviceNode { path, state } in [&facts.inventory.kfd.node].into_iter().chain(render) {
        match state {
            // Everybody may open it, so that nothing is missing.
            Ok(device) if is_foreign(device) && device.mode & 0o006 == 0o006 => {}
            Ok(device) if is_foreign(device) => desired.problem(
                ABOUT,
                format!(
                    "{} has an owner or group that this container does not map, so that no user of the container can \
                     change the node: pass it in with a uid, gid and mode (lxc config device set)",
                    path.display()
                ),
            ),
            Ok(device) => nodes.push((path.as_path(), *device)),
            // detect says why; there is nothing to set.
            Err(_) => {}
        }
    }
    nodes
}

/// The kernel lets root of a user namespace change what belongs to ids of that namespace, owner and group both
/// (capable_wrt_inode_uidgid in kernel/capability.c).
fn is_foreign(device: &Device) -> bool {
    device.uid == UNMAPPED_ID || device.gid == UNMAPPED_ID
}

fn at_boot(
    config: &Config,
    templates: &Templates,
    render_gid: Option<u32>,
    nodes: &[(&Path, Device)],
) -> Result<Action, Error> {
    let nodes: Vec<String> = nodes.iter().map(|(path, _)| path.display().to_string()).collect();
    // A dash leaves the group as it is.
    let group = render_gid.map_or("-", |_| GROUP);
    let mode = format!("{:04o}", config.permissions.mode());
    let context = context! { permissions => config.permissions.name(), nodes, mode, group };
    let text = rendered(templates, render::TMPFILES, context, check::tmpfiles)?;
    Ok(Action::file(
        Stage::Shape,
        TMPFILES,
        text,
        "AMD's nodes have their group and mode from every start on",
    ))
}
