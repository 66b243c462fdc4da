//! GPUs of this machine that are still coming up: a driver that is loaded at boot takes seconds for each card, and udev
//! sets a node's group after the kernel has made it.

use std::path::Path;

use config::Config;
use config::selection::select;
use host::facts::Facts;
use inventory::{Around, DeviceNode, Gpu, Problem};
use root::Root;
use serde::Serialize;

/// udevd's socket, which exists while udevd runs.
const UDEVD: &str = "/run/udev/control";

/// A GPU that a container is to be given and cannot be given yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingGpu {
    /// `GPU 0 (0000:64:00.0)`.
    pub gpu: String,
    /// What is missing, in sentences.
    pub problems: Vec<String>,
}

/// GPUs that the configuration means and that may still come. None in a container: it has the nodes that it was started
/// with, and loads no driver.
#[must_use]
pub fn pending_gpus(root: &Root, config: &Config, facts: &Facts) -> Vec<PendingGpu> {
    if !config.gpus.is_on() || matches!(facts.inventory.virtualization, Some(Around::Container(_))) {
        return Vec::new();
    }
    let meant: Vec<&Gpu> = match select(config, facts) {
        Ok(selection) if selection.listed => [selection.gpus, selection.left_out].concat(),
        // What is not known of a card without its driver, its uuid, may be what the configuration names it by.
        Ok(_) | Err(_) => facts.amd().collect(),
    };
    let kfd = &facts.inventory.kfd.node;
    meant.into_iter().filter_map(|gpu| of(root, gpu, kfd)).collect()
}

fn of(root: &Root, gpu: &Gpu, kfd: &DeviceNode) -> Option<PendingGpu> {
    let problems: Vec<String> = if gpu.usable() {
        [Some(kfd), gpu.render.as_ref()].into_iter().flatten().filter_map(|node| unset(root, node)).collect()
    } else if gpu.problems.iter().all(may_pass) {
        gpu.problems.iter().map(ToString::to_string).collect()
    } else {
        Vec::new()
    };
    let index = gpu.index.map_or_else(String::new, |index| format!(" {index}"));
    let address = gpu.pci.map_or_else(String::new, |address| format!(" ({address})"));
    (!problems.is_empty()).then(|| PendingGpu { gpu: format!("GPU{index}{address}"), problems })
}

/// Whether what keeps a GPU from containers can be that its driver is not done. amdgpu gives KFD a card before it
/// registers its DRM nodes (amdgpu_pci_probe in amdgpu_drv.c), so that a card which has a render node and is not known
/// to KFD stays so.
fn may_pass(problem: &Problem) -> bool {
    match problem {
        Problem::Unbound
        | Problem::NoRenderNode
        | Problem::Node(_)
        | Problem::Kfd(_)
        | Problem::NoKfd(_)
        | Problem::CardUnknown => true,
        Problem::NotAmd
        | Problem::NeverComputes(_)
        | Problem::LeftToRadeon(_)
        | Problem::OtherDriver(_)
        | Problem::KfdParameter(_)
        | Problem::UnknownToKfd { .. }
        | Problem::UnreadInKfd(_)
        | Problem::HiddenByKfd
        | Problem::SharedMinor { .. } => false,
    }
}

/// Why a node is not ready: udevd runs and has not gone over it. udevd writes its record of a device after it has set
/// the node (udev_event_execute_rules in systemd's udev-event.c).
fn unset(root: &Root, node: &DeviceNode) -> Option<String> {
    let (major, minor) = node.number()?;
    let record = format!("/run/udev/data/c{major}:{minor}");
    let is_set = !root.exists(UDEVD) || root.exists(Path::new(&record));
    (!is_set).then(|| format!("udev has not set {} yet", node.path.display()))
}
