//! Whether Kubernetes' Kernel Module Management loads amdgpu here, as the AMD GPU Operator has it do: a blacklist then
//! keeps the kernel's own build out, and is meant.

use inventory::Module;
use root::Root;

use super::Hindrances;

/// A kubelet's folder, whichever distribution of Kubernetes started it.
const KUBELET: &str = "/var/lib/kubelet";

/// What to do about such a line.
pub const LEAVE: &str = "leave it: the AMD GPU Operator's KMM loads its own build of amdgpu; where that is missing, see its \
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

/// Gives hindrances the remedy for a node whose driver KMM loads: a line that keeps the kernel's own build out for KMM
/// is not to be removed.
pub(super) fn judged(root: &Root, mut hindrances: Hindrances) -> Hindrances {
    if loads(root, &amdgpu::module(root, false), &hindrances) {
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

/// Whether modules.dep of the running kernel lists no amdgpu but the kernel's own; `None` where it cannot be read.
fn has_kernels_own_alone(root: &Root) -> Option<bool> {
    let release = root.read_text("/proc/sys/kernel/osrelease", 256).ok()?;
    let modules = root.read_text(format!("/lib/modules/{}/modules.dep", release.trim()), 16 << 20).ok()?;
    let paths = modules.lines().filter_map(|line| line.split(':').next());
    Some(paths.filter(|path| path.contains("/amdgpu.ko")).all(|path| path.starts_with("kernel/")))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out its files"
)]
mod tests {
    use super::*;

    /// OpenShift's MachineConfig writes no comment.
    #[test]
    fn a_blacklist_without_a_comment_is_judged_as_doctor_does() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("etc/modprobe.d/blacklist-amdgpu.conf", "blacklist amdgpu\n");
        put("proc/sys/kernel/osrelease", "6.8.0\n");
        put("lib/modules/6.8.0/modules.dep", "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst:\n");
        put("sys/module/amdgpu/version", "6.16.13\n");
        let root = Root::open(dir.path()).unwrap();
        for is_node in [false, true] {
            if is_node {
                put("var/lib/kubelet/config.yaml", "");
            }
            let found = judged(&root, Hindrances::read(&root)).found;
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].remedy.contains("driver.install: keep"), is_node, "{}", found[0].remedy);
        }
    }
}
