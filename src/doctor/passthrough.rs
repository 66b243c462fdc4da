//! How a node gets into a container: what to say to whoever made it.

use std::path::Path;

use amdgpu::Gpu;

use super::machine::Subject;
use crate::host::Around;

/// The commands on the host, for LXD and Incus with the container's own gid of render: without `gid=` the node
/// would be root's, which nobody in a nested user namespace can open.
pub(super) fn of_gpu(subject: &Subject<'_>, gpu: &Gpu) -> String {
    let Some(client) = client(subject) else {
        let render = gpu.render.as_ref().map_or(Path::new("/dev/dri/renderD…"), |node| &node.path);
        return format!("start it with --device /dev/kfd --device {}", render.display());
    };
    let gid = gid(subject);
    let further_partition = gpu.partition.as_ref().is_some_and(|partition| partition.id > 0);
    match (&gpu.render, gpu.pci) {
        (_, Some(address)) if !further_partition => {
            format!(
                "on the host: {client} config device add CONTAINER gpu0 gpu pci={address} {gid} mode=0660"
            )
        }
        (Some(node), _) => of_node(subject, &node.path),
        (None, _) => format!("on the host: {client} config device add CONTAINER gpu0 gpu {gid} mode=0660"),
    }
}

/// One node by its path.
pub(super) fn of_node(subject: &Subject<'_>, path: &Path) -> String {
    let shown = path.display();
    let Some(client) = client(subject) else { return format!("start the container with --device {shown}") };
    let name = path.file_name().map_or_else(|| "node".into(), |name| name.to_string_lossy());
    let gid = gid(subject);
    format!(
        "on the host: {client} config device add CONTAINER {name} unix-char source={shown} path={shown} {gid} mode=0660"
    )
}

/// How the owner and mode of a node that was passed in are changed.
pub(super) fn of_rights(subject: &Subject<'_>) -> String {
    match client(subject) {
        Some(client) => format!(
            "on the host: {client} config device set CONTAINER DEVICE {} mode=0660, with the device that passes it in",
            gid(subject)
        ),
        None => "give the node group render and mode 0660 on the host: a container shows it as it is there"
            .to_owned(),
    }
}

fn client(subject: &Subject<'_>) -> Option<&'static str> {
    match subject.facts.virtualization.as_ref().map(Around::name) {
        Some("lxd") => Some("lxc"),
        Some("incus") => Some("incus"),
        _ => None,
    }
}

fn gid(subject: &Subject<'_>) -> String {
    match subject.groups.gid("render") {
        Some(gid) => format!("gid={gid}"),
        None => "gid=GID-OF-RENDER-IN-THE-CONTAINER".to_owned(),
    }
}
