//! The DRM minors that sysfs names: card and render nodes, and the device that each belongs to.

use std::path::Path;

use inventory::{PciAddress, Reading};
use root::Root;

use crate::{attribute, pci};

const CLASS: &str = "/sys/class/drm";

/// The device that a DRM minor belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parent {
    Pci(PciAddress),
    /// A partition beyond a card's first: the platform device `amdgpu_xcp.N` or `amdgpu_xcp_N`
    /// (amdgpu_xcp_drv.c; the spelling changed between kernels).
    Partition(String),
    Other,
}

/// One entry of /sys/class/drm.
#[derive(Debug, Clone)]
pub(crate) struct Minor {
    /// `card1`, `renderD128`.
    pub(crate) name: String,
    /// For a render node, the number in its name, which is also its device minor.
    pub(crate) render: Option<u32>,
    pub(crate) number: Reading<(u64, u64)>,
    pub(crate) parent: Parent,
}

/// All card and render nodes. A machine without any has no /sys/class/drm: an empty list.
pub(crate) fn minors(root: &Root) -> Vec<Minor> {
    let names = root.list(CLASS).unwrap_or_else(|_| Vec::new());
    names.iter().filter_map(|name| read(root, name.to_str()?)).collect()
}

fn read(root: &Root, name: &str) -> Option<Minor> {
    let render: Option<u32> = name.strip_prefix("renderD").and_then(|number| number.parse().ok());
    let is_card =
        name.strip_prefix("card").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty());
    if render.is_none() && !is_card {
        return None;
    }
    let folder = Path::new(CLASS).join(name);
    let number = attribute::device_number(root, &folder.join("dev"));
    Some(Minor { name: name.to_owned(), render, number, parent: parent(root, &folder) })
}

fn parent(root: &Root, entry: &Path) -> Parent {
    let device = entry.join("device");
    if let Some(name) = pci::last_component(root, &device) {
        return parent_named(&name);
    }
    // A capture may hold the device's folder itself where the kernel has a link, or have left it out: the entry
    // is a link into the device's folder too (../../devices/…/0000:64:00.0/drm/card1).
    let uevent = attribute::text(root, &device.join("uevent")).ok();
    let slot = uevent.and_then(|text| pci::value_of(&text, "PCI_SLOT_NAME").map(parent_named));
    slot.or_else(|| folder_above_drm(&root.read_link(entry).ok()?)).unwrap_or(Parent::Other)
}

fn folder_above_drm(target: &Path) -> Option<Parent> {
    let drm = target.parent().filter(|folder| folder.file_name() == Some("drm".as_ref()))?;
    Some(parent_named(drm.parent()?.file_name()?.to_str()?))
}

fn parent_named(name: &str) -> Parent {
    match name.parse() {
        Ok(address) => Parent::Pci(address),
        Err(_) if is_partitions(name) => Parent::Partition(name.to_owned()),
        Err(_) => Parent::Other,
    }
}

/// Whether the device of a DRM minor is a partition beyond a card's first. `device`: the minor's link to the
/// device.
#[must_use]
pub fn is_partition(root: &Root, device: &Path) -> bool {
    pci::last_component(root, device).is_some_and(|name| is_partitions(&name))
}

fn is_partitions(name: &str) -> bool {
    let number = name.strip_prefix("amdgpu_xcp").and_then(|rest| rest.strip_prefix(['.', '_']));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_known_in_both_spellings_and_a_neighbour_is_not_taken_for_one() {
        for (name, partition) in [
            ("amdgpu_xcp.0", true),
            ("amdgpu_xcp_63", true),
            ("amdgpu_xcp", false),
            ("amdgpu_xcp.", false),
            ("amdgpu_xcp.x", false),
            ("amdgpu_xcpx1", false),
            ("vgem", false),
        ] {
            assert_eq!(parent_named(name) == Parent::Partition(name.to_owned()), partition, "{name}");
        }
    }
}
