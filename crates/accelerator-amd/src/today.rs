//! TensorFusion's ABI since its commit 8cdb639b (March 2026), as include/accelerator_amd.h declares it.
//!
//! # Safety
//! Of every function: each pointer is null or leads to as much memory as its type and the number beside it say, at any
//! alignment, and each text ends with a NUL.
#![allow(clippy::missing_safety_doc, reason = "the module's part on safety is that of each function")]

use std::ffi::{c_char, c_void};
use std::mem::offset_of;

use crate::calls;
use crate::ffi::{AccelResult, call, fill, text};
use crate::links::{Row, TopoLevel, rows};
use crate::log::{self, LogCallback};
use crate::offered::MOST;
use crate::session;
use crate::types::{self, DeviceMetrics, MountPath, ProcessInformation};

pub type ExtendedDeviceInfo = types::ExtendedDeviceInfo<80, 64>;

/// A link of the C header's layout: 72 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct TopoNode {
    peer_uuid: [c_char; 64],
    peer_index: i32,
    level: TopoLevel,
}

/// A link as the hypervisor's Go code declares it: 80 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct GoTopoNode {
    node: TopoNode,
    bandwidth_bytes_per_sec: i64,
}

/// `N`: the layout's kind of link.
#[repr(C)]
struct TopologyInfo<N> {
    device_uuid: [c_char; 64],
    device_index: i32,
    numa_node: i32,
    peers: [N; MOST],
    peer_count: usize,
}

#[repr(C)]
struct Topology<N> {
    devices: [TopologyInfo<N>; MOST],
    device_count: usize,
}

const NO_NODE: TopoNode = TopoNode { peer_uuid: [0; 64], peer_index: 0, level: TopoLevel::Internal };

// As measured at 3e0a4901: crates/accelerator-amd/tests/abi/abi-of-today.json, and the hypervisor's own structs.
const _: () = assert!(size_of::<ExtendedDeviceInfo>() == 20_976);
const _: () = assert!(size_of::<TopoNode>() == 72 && size_of::<Topology<TopoNode>>() == 300_040);
const _: () = assert!(size_of::<GoTopoNode>() == 80 && size_of::<Topology<GoTopoNode>>() == 332_808);
const _: () = assert!(offset_of!(GoTopoNode, bandwidth_bytes_per_sec) == 72);

impl<N: Copy> TopologyInfo<N> {
    /// A row of the layout whose links `node` makes, with the names of all rows.
    fn of(index: i32, row: &Row, rows: &[Row], none: N, node: impl Fn(TopoNode, u64) -> N) -> Self {
        let mut filled = Self {
            device_uuid: text(&row.uuid),
            device_index: index,
            numa_node: row.numa_node,
            peers: [none; MOST],
            peer_count: 0,
        };
        for (to, peer) in filled.peers.iter_mut().zip(&row.peers) {
            let peer_uuid = text(rows.get(peer.place).map_or("", |row| &row.uuid));
            let peer_index = i32::try_from(peer.place).unwrap_or(-1);
            *to = node(TopoNode { peer_uuid, peer_index, level: peer.level }, peer.bytes_per_second);
            filled.peer_count += 1;
        }
        filled
    }
}

/// # Safety
/// `to` leads to memory for the layout, at any alignment.
unsafe fn write_topology<N: Copy>(
    to: *mut c_void,
    rows: &[Row],
    none: N,
    node: impl Fn(TopoNode, u64) -> N + Copy,
) {
    let to: *mut u8 = to.cast();
    let values = (0..).zip(rows).map(|(index, row)| TopologyInfo::of(index, row, rows, none, node));
    // SAFETY: the layout begins with room for `MOST` rows, and `fill` writes no more.
    unsafe {
        to.write_bytes(0, size_of::<Topology<N>>());
        let count = fill(to.cast(), MOST, values);
        to.add(offset_of!(Topology<N>, device_count)).cast::<usize>().write_unaligned(count);
    }
}

/// Does nothing: the first call that reads begins what is needed.
#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelInit() -> AccelResult {
    call(|| AccelResult::Success)
}

/// Ends the threads that calls before have started.
#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelShutdown() -> AccelResult {
    call(|| {
        session::end();
        AccelResult::Success
    })
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub unsafe extern "C" fn AccelGetDeviceCount(count: *mut usize) -> AccelResult {
    // SAFETY: the caller's pointer is null or leads to a number.
    call(|| unsafe { calls::device_count(count) })
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub unsafe extern "C" fn AccelGetAllDevices(
    to: *mut ExtendedDeviceInfo,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: the called function has the contract of this module.
    call(|| unsafe { calls::all_devices(to, most, count) })
}

/// `topology`: an ExtendedDeviceTopology of the header, or of the hypervisor's Go code where the environment says so.
#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub unsafe extern "C" fn AccelGetAllDevicesTopology(topology: *mut c_void) -> AccelResult {
    call(|| {
        if topology.is_null() {
            return AccelResult::InvalidParam;
        }
        let found = session::read(rows);
        let is_known = found.is_some();
        let rows = found.unwrap_or_default();
        if session::has_go_topology() {
            let bandwidth = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
            let none = GoTopoNode { node: NO_NODE, bandwidth_bytes_per_sec: 0 };
            let link = |node, bytes| GoTopoNode { node, bandwidth_bytes_per_sec: bandwidth(bytes) };
            // SAFETY: the caller's memory has the layout that its environment names.
            unsafe { write_topology(topology, &rows, none, link) };
        } else {
            // SAFETY: the caller's memory has the layout of the header.
            unsafe { write_topology(topology, &rows, NO_NODE, |node, _| node) };
        }
        AccelResult::of_read(is_known)
    })
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelAssignPartition(
    _template: *const c_char,
    _uuid: *const c_char,
    _result: *mut c_void,
) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelRemovePartition(_template: *const c_char, _uuid: *const c_char) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelSetMemHardLimit(_uuid: *const c_char, _bytes: u64) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelSetComputeUnitHardLimit(_uuid: *const c_char, _percent: u32) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelSnapshot(_context: *mut c_void) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelResume(_context: *mut c_void) -> AccelResult {
    AccelResult::NotSupported
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub unsafe extern "C" fn AccelGetProcessInformation(
    to: *mut ProcessInformation,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: the called function has the contract of this module.
    call(|| unsafe { calls::process_information(to, most, count) })
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub unsafe extern "C" fn AccelGetDeviceMetrics(
    uuids: *const *const c_char,
    count: usize,
    to: *mut DeviceMetrics,
) -> AccelResult {
    // SAFETY: the caller's pointers lead to `count` values each.
    call(|| unsafe { calls::device_metrics(uuids, count, to) })
}

#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub unsafe extern "C" fn AccelGetVendorMountLibs(
    to: *mut MountPath,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: the called function has the contract of this module.
    call(|| unsafe { calls::vendor_mount_libs(to, most, count) })
}

/// A null pointer ends the log.
#[cfg_attr(not(feature = "v1"), unsafe(no_mangle))]
pub extern "C" fn AccelRegisterLogCallback(callback: Option<LogCallback>) -> AccelResult {
    call(|| {
        log::register(callback);
        AccelResult::Success
    })
}
