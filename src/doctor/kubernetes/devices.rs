//! Whether the kubelet's devices are the GPUs that containers can use, and whether each pod's devices are still there.

use std::collections::BTreeSet;
use std::path::Path;

use check::{About, Check};
use inventory::{Gpu, kubelet};
use root::Root;

use super::checkpoint::{Checkpoint, Given, Lack};
use super::{KUBELETS, NAME};
use crate::doctor::machine::Subject;

/// At most this many devices or pods are named.
const MOST_NAMED: usize = 4;

const BY_PLUGIN: &str = "delete the device plugin's pod of this node: its DaemonSet starts it again, and it registers the GPUs anew";

/// `has_plugin`: whether a device plugin's socket is beside the kubelet's.
pub(super) fn check(
    subject: &Subject<'_>,
    checkpoint: &Result<Checkpoint, Lack>,
    has_plugin: bool,
) -> Vec<Check> {
    let about = About::one(NAME, "devices");
    let checkpoint = match checkpoint {
        Ok(checkpoint) => checkpoint,
        Err(Lack::Unknown(why)) => {
            return vec![about.skipped(format!("which the kubelet has is not known: {why}"))];
        }
        Err(Lack::Absent) if has_plugin => return vec![nothing(about)],
        Err(Lack::Absent) => return Vec::new(),
    };
    let Some(devices) = Devices::read(subject) else {
        return vec![about.skipped("which devices this machine has is not known")];
    };
    let of_kubelet = of_kubelet(about, checkpoint, &devices, has_plugin);
    of_kubelet.into_iter().chain(of_pods(subject.root, checkpoint, &devices)).collect()
}

fn nothing(about: About) -> Check {
    about.warning("a device plugin is here, and the kubelet has no healthy device of AMD's", BY_PLUGIN)
}

/// The ids by which AMD's device plugin and rocworker's name the devices of this machine.
struct Devices {
    present: BTreeSet<String>,
    usable: BTreeSet<String>,
}

impl Devices {
    fn read(subject: &Subject<'_>) -> Option<Self> {
        if subject.facts.inventory.may_lack_gpus() {
            return None;
        }
        let driven: Vec<&Gpu> = subject.facts.amd().filter(|gpu| gpu.is_driven_by_amdgpu()).collect();
        let ids = |is_meant: fn(&Gpu) -> bool| -> Option<BTreeSet<String>> {
            driven.iter().filter(|gpu| is_meant(gpu)).map(|gpu| kubelet::id(gpu)).collect()
        };
        Some(Self { present: ids(|_| true)?, usable: ids(Gpu::usable)? })
    }
}

fn of_kubelet(about: About, checkpoint: &Checkpoint, devices: &Devices, has_plugin: bool) -> Option<Check> {
    let ids: BTreeSet<&str> =
        checkpoint.registered.values().flatten().map(|id| kubelet::of_whole(id)).collect();
    if ids.is_empty() {
        return has_plugin.then(|| nothing(about));
    }
    let counted = counts(checkpoint);
    let among = |set: &BTreeSet<String>, is: bool| -> Vec<&str> {
        ids.iter().copied().filter(|id| set.contains(*id) == is).collect()
    };
    let gone = among(&devices.present, false);
    let unusable: Vec<&str> =
        among(&devices.present, true).into_iter().filter(|id| !devices.usable.contains(*id)).collect();
    let missing: Vec<&str> =
        devices.usable.iter().map(String::as_str).filter(|id| !ids.contains(id)).collect();
    if !gone.is_empty() {
        return Some(about.failed(
            format!(
                "{counted}, and {} of them {} here no more: {}. A card has gone or was divided anew, and the device \
                 plugin has not registered what is there now",
                gone.len(),
                if gone.len() == 1 { "is" } else { "are" },
                named(&gone)
            ),
            BY_PLUGIN,
        ));
    }
    if !unusable.is_empty() {
        return Some(about.warning(
            format!("{counted}, and no container can use {}", named(&unusable)),
            "make them usable (the checks above), and give pods no GPU of this node until then: kubectl cordon",
        ));
    }
    if !missing.is_empty() {
        let (lacks, gpus) = (missing.len(), devices.usable.len());
        return Some(about.warning(
            format!(
                "{counted}, and containers can use {}: {lacks} {} not registered or not healthy: {}",
                printable::counted(gpus, "GPU"),
                if lacks == 1 { "is" } else { "are" },
                named(&missing)
            ),
            format!("rocworker health says whether they are healthy. If they are, {BY_PLUGIN}"),
        ));
    }
    Some(about.ok(format!("{counted}: each GPU that containers can use")))
}

/// `amd.com/cpx_nps4 has 8 devices, amd.com/gpu has 1 device`
fn counts(checkpoint: &Checkpoint) -> String {
    let counts = checkpoint.registered.iter().filter(|(_, ids)| !ids.is_empty()).map(|(resource, ids)| {
        let whole: BTreeSet<&str> = ids.iter().map(|id| kubelet::of_whole(id)).collect();
        let slices = match whole.len() {
            gpus if gpus == ids.len() => String::new(),
            gpus => format!(" (slices of {})", printable::counted(gpus, "GPU")),
        };
        format!("{resource} has {}{slices}", printable::counted(ids.len(), "device"))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// Pods that hold a device which is not here any more. An entry outlives its pod until the kubelet admits another; the
/// pod's folder does not.
fn of_pods(root: &Root, checkpoint: &Checkpoint, devices: &Devices) -> Option<Check> {
    let about = About::one(NAME, "pods");
    let has_folder = |given: &&Given| {
        KUBELETS.iter().any(|folder| root.exists(Path::new(folder).join("pods").join(&given.pod)))
    };
    let given: Vec<&Given> = checkpoint.given.iter().filter(has_folder).collect();
    let lost = |given: &Given| -> Vec<String> {
        let is_gone = |id: &&String| !devices.present.contains(kubelet::of_whole(id));
        given.devices.iter().filter(is_gone).cloned().collect()
    };
    let lost: Vec<(&Given, Vec<String>)> =
        given.iter().map(|given| (*given, lost(given))).filter(|(_, lost)| !lost.is_empty()).collect();
    let Some((first, _)) = lost.first() else {
        let pods: BTreeSet<&str> = given.iter().map(|given| &*given.pod).collect();
        let (count, have) =
            (printable::counted(pods.len(), "pod"), if pods.len() == 1 { "has" } else { "have" });
        return (!pods.is_empty())
            .then(|| about.ok(format!("{count} {have} devices, and each of these is here")));
    };
    let said: Vec<String> = lost
        .iter()
        .map(|(given, lost)| {
            let lost: Vec<&str> = lost.iter().map(String::as_str).collect();
            format!("container {} of pod {} has {}", given.container, given.pod, named(&lost))
        })
        .collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    Some(about.failed(
        format!("devices that are here no more: {}", named(&said)),
        format!(
            "delete the pod, so that a new one gets another device. Its name: kubectl get pods --all-namespaces --output \
             custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,UID:.metadata.uid | grep {}",
            first.pod
        ),
    ))
}

fn named(all: &[&str]) -> String {
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", all.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", "))
}
