//! How a node gets into a container: whether it did, and what to say to whoever made the container.

use std::path::Path;

use amdgpu::{Gpu, NodeFault};

use super::check::{About, Check, Remedy};
use super::machine::{Subject, gpus};
use crate::host::Around;
use crate::lxd::command::{Client, Container, PLACEHOLDER, on_the_host};

/// Tells a missing passthrough from a missing driver: with the driver in sysfs, only the node can be missing. `name`:
/// the concern that it is a check of.
pub(super) fn check(name: &'static str, subject: &Subject<'_>) -> Option<Check> {
    if !subject.in_container() {
        return None;
    }
    let driven: Vec<_> = subject.facts.amd().filter(|gpu| gpu.driver.as_deref() == Some("amdgpu")).collect();
    let outside = driven.iter().filter(|gpu| subject.is_left_outside(gpu)).count();
    let about = About::one(name, "passthrough");
    let first = *driven.first()?;
    let (all, inside) = (gpus(driven.len()), driven.len() - outside);
    let kfd = &subject.facts.machine.kfd.node;
    let lacks_kfd = matches!(kfd.state, Err(NodeFault::Missing(_)));
    Some(match (inside, lacks_kfd) {
        (0, _) => about.failed(
            format!("sysfs shows {all} of amdgpu, and none of them in /dev: the driver is there, the passthrough is not"),
            of_gpu(subject, first, lacks_kfd),
        ),
        (_, true) => about.failed(
            format!(
                "sysfs shows {all} of amdgpu, and {inside} of them here in /dev, without /dev/kfd, which computing goes \
                 through: a GPU was passed in, and KFD was not"
            ),
            of_node(subject, &kfd.path),
        ),
        (_, false) => about.ok(format!("sysfs shows {all} of amdgpu, and {inside} of them here in /dev")),
    })
}

/// The commands on the host, for LXD and Incus with the container's own gid of render: without `gid=` the node
/// would be root's, which nobody in a nested user namespace can open.
fn of_gpu(subject: &Subject<'_>, gpu: &Gpu, with_kfd: bool) -> Remedy {
    let kfd = &subject.facts.machine.kfd.node.path;
    let Some(container) = container(subject) else {
        let render = gpu.render.as_ref().map_or(Path::new("/dev/dri/renderD…"), |node| &node.path);
        return format!("start it with --device {} --device {}", kfd.display(), render.display()).into();
    };
    let further_partition = gpu.partition.as_ref().is_some_and(|partition| partition.id > 0);
    let of_gpu = match (&gpu.render, gpu.pci) {
        (_, Some(address)) if !further_partition => Some(container.add_gpu("gpu0", address)),
        (Some(node), _) => Some(container.add_node(&node.path)),
        (None, _) => None,
    };
    let Some(of_gpu) = of_gpu else {
        return format!("rocworker lxd advise on the host names the {} commands", container.client.program())
            .into();
    };
    let of_kfd = with_kfd.then(|| container.add_node(kfd));
    of_kfd.into_iter().chain([of_gpu]).collect::<Vec<_>>().into()
}

/// One node by its path.
pub(super) fn of_node(subject: &Subject<'_>, path: &Path) -> Remedy {
    match container(subject) {
        Some(container) => vec![container.add_node(path)].into(),
        None => format!("start the container with --device {}", path.display()).into(),
    }
}

/// How the owner and mode of a node that was passed in are changed.
pub(super) fn of_rights(subject: &Subject<'_>) -> String {
    match container(subject) {
        Some(container) => {
            format!("{}, with the device that passes it in", on_the_host(&[container.set_rights("DEVICE")]))
        }
        None => "give the node group render and mode 0660 on the host: a container shows it as it is there"
            .to_owned(),
    }
}

fn container(subject: &Subject<'_>) -> Option<Container<'static>> {
    let around = subject.facts.virtualization.as_ref().map(Around::name)?;
    let client = Client::of_container(around)?;
    Some(Container { client, name: PLACEHOLDER, gid: subject.groups.gid("render") })
}
