//! The structs of both ABIs, which differ in the sizes of two fields.

use std::ffi::c_char;
use std::mem::offset_of;

use crate::device::Device;
use crate::ffi::{fill, text};
use crate::metrics::{MOST_EXTRA, Metrics};
use crate::mounts::Mount;
use crate::process::Process;

const MOST_PROPERTIES: usize = 64;

/// What this provider can do: report readings. rocworker-hip-worker serves pods elsewhere. The provider sets no limit,
/// takes no snapshot, and partitions no card: `rocworker partition` does that outside of TensorFusion.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct VirtualizationCapabilities {
    supports_partitioning: bool,
    supports_soft_isolation: bool,
    supports_hard_isolation: bool,
    supports_snapshot: bool,
    supports_metrics: bool,
    supports_remoting: bool,
    /// Memory of this library that a struct has no field for would reach the caller.
    padding: [u8; 2],
    max_partitions: u32,
    /// 0: this provider limits no number of workers.
    max_workers_per_device: u32,
}

pub(crate) const CAPABILITIES: VirtualizationCapabilities = VirtualizationCapabilities {
    supports_partitioning: false,
    supports_soft_isolation: false,
    supports_hard_isolation: false,
    supports_snapshot: false,
    supports_metrics: true,
    supports_remoting: true,
    padding: [0; 2],
    max_partitions: 0,
    max_workers_per_device: 0,
};

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DevicePropertyKv {
    key: [c_char; 64],
    value: [c_char; 256],
}

#[repr(C)]
#[derive(Debug)]
pub struct DeviceProperties {
    properties: [DevicePropertyKv; MOST_PROPERTIES],
    count: usize,
}

/// `DRIVER` and `NODE`: the sizes of `driverVersion` and `deviceNode`.
#[repr(C)]
#[derive(Debug)]
pub struct DeviceBasicInfo<const DRIVER: usize, const NODE: usize> {
    uuid: [c_char; 64],
    vendor: [c_char; 32],
    model: [c_char; 128],
    driver_version: [c_char; DRIVER],
    firmware_version: [c_char; 64],
    device_node: [c_char; NODE],
    index: i32,
    numa_node: i32,
    total_memory_bytes: u64,
    total_compute_units: u64,
    max_tflops: f64,
    pcie_gen: u32,
    pcie_width: u32,
}

#[repr(C)]
#[derive(Debug)]
pub struct ExtendedDeviceInfo<const DRIVER: usize, const NODE: usize> {
    basic: DeviceBasicInfo<DRIVER, NODE>,
    props: DeviceProperties,
    virtualization_capabilities: VirtualizationCapabilities,
}

impl<const DRIVER: usize, const NODE: usize> ExtendedDeviceInfo<DRIVER, NODE> {
    /// Writes the device with this place in the list, part by part: as a whole it is too large for a small thread's stack.
    ///
    /// # Safety
    /// `to` has room for one of these, at any alignment.
    pub(crate) unsafe fn write(to: *mut Self, index: i32, device: &Device) {
        let basic: DeviceBasicInfo<DRIVER, NODE> = DeviceBasicInfo {
            uuid: text(&device.uuid),
            vendor: text("AMD"),
            model: text(&device.model),
            driver_version: text(&device.driver_version),
            firmware_version: text(&device.firmware_version),
            device_node: text(&device.device_node),
            index,
            numa_node: device.numa_node,
            total_memory_bytes: device.memory_bytes,
            total_compute_units: device.compute_units,
            max_tflops: device.tflops,
            pcie_gen: device.pcie_generation,
            pcie_width: device.pcie_width,
        };
        let properties = device.properties.iter();
        let properties =
            properties.map(|(key, value)| DevicePropertyKv { key: text(key), value: text(value) });
        let to: *mut u8 = to.cast();
        // SAFETY: each part lies within the room that the caller gives, and there are at most `MOST_PROPERTIES`.
        unsafe {
            to.write_bytes(0, size_of::<Self>());
            to.add(offset_of!(Self, basic)).cast::<DeviceBasicInfo<DRIVER, NODE>>().write_unaligned(basic);
            let props = to.add(offset_of!(Self, props));
            let count = fill(props.cast(), MOST_PROPERTIES, properties);
            props.add(offset_of!(DeviceProperties, count)).cast::<usize>().write_unaligned(count);
            let capabilities = to.add(offset_of!(Self, virtualization_capabilities));
            capabilities.cast::<VirtualizationCapabilities>().write_unaligned(CAPABILITIES);
        }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExtraMetric {
    key: [c_char; 64],
    value: f64,
}

#[repr(C)]
#[derive(Debug)]
pub struct DeviceMetrics {
    device_uuid: [c_char; 64],
    power_usage_watts: f64,
    temperature_celsius: f64,
    /// Both ABIs call these bytes, and the hypervisor takes them as kilobytes a second.
    pcie_rx: u64,
    pcie_tx: u64,
    utilization_percent: u32,
    padding: u32,
    memory_used_bytes: u64,
    extra_metrics: [ExtraMetric; MOST_EXTRA],
    extra_metrics_count: usize,
}

impl DeviceMetrics {
    /// The readings of the GPU that the caller calls `uuid`.
    pub(crate) fn of(uuid: &str, metrics: &Metrics) -> Self {
        let mut filled = Self {
            device_uuid: text(uuid),
            power_usage_watts: metrics.watts.unwrap_or_default(),
            temperature_celsius: metrics.celsius.unwrap_or_default(),
            pcie_rx: metrics.received_kilobytes.unwrap_or_default(),
            pcie_tx: metrics.sent_kilobytes.unwrap_or_default(),
            utilization_percent: percent(metrics.busy_percent),
            padding: 0,
            memory_used_bytes: metrics.memory_used_bytes.unwrap_or_default(),
            extra_metrics: [ExtraMetric { key: [0; 64], value: 0.0 }; MOST_EXTRA],
            extra_metrics_count: 0,
        };
        for (to, (key, value)) in filled.extra_metrics.iter_mut().zip(metrics.extra()) {
            *to = ExtraMetric { key: text(key), value };
            filled.extra_metrics_count += 1;
        }
        filled
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the readings are 0 to 100")]
fn percent(value: Option<f64>) -> u32 {
    value.unwrap_or_default().round() as u32
}

#[repr(C)]
#[derive(Debug)]
pub struct ProcessInformation {
    process_id: [c_char; 32],
    device_uuid: [c_char; 64],
    compute_utilization_percent: f64,
    active_sms: u64,
    total_sms: u64,
    memory_used_bytes: u64,
    /// KFD reserves nothing.
    memory_reserved_bytes: u64,
    memory_utilization_percent: f64,
}

impl From<&Process> for ProcessInformation {
    fn from(process: &Process) -> Self {
        Self {
            process_id: text(&process.pid.to_string()),
            device_uuid: text(&process.uuid),
            compute_utilization_percent: process.busy_percent(),
            active_sms: process.active_units,
            total_sms: process.all_units,
            memory_used_bytes: process.memory_used,
            memory_reserved_bytes: 0,
            memory_utilization_percent: process.memory_percent(),
        }
    }
}

/// `MountPath` today, `Mount` in the source's ABI.
#[repr(C)]
#[derive(Debug)]
pub struct MountPath {
    host_path: [c_char; 512],
    guest_path: [c_char; 512],
}

impl From<&Mount> for MountPath {
    fn from((host, guest): &Mount) -> Self {
        Self { host_path: text(host), guest_path: text(guest) }
    }
}
