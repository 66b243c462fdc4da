//! Which device plugin serves AMD's GPUs, by the sockets beside the kubelet's.

use check::{About, Check};
use inventory::kubelet;
use root::{Root, if_there};

use super::{DEVICE_PLUGINS, NAME};
use crate::doctor::machine::Subject;

/// AMD's DRA driver keeps its socket here (ROCm/k8s-gpu-dra-driver).
const DRA_DRIVER: &str = "/var/lib/kubelet/plugins/gpu.amd.com";

pub(super) struct Plugins {
    /// `amd.com_gpu`
    amds: Vec<String>,
    /// `rocworker-gpu.sock`
    rocworkers: Vec<String>,
}

impl Plugins {
    /// # Errors
    /// Why it is not known: only root can list the folder.
    pub(super) fn read(root: &Root) -> Result<Self, root::Error> {
        let names = if_there(root.list(DEVICE_PLUGINS))?.unwrap_or_default();
        let mut names: Vec<String> = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        let (rocworkers, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| kubelet::is_socket(name));
        let is_amds = |name: &String| name.starts_with(&kubelet::amds_socket(""));
        Ok(Self { amds: others.into_iter().filter(is_amds).collect(), rocworkers })
    }

    pub(super) fn is_any(&self) -> bool {
        !self.amds.is_empty() || !self.rocworkers.is_empty()
    }
}

pub(super) fn check(subject: &Subject<'_>, plugins: &Result<Plugins, root::Error>) -> Check {
    let about = About::one(NAME, "plugin");
    let Plugins { amds, rocworkers } = match plugins {
        Ok(plugins) => plugins,
        Err(why) => return about.skipped(why.to_string()),
    };
    match (amds.first(), rocworkers.first()) {
        (Some(amds), Some(rocworkers)) => about.warning(
            format!(
                "two device plugins are here, AMD's ({amds}) and rocworker's ({rocworkers}): of a resource that both \
                 register, the kubelet has the devices of the one that came last"
            ),
            "remove the DaemonSet of one of them",
        ),
        (Some(_), None) => about.ok(format!("AMD's device plugin: {}", amds.join(", "))),
        (None, Some(_)) => about.ok(format!("rocworker's device plugin: {}", rocworkers.join(", "))),
        (None, None) if subject.root.exists(DRA_DRIVER) => {
            about.skipped("no device plugin: AMD's DRA driver gives pods their GPUs")
        }
        (None, None) if subject.config.wrapper.pods.is_some() => {
            about.skipped("no device plugin: pods ask the runtime for GPUs (wrapper.pods)")
        }
        (None, None) => about.warning(
            "no device plugin serves AMD's GPUs: no pod gets one",
            "install one: docs/kubernetes.md. Where one is installed, its pod's log says why it has ended",
        ),
    }
}
