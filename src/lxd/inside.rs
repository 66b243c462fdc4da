//! What a container of LXD's or Incus's says when the host passed it too little.

use amdgpu::{DeviceNode, Gpu, NodeFault};
use root::Root;

use super::command::{Client, Command, Container, PLACEHOLDER};
use crate::facts::Facts;
use crate::groups::Groups;
use crate::host::{Around, UNMAPPED_ID};

/// What is missing, and the host's commands that bring it: one sentence, for a status line. `container`: the name by
/// which the host knows it, where somebody knows that.
///
/// `None` when this is no container of LXD's or Incus's, when the host's driver shows no GPU in it (that is the driver's
/// matter: see `rocworker doctor`), or when a GPU, /dev/kfd and their rights are all here.
#[must_use]
pub fn advice(root: &Root, facts: &Facts, container: Option<&str>) -> Option<String> {
    let Some(Around::Container(around)) = &facts.virtualization else { return None };
    let client = Client::of_container(around)?;
    let name = container.filter(|name| super::command::is_name(name)).unwrap_or(PLACEHOLDER);
    let container = Container { client, name, gid: Groups::read(root).gid("render") };
    let (problem, commands) = missing(facts, &container)?;
    let commands: Vec<String> = commands.iter().map(ToString::to_string).collect();
    Some(format!("{problem}: on the host, {}", commands.join(" && ")))
}

fn missing(facts: &Facts, container: &Container<'_>) -> Option<(&'static str, Vec<Command>)> {
    let driven: Vec<&Gpu> = facts.amd().filter(|gpu| gpu.driver.as_deref() == Some("amdgpu")).collect();
    let first = driven.first()?;
    let kfd = &facts.machine.kfd.node;
    let renders: Vec<&DeviceNode> = driven.iter().filter_map(|gpu| gpu.render.as_ref()).collect();
    let add_kfd = is_missing(kfd).then(|| container.add_node(&kfd.path));
    if renders.iter().all(|node| is_missing(node)) {
        let gpu = match first.pci {
            Some(address) => container.add_gpu("gpu0", address),
            None => container.add_node(&first.render.as_ref()?.path),
        };
        let commands = add_kfd.into_iter().chain([gpu]).collect();
        return Some(("amdgpu drives a GPU, and /dev has none of its nodes", commands));
    }
    if let Some(add_kfd) = add_kfd {
        return Some(("a GPU was passed in without /dev/kfd, which computing goes through", vec![add_kfd]));
    }
    let closed: Vec<Command> = [("kfd", kfd)]
        .into_iter()
        .chain(renders.into_iter().map(|node| ("gpu0", node)))
        .filter(|(_, node)| is_closed(node))
        .map(|(device, _)| container.set_rights(device))
        .collect();
    (!closed.is_empty()).then(|| {
        let mut commands = closed;
        commands.dedup();
        ("the nodes were passed in for root alone, and no task can open them (kfd and gpu0 stand for what the devices are called)", commands)
    })
}

fn is_missing(node: &DeviceNode) -> bool {
    matches!(node.state, Err(NodeFault::Missing(_)))
}

/// Whether neither everybody nor a group that a task can be given may open it.
fn is_closed(node: &DeviceNode) -> bool {
    let Ok(meta) = &node.state else { return false };
    let by_group = meta.gid != 0 && meta.gid != UNMAPPED_ID && meta.mode & 0o060 == 0o060;
    meta.mode & 0o006 != 0o006 && !by_group
}
