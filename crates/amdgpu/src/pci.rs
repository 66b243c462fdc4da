//! The display and accelerator functions on the PCI bus, of every vendor.

use std::path::{Path, PathBuf};

use inventory::readings::{POWER_STATE, is_asleep};
use inventory::{PciAddress, Reading, Sriov, Unknown, Unread, UnreadOf, Vendor};
use root::Root;

use crate::attribute;

const DEVICES: &str = "/sys/bus/pci/devices";

/// One PCI function of class display (03xx) or processing accelerator (1200).
#[derive(Debug, Clone)]
pub(crate) struct Function {
    pub(crate) address: PciAddress,
    pub(crate) vendor: Vendor,
    pub(crate) vendor_id: u16,
    pub(crate) device_id: u16,
    pub(crate) driver: Option<String>,
}

/// Lists them in the order of their addresses, and the functions that cannot be read, each by the file that says what it
/// is.
pub(crate) fn functions(root: &Root) -> (Vec<Function>, Vec<Unread>) {
    let mut functions = Vec::new();
    let mut problems = Vec::new();
    let names = match root.list(DEVICES) {
        Ok(names) => names,
        Err(error) => {
            let reason = attribute::failed(&error);
            let reason = reason.within(|reason| format!("no PCI device can be seen: {reason}"));
            return (functions, vec![Unread { of: UnreadOf::Function(DEVICES.into()), reason }]);
        }
    };
    for name in names {
        let Some(address) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        match read(root, address) {
            Ok(Some(function)) => functions.push(function),
            Ok(None) => {}
            Err(unknown) => {
                let reason =
                    unknown.within(|reason| format!("PCI device {address} cannot be read: {reason}"));
                problems.push(Unread { of: UnreadOf::Function(folder(address).join("class")), reason });
            }
        }
    }
    functions.sort_by_key(|function| function.address);
    (functions, problems)
}

/// The folder of a function, by the name that does not depend on the bridges above it.
pub(crate) fn folder(address: PciAddress) -> PathBuf {
    Path::new(DEVICES).join(address.to_string())
}

/// The bridges above a function, the root port first: the folders on the way to its own, as
/// `../../../devices/pci0000:00/0000:00:01.1/0000:03:00.0`. None where sysfs does not say.
#[must_use]
pub fn bridges(root: &Root, address: PciAddress) -> Vec<PciAddress> {
    let link = root.read_link(folder(address)).unwrap_or_default();
    let folders = link.iter().filter_map(|name| name.to_str()?.parse().ok());
    folders.filter(|other| *other != address).collect()
}

/// `rtpm_status_str` and runtime_status_show in drivers/base/power/sysfs.c. In any other state a card may sleep.
pub(crate) fn is_power_state(word: &str) -> bool {
    matches!(word, "active" | "suspended" | "suspending" | "resuming" | "error" | "unsupported")
}

/// Why nothing of amdgpu's is read of a card that is suspended, where it is: on older kernels a read wakes it, on newer
/// ones it is refused. A card in a state that is not known may be; a kernel without the file suspends none.
pub(crate) fn asleep(root: &Root, address: PciAddress) -> Option<Unknown> {
    let path = folder(address).join(POWER_STATE);
    if !root.exists(&path) {
        return None;
    }
    match attribute::text(root, &path) {
        Err(reason) => Some(reason),
        Ok(state) if is_asleep(&state) => {
            Some(Unknown::because(format!("card {address} is suspended, and is not woken to be asked")))
        }
        Ok(state) if is_power_state(&state) => None,
        Ok(state) => Some(attribute::not_a("state of power", &state, &root.shown(&path))),
    }
}

fn read(root: &Root, address: PciAddress) -> Reading<Option<Function>> {
    let folder = folder(address);
    // One read gives class, ids and driver (pci_uevent in pci-driver.c); a bus has hundreds of functions.
    let uevent = attribute::text(root, &folder.join("uevent")).unwrap_or_else(|_| String::new());
    let class = match value_of(&uevent, "PCI_CLASS").and_then(hex) {
        Some(class) => class,
        None => attribute::hexadecimal(root, &folder.join("class"))?,
    };
    if !is_display_or_accelerator(class) {
        return Ok(None);
    }
    let ids = value_of(&uevent, "PCI_ID").and_then(|id| id.split_once(':'));
    let id = |from_uevent: Option<&str>, file: &str| match from_uevent.and_then(hex).and_then(to_u16) {
        Some(id) => Ok(id),
        None => attribute::hexadecimal(root, &folder.join(file)).and_then(|id| {
            to_u16(id).ok_or_else(|| Unknown::because(format!("{file} {id:#x} is not a PCI id")))
        }),
    };
    let vendor_id = id(ids.map(|ids| ids.0), "vendor")?;
    let device_id = id(ids.map(|ids| ids.1), "device")?;
    let driver = value_of(&uevent, "DRIVER")
        .map(str::to_owned)
        .or_else(|| last_component(root, &folder.join("driver")));
    Ok(Some(Function { address, vendor: Vendor::of(vendor_id), vendor_id, device_id, driver }))
}

/// The function's place in SR-IOV, `None` for a card that has given out no virtual functions.
pub(crate) fn sriov(root: &Root, address: PciAddress) -> Option<Sriov> {
    let folder = folder(address);
    if root.is_there(folder.join("physfn")) {
        return Some(Sriov::Virtual {
            of: last_component(root, &folder.join("physfn")).and_then(|s| s.parse().ok()),
        });
    }
    match attribute::number(root, &folder.join("sriov_numvfs")) {
        Ok(vfs) if vfs > 0 => Some(Sriov::Physical { vfs }),
        _ => None,
    }
}

/// The NUMA node; -1 is the kernel's word for "no node" (drivers/pci/pci-sysfs.c).
pub(crate) fn numa_node(root: &Root, address: PciAddress) -> Reading<u32> {
    let path = folder(address).join("numa_node");
    let node: i64 = attribute::number(root, &path)?;
    let none = || Unknown::absent(format!("{} says {node}: no node", root.shown(&path).display()));
    u32::try_from(node).map_err(|_| none())
}

pub(crate) fn value_of<'a>(uevent: &'a str, key: &str) -> Option<&'a str> {
    uevent.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim)
}

pub(crate) fn last_component(root: &Root, link: &Path) -> Option<String> {
    Some(root.read_link(link).ok()?.file_name()?.to_str()?.to_owned())
}

/// Base class 03 is display; 1200 is a processing accelerator, which MI300 and later are (PCI code and id
/// assignment, 1.3 and 1.19).
fn is_display_or_accelerator(class: u64) -> bool {
    class >> 16 == 0x03 || class >> 8 == 0x1200
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn to_u16(id: u64) -> Option<u16> {
    u16::try_from(id).ok()
}
