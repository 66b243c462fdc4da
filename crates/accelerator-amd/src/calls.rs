//! The calls that are equal in both ABIs, but for their names.

use std::ffi::c_char;

use inventory::PciAddress;

use crate::device::devices;
use crate::ffi::{self, AccelResult, fill};
use crate::metrics::{Metrics, metrics};
use crate::mounts::MOUNTS;
use crate::offered::MOST;
use crate::process::processes;
use crate::session;
use crate::types::{DeviceMetrics, ExtendedDeviceInfo, MountPath, ProcessInformation};

/// Writes values to an array of C's by `write`, which gets a place in it, and their number.
///
/// # Safety
/// Each pointer is null, or `count` leads to a number and `to` to room for `most` values, at any alignment.
unsafe fn write_list<T, V>(
    to: *mut T,
    most: usize,
    count: *mut usize,
    values: impl FnOnce() -> Option<Vec<V>>,
    write: impl Fn(*mut T, i32, &V),
) -> AccelResult {
    if count.is_null() || (to.is_null() && most > 0) {
        return AccelResult::InvalidParam;
    }
    let values = values();
    let mut written = 0;
    for (value, index) in values.iter().flatten().zip(0_i32..).take(most) {
        write(to.wrapping_add(written), index, value);
        written += 1;
    }
    // SAFETY: the pointer is not null.
    unsafe { count.write_unaligned(written) };
    AccelResult::of_read(values.is_some())
}

/// # Safety
/// `count` is null or leads to a number.
pub(crate) unsafe fn device_count(count: *mut usize) -> AccelResult {
    if count.is_null() {
        return AccelResult::InvalidParam;
    }
    let found = session::read(devices).map(|devices| devices.len());
    // SAFETY: the pointer is not null.
    unsafe { count.write_unaligned(found.unwrap_or_default()) };
    AccelResult::of_read(found.is_some())
}

/// # Safety
/// Each pointer is null, or `count` leads to a number and `to` to room for `most` values, at any alignment.
pub(crate) unsafe fn all_devices<const DRIVER: usize, const NODE: usize>(
    to: *mut ExtendedDeviceInfo<DRIVER, NODE>,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: `write_list` has the contract of this function, and gives places in the array.
    unsafe {
        write_list(
            to,
            most,
            count,
            || session::read(devices),
            |to, index, device| {
                ExtendedDeviceInfo::write(to, index, device);
            },
        )
    }
}

/// # Safety
/// Each pointer is null, or `count` leads to a number and `to` to room for `most` values, at any alignment.
pub(crate) unsafe fn process_information(
    to: *mut ProcessInformation,
    most: usize,
    count: *mut usize,
) -> AccelResult {
    // SAFETY: `write_list` has the contract of this function, and gives places in the array.
    unsafe {
        write_list(
            to,
            most,
            count,
            || session::read(processes),
            |to, _, process| {
                to.write_unaligned(ProcessInformation::from(process));
            },
        )
    }
}

/// The readings of each GPU that the caller names. One that is not there any more has none, and its entry says so.
///
/// # Safety
/// Each pointer is null or leads to `count` values, and each text ends with a NUL within 64 bytes.
pub(crate) unsafe fn device_metrics(
    uuids: *const *const c_char,
    count: usize,
    to: *mut DeviceMetrics,
) -> AccelResult {
    if count == 0 {
        return AccelResult::Success;
    }
    if uuids.is_null() || to.is_null() || count > MOST {
        return AccelResult::InvalidParam;
    }
    let mut asked = Vec::new();
    for place in 0..count {
        // SAFETY: the array has `count` pointers.
        let uuid = unsafe { uuids.add(place).read_unaligned() };
        if uuid.is_null() {
            return AccelResult::InvalidParam;
        }
        // SAFETY: the pointer is not null, and its text ends with a NUL.
        asked.push(unsafe { ffi::uuid(uuid) }.unwrap_or_default());
    }
    let uuids = asked.clone();
    let found = session::read(move |root, node| metrics(root, &uuids, node));
    let is_known = found.is_some();
    let mut found = found.unwrap_or_else(|| vec![None; count]);
    add_traffic(&mut found);
    let values = asked.iter().zip(&found);
    let none = Metrics::default();
    let values = values.map(|(uuid, it)| DeviceMetrics::of(uuid, it.as_ref().map_or(&none, |(it, _)| it)));
    // SAFETY: the array has room for `count` values.
    unsafe { fill(to, count, values) };
    AccelResult::of_read(is_known)
}

fn add_traffic(found: &mut [Option<(Metrics, Option<PciAddress>)>]) {
    let cards: Vec<PciAddress> = found.iter().flatten().filter_map(|(_, card)| *card).collect();
    let of_card = |found: &&mut (Metrics, Option<PciAddress>)| found.1.is_some();
    for ((metrics, _), traffic) in found.iter_mut().flatten().filter(of_card).zip(session::traffic(&cards)) {
        if let Some(traffic) = traffic {
            metrics.add_traffic(traffic);
        }
    }
}

/// # Safety
/// Each pointer is null, or `count` leads to a number and `to` to room for `most` values, at any alignment.
pub(crate) unsafe fn vendor_mount_libs(to: *mut MountPath, most: usize, count: *mut usize) -> AccelResult {
    // SAFETY: `write_list` has the contract of this function, and gives places in the array.
    unsafe {
        write_list(
            to,
            most,
            count,
            || Some(MOUNTS.to_vec()),
            |to, _, mount| {
                to.write_unaligned(MountPath::from(mount));
            },
        )
    }
}
