//! Names by which a Kubernetes node's kubelet knows GPUs and their device plugins. Ids of devices are those of AMD's plugin,
//! so that the kubelet's checkpoint stays true when one plugin replaces another. The kubelet takes ids of at most 63
//! characters.

use crate::Gpu;

/// The domain of every resource: `amd.com/gpu`.
pub const DOMAIN: &str = "amd.com";

const SOCKET_PREFIX: &str = "rocworker-";
const SOCKET_SUFFIX: &str = ".sock";

/// The name of the socket at which rocworker's plugin serves a resource, given without its domain.
#[must_use]
pub fn socket(resource: &str) -> String {
    format!("{SOCKET_PREFIX}{resource}{SOCKET_SUFFIX}")
}

/// Whether a name is that of a socket of rocworker's plugin.
#[must_use]
pub fn is_socket(name: &str) -> bool {
    name.starts_with(SOCKET_PREFIX) && name.ends_with(SOCKET_SUFFIX)
}

/// The name of the socket at which AMD's plugin serves a resource (kubevirt/device-plugin-manager).
#[must_use]
pub fn amds_socket(resource: &str) -> String {
    format!("{DOMAIN}_{resource}")
}

/// AMD's plugin names slices of a shared GPU so (ROCm/k8s-device-plugin, pull request 189).
const SEPARATOR: &str = "-slice-";

/// A card's PCI address, also for its first partition; the platform device of another partition. `None` where the card is
/// not known.
#[must_use]
pub fn id(gpu: &Gpu) -> Option<String> {
    gpu.platform_device.clone().or_else(|| Some(gpu.pci?.to_string()))
}

/// The id of a GPU as that of each of so many slices; of one, the GPU's own.
#[must_use]
pub fn slices(id: &str, count: u32) -> Vec<String> {
    match count {
        1 => vec![id.to_owned()],
        count => (0..count).map(|slice| format!("{id}{SEPARATOR}{slice}")).collect(),
    }
}

/// The id of the GPU whose id, or whose slice's, this is.
#[must_use]
pub fn of_whole(id: &str) -> &str {
    let slice = id.rsplit_once(SEPARATOR);
    slice.filter(|(_, number)| number.parse::<u32>().is_ok()).map_or(id, |(gpu, _)| gpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vendor;

    #[test]
    fn a_gpu_is_named_by_its_card_and_a_further_partition_by_its_platform_device() {
        let card = Gpu { pci: "0000:19:00.0".parse().ok(), ..Gpu::unread(Vendor::Amd, "") };
        assert_eq!(id(&card).as_deref(), Some("0000:19:00.0"));
        let partition = Gpu { platform_device: Some("amdgpu_xcp_30".to_owned()), ..card };
        assert_eq!(id(&partition).as_deref(), Some("amdgpu_xcp_30"));
        assert_eq!(id(&Gpu::unread(Vendor::Amd, "")), None);
    }

    #[test]
    fn each_slice_names_its_gpu_and_a_gpu_that_is_not_shared_keeps_its_id() {
        assert_eq!(slices("0000:19:00.0", 1), ["0000:19:00.0"]);
        let three = slices("amdgpu_xcp_30", 3);
        assert_eq!(three, ["amdgpu_xcp_30-slice-0", "amdgpu_xcp_30-slice-1", "amdgpu_xcp_30-slice-2"]);
        assert!(three.iter().all(|slice| of_whole(slice) == "amdgpu_xcp_30"));
        assert_eq!(of_whole("0000:19:00.0"), "0000:19:00.0");
        assert_eq!(of_whole("0000:19:00.0-slice-x"), "0000:19:00.0-slice-x");
    }
}
