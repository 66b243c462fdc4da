//! Whether Kubernetes' Kernel Module Management loads amdgpu here, as the AMD GPU Operator has it do: a blacklist then
//! keeps the kernel's own build out, and is meant.

use amdgpu::Module;
use root::Root;

use super::Hindrances;

/// A kubelet's folder, whichever distribution of Kubernetes started it.
const KUBELET: &str = "/var/lib/kubelet";

/// What to do about such a line.
pub(crate) const LEAVE: &str = "leave it: the AMD GPU Operator's KMM loads its own build of amdgpu; where that is missing, see its \
                                Module (kubectl get modules.kmm.sigs.x-k8s.io -A)";

/// What the operator writes above its line says so, as does an AMD build that runs on a node of Kubernetes whose disk has
/// the kernel's own build alone: KMM loads modules out of an image.
#[must_use]
pub fn loads(root: &Root, module: &Module, hindrances: &Hindrances) -> bool {
    is_operators(root, hindrances)
        || (module.loaded == Ok(true)
            && module.version.is_ok()
            && root.exists(KUBELET)
            && has_kernels_own_alone(root) == Some(true))
}

/// For who wants to install a driver: a line that the operator wrote is not to be removed for it.
pub(super) fn judged(root: &Root, mut hindrances: Hindrances) -> Hindrances {
    if is_operators(root, &hindrances) {
        let remedy =
            "write driver.install: keep, for the AMD GPU Operator's KMM loads the driver of this node";
        hindrances.found.iter_mut().for_each(|it| it.remedy = remedy);
    }
    hindrances
}

/// The operator's node labeller writes "blacklist driven by amd gpu operator" above its line.
fn is_operators(root: &Root, hindrances: &Hindrances) -> bool {
    let files = hindrances.found.iter().filter_map(|it| it.place.rsplit_once(':'));
    let mut texts = files.filter_map(|(file, _)| root.read_text(file, 1 << 20).ok());
    let names_it = |line: &str| line.starts_with('#') && line.to_ascii_lowercase().contains("gpu operator");
    texts.any(|text| text.lines().any(names_it))
}

/// By modules.dep of the running kernel; `None` where that cannot be read.
fn has_kernels_own_alone(root: &Root) -> Option<bool> {
    let release = root.read_text("/proc/sys/kernel/osrelease", 256).ok()?;
    let modules = root.read_text(format!("/lib/modules/{}/modules.dep", release.trim()), 16 << 20).ok()?;
    let paths = modules.lines().filter_map(|line| line.split(':').next());
    Some(paths.filter(|path| path.contains("/amdgpu.ko")).all(|path| path.starts_with("kernel/")))
}
