//! TensorFusion's ABI of its commit 0b88c6cd (January 2026), which the source of this provider names, as
//! include/accelerator_amd_v1.h declares it.
//!
//! # Safety
//! Of every function: each pointer is null or leads to as much memory as its type and the number beside it say, at any
//! alignment, and each text ends with a NUL.
#![allow(clippy::missing_safety_doc, reason = "the module's part on safety is that of each function")]

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use crate::calls;
use crate::ffi::{AccelResult, call, fill, text};
use crate::links::{Row, rows};
use crate::log::{self, LogCallback};
use crate::offered::MOST;
use crate::session;
use crate::types::{self, DeviceMetrics, MountPath, ProcessInformation};

/// This ABI has no node of a device.
pub type ExtendedDeviceInfo = types::ExtendedDeviceInfo<64, 0>;

#[repr(C)]
#[derive(Debug)]
pub struct DeviceTopology {
    device_uuid: [c_char; 64],
    numa_node: i32,
}

#[repr(C)]
#[derive(Debug)]
pub struct ExtendedDeviceTopology {
    devices: [DeviceTopology; MOST],
    device_count: usize,
    topology_type: [c_char; 32],
}

// As measured at 0b88c6cd: crates/accelerator-amd/tests/abi/abi-of-the-source.json.
const _: () = assert!(size_of::<ExtendedDeviceInfo>() == 20_896);
const _: () = assert!(size_of::<ExtendedDeviceTopology>() == 4_392);

/// Does nothing: the first call that reads begins what is needed.
#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn VirtualGPUInit() -> AccelResult {
    call(|| AccelResult::Success)
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub unsafe extern "C" fn GetDeviceCount(count: *mut usize) -> AccelResult {
    // SAFETY: the caller's pointer is null or leads to a number.
    call(|| unsafe { calls::device_count(count) })
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub unsafe extern "C" fn GetAllDevices(
    to: *mut ExtendedDeviceInfo,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: the called function has the contract of this module.
    call(|| unsafe { calls::all_devices(to, most, count) })
}

/// The devices of these indexes, in their order; an index without a device is left out.
#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub unsafe extern "C" fn GetDeviceTopology(
    indexes: *const i32,
    count: usize,
    topology: *mut ExtendedDeviceTopology,
) -> AccelResult {
    call(|| {
        if topology.is_null() || (indexes.is_null() && count > 0) {
            return AccelResult::InvalidParam;
        }
        // SAFETY: the array has `count` numbers, of which the first `MOST` are read.
        let index = |place: usize| unsafe { indexes.add(place).read_unaligned() };
        let asked: Vec<usize> =
            (0..count.min(MOST)).filter_map(|place| usize::try_from(index(place)).ok()).collect();
        let found = session::read(rows);
        let is_known = found.is_some();
        let rows = found.unwrap_or_default();
        let named: Vec<(usize, &Row)> =
            asked.iter().filter_map(|index| Some((*index, rows.get(*index)?))).collect();
        let values = named
            .iter()
            .map(|(_, row)| DeviceTopology { device_uuid: text(&row.uuid), numa_node: row.numa_node });
        let to: *mut u8 = topology.cast();
        // SAFETY: the caller's memory has the layout of the header, which begins with room for `MOST` devices.
        unsafe {
            to.write_bytes(0, size_of::<ExtendedDeviceTopology>());
            let count = fill(to.cast(), MOST, values);
            to.add(offset_of!(ExtendedDeviceTopology, device_count)).cast::<usize>().write_unaligned(count);
            let kind: [c_char; 32] = text(kind(&named));
            to.add(offset_of!(ExtendedDeviceTopology, topology_type))
                .cast::<[c_char; 32]>()
                .write_unaligned(kind);
        }
        AccelResult::of_read(is_known)
    })
}

/// XGMI where it joins two of the devices.
fn kind(named: &[(usize, &Row)]) -> &'static str {
    let is_named = |place: usize| named.iter().any(|(other, _)| *other == place);
    let is_joined = |row: &Row| row.peers.iter().any(|peer| peer.is_xgmi && is_named(peer.place));
    if named.iter().any(|(_, row)| is_joined(row)) { "XGMI" } else { "PCIe" }
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn AssignPartition(_assignment: *mut c_void) -> bool {
    false
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn RemovePartition(_template: *const c_char, _uuid: *const c_char) -> bool {
    false
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn SetMemHardLimit(_worker: *const c_char, _uuid: *const c_char, _bytes: u64) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn SetComputeUnitHardLimit(
    _worker: *const c_char,
    _uuid: *const c_char,
    _percent: u32,
) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn Snapshot(_processes: *mut c_void) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn Resume(_processes: *mut c_void) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub unsafe extern "C" fn GetProcessInformation(
    to: *mut ProcessInformation,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: the called function has the contract of this module.
    call(|| unsafe { calls::process_information(to, most, count) })
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub unsafe extern "C" fn GetDeviceMetrics(
    uuids: *const *const c_char,
    count: usize,
    to: *mut DeviceMetrics,
) -> AccelResult {
    // SAFETY: the caller's pointers lead to `count` values each.
    call(|| unsafe { calls::device_metrics(uuids, count, to) })
}

#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub unsafe extern "C" fn GetVendorMountLibs(
    to: *mut MountPath,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: the called function has the contract of this module.
    call(|| unsafe { calls::vendor_mount_libs(to, most, count) })
}

/// A null pointer ends the log.
#[cfg_attr(feature = "v1", unsafe(no_mangle))]
pub extern "C" fn RegisterLogCallback(callback: Option<LogCallback>) -> AccelResult {
    call(|| {
        log::register(callback);
        AccelResult::Success
    })
}
