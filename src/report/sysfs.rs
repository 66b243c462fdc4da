//! The GPUs as sysfs, KFD and /dev show them: an allow list, since a file that a kernel adds can be slow, change
//! something, or hold a serial number.
//!
//! Left out on purpose: `serial_number`, `config`, `resource*`, `rom` and `vbios_version`; `pcie_bw`, which
//! blocks for a second; `ras/`, whose reading asks the hardware and on some parts resets its counters.

use std::path::{Path, PathBuf};

use inventory::{Gpu, PciAddress, Vendor};

use super::collect::Collector;
use crate::facts::Facts;

/// What the PCI core shows of any function without waking it (drivers/pci/pci-sysfs.c).
const FUNCTION: [&str; 14] = [
    "uevent",
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "revision",
    "numa_node",
    "local_cpulist",
    "boot_vga",
    "sriov_numvfs",
    "sriov_totalvfs",
    "power/runtime_status",
    "power/control",
];

const FUNCTION_LINKS: [&str; 3] = ["driver", "subsystem", "physfn"];

/// What amdgpu keeps in memory and shows of a suspended card too (amdgpu_pm.c, amdgpu_fru_eeprom.c,
/// amdgpu_vram_mgr.c).
const CARD: [&str; 8] = [
    "unique_id",
    "product_name",
    "product_number",
    "mem_info_vram_total",
    "mem_info_vis_vram_total",
    "mem_info_gtt_total",
    "mem_info_vram_vendor",
    "thermal_throttling_logging",
];

/// What is asked of the hardware, and wakes a suspended card on older kernels.
const CARD_AWAKE: [&str; 20] = [
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
    "available_compute_partition",
    "current_compute_partition",
    "available_memory_partition",
    "current_memory_partition",
    "compute_partition_mem_alloc_mode",
    "mem_info_vram_used",
    "mem_info_vis_vram_used",
    "mem_info_gtt_used",
    "gpu_busy_percent",
    "mem_busy_percent",
    "gpu_metrics",
    "pp_dpm_sclk",
    "pp_dpm_mclk",
    "pp_dpm_fclk",
    "pp_dpm_socclk",
    "pp_dpm_pcie",
];

const PARTITION_CONFIG: [&str; 3] = ["supported_xcp_configs", "supported_nps_configs", "xcp_config"];

const KFD: &str = "/sys/class/kfd/kfd";
const DRM: &str = "/sys/class/drm";

pub(super) fn collect(collector: &mut Collector<'_>, facts: &Facts) {
    // That there is a bus is an answer too.
    collector.names(Path::new("/sys/bus/pci/devices"));
    let mut seen: Vec<PciAddress> = Vec::new();
    for gpu in &facts.inventory.gpus {
        if let Some(address) = gpu.pci.filter(|address| !seen.contains(address)) {
            seen.push(address);
            function(collector, gpu, address);
        }
    }
    minors(collector);
    nodes(collector);
    topology(collector);
    module(collector);
}

fn function(collector: &mut Collector<'_>, gpu: &Gpu, address: PciAddress) {
    let folder = Path::new("/sys/bus/pci/devices").join(address.to_string());
    collector.attributes(&folder, &FUNCTION);
    for name in FUNCTION_LINKS {
        collector.link(&folder.join(name));
    }
    if gpu.vendor != Vendor::Amd {
        return;
    }
    collector.attributes(&folder, &CARD);
    let status = collector.root.read_text(folder.join("power/runtime_status"), 64);
    if status.is_ok_and(|status| status.trim() == "suspended") {
        return collector.leave_out(&folder, "is suspended, and is not woken to be read further");
    }
    collector.attributes(&folder, &CARD_AWAKE);
    collector.attributes(&folder.join("compute_partition_config"), &PARTITION_CONFIG);
    sensors(collector, &folder.join("hwmon"));
}

/// The readings of hwmon by the names that the kernel gives them (Documentation/hwmon/sysfs-interface.rst).
fn sensors(collector: &mut Collector<'_>, folder: &Path) {
    for chip in collector.names(folder).iter().filter(|name| is_numbered(name, "hwmon")) {
        let chip = folder.join(chip);
        for name in collector.names(&chip) {
            let is_reading = ["temp", "power", "fan", "in", "freq"].iter().any(|kind| {
                let rest = name.strip_prefix(kind).unwrap_or("");
                rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains('_')
            });
            if is_reading || name == "name" {
                collector.attribute(&chip.join(name));
            }
        }
    }
}

fn minors(collector: &mut Collector<'_>) {
    for name in collector.names(Path::new(DRM)).into_iter().filter(|name| is_minor(name)) {
        let folder = Path::new(DRM).join(name);
        collector.attributes(&folder, &["dev", "uevent", "device/uevent"]);
        collector.link(&folder.join("device"));
        collector.link(&folder.join("subsystem"));
    }
}

fn nodes(collector: &mut Collector<'_>) {
    collector.node(Path::new("/dev/kfd"));
    // A machine without graphics has no such folder.
    let nodes = collector.root.list("/dev/dri").unwrap_or_default();
    for name in nodes.iter().filter_map(|name| name.to_str()).filter(|name| is_minor(name)) {
        collector.node(&Path::new("/dev/dri").join(name));
    }
}

/// `card0` and `renderD128`, not a connector such as `card0-DP-1`.
fn is_minor(name: &str) -> bool {
    is_numbered(name, "renderD") || is_numbered(name, "card")
}

/// Whether a name is this and a number.
fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn topology(collector: &mut Collector<'_>) {
    let class = PathBuf::from(KFD);
    collector.attributes(&class, &["dev", "uevent"]);
    let topology = class.join("topology");
    collector.attributes(&topology, &["generation_id", "system_properties"]);
    let nodes = topology.join("nodes");
    for node in collector.names(&nodes).iter().filter(|name| is_numbered(name, "")) {
        let node = nodes.join(node);
        collector.attributes(&node, &["gpu_id", "name", "properties"]);
        for kind in ["mem_banks", "io_links", "p2p_links"] {
            let folder = node.join(kind);
            for item in collector.names(&folder).iter().filter(|name| is_numbered(name, "")) {
                collector.attribute(&folder.join(item).join("properties"));
            }
        }
    }
}

fn module(collector: &mut Collector<'_>) {
    let module = Path::new("/sys/module/amdgpu");
    collector.names(module);
    collector.attributes(module, &["initstate", "version", "srcversion", "refcnt"]);
    let parameters = module.join("parameters");
    for name in collector.names(&parameters) {
        collector.attribute(&parameters.join(name));
    }
}
