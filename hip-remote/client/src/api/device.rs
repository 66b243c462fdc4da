//! Devices.

use std::ffi::{c_char, c_int, c_uint, c_void};

use hip_abi::attributes;
use hip_abi::properties::Layout;
use hip_protocol::calls::{DeviceReset, DeviceSync};

use crate::border::hip;
use crate::error::{HipError, Outcome};
use crate::program::{bytes, bytes_mut, put, put_text, text};
use crate::properties::Properties;
use crate::thread::{Seat, seated, seated_anywhere, set_device};

/// Answers with something of a device's properties.
fn of_device<T>(to: *mut T, device: c_int, what: impl Fn(&Properties) -> Outcome<T>) -> Outcome {
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let properties = seat.session().properties(&seat.desk, device)?;
        // SAFETY: the program wants the answer there.
        unsafe { put(to, what(&properties)?) }
    })
}

fn properties(to: *mut c_void, device: c_int, layout: Layout) -> Outcome {
    if to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    seated(|seat| {
        let shown = seat.session().properties(&seat.desk, device)?.shown(layout)?;
        // SAFETY: the program passes a struct of this layout.
        unsafe { bytes_mut(to as usize, shown.len()) }.copy_from_slice(&shown);
        Ok(())
    })
}

fn choose(to: *mut c_int, wished: *const c_void, layout: Layout) -> Outcome {
    if wished.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    // SAFETY: the program passes a struct of this layout.
    let wished = unsafe { bytes(wished as usize, layout.size()) };
    seated(|seat| {
        let mut best = (0, 0);
        for device in 0..seat.session().welcome.devices {
            let fulfilled = seat.session().properties(&seat.desk, device)?.fulfilled(layout, wished);
            if fulfilled > best.0 {
                best = (fulfilled, device);
            }
        }
        // SAFETY: the program wants the device there.
        unsafe { put(to, best.1) }
    })
}

/// As lspci writes it.
fn address(properties: &Properties) -> Outcome<String> {
    let [domain, bus, device] = ["pciDomainID", "pciBusID", "pciDeviceID"].map(|field| properties.int(field));
    Ok(format!("{:04x}:{:02x}:{:02x}.0", domain?, bus?, device?))
}

/// The peers' memory is reached by copies alone, which need no permission.
fn two_devices(seat: &Seat, first: c_int, second: c_int) -> Outcome {
    seat.session().device(first)?;
    seat.session().device(second)?;
    Ok(())
}

hip! {
    fn hipInit(flags: c_uint) {
        if flags != 0 {
            return Err(HipError::INVALID_VALUE);
        }
        seated(|_| Ok(()))
    }

    fn hipDriverGetVersion(to: *mut c_int) {
        // SAFETY: the program wants the version there.
        seated(|seat| unsafe { put(to, seat.session().welcome.driver) })
    }

    fn hipRuntimeGetVersion(to: *mut c_int) {
        // SAFETY: the program wants the version there.
        seated(|seat| unsafe { put(to, seat.session().welcome.runtime) })
    }

    fn hipGetDeviceCount(to: *mut c_int) {
        let devices = seated_anywhere(|seat| Ok(seat.session().welcome.devices));
        // SAFETY: the program wants the number there.
        unsafe { put(to, devices.unwrap_or(0)) }?;
        if devices? == 0 { Err(HipError::NO_DEVICE) } else { Ok(()) }
    }

    fn hipGetDevice(to: *mut c_int) {
        // SAFETY: the program wants the device there.
        seated(|seat| unsafe { put(to, seat.device()) })
    }

    fn hipSetDevice(device: c_int) { set_device(device) }

    fn hipDeviceGet(to: *mut c_int, device: c_int) {
        // SAFETY: the program wants the device there.
        seated(|seat| unsafe { put(to, seat.session().device(device)?) })
    }

    fn hipDeviceSynchronize() {
        seated(|seat| seat.session().connection.call(&seat.desk, &DeviceSync {}, &[]).map(|_| ()))
    }

    fn hipDeviceReset() {
        seated(|seat| {
            let reset = seat.session().connection.call(&seat.desk, &DeviceReset {}, &[]);
            if reset == Err(HipError::LOST) {
                return Err(HipError::LOST);
            }
            // The worker frees all before it tells an error, an earlier call's or the device's.
            let mut tables = seat.session().tables();
            let device = seat.device();
            tables.allocations.remove_device(device);
            tables.streams.retain(|_, stream| stream.device != device);
            tables.events.retain(|_, event| event.device != device);
            tables.modules.remove_device(device);
            reset.map(|_| ())
        })
    }

    fn hipGetDeviceProperties(to: *mut c_void, device: c_int) { properties(to, device, Layout::Rocm5) }

    fn hipGetDevicePropertiesR0000(to: *mut c_void, device: c_int) { properties(to, device, Layout::Rocm5) }

    fn hipGetDevicePropertiesR0600(to: *mut c_void, device: c_int) { properties(to, device, Layout::Rocm6) }

    fn hipChooseDevice(to: *mut c_int, wished: *const c_void) { choose(to, wished, Layout::Rocm5) }

    fn hipChooseDeviceR0000(to: *mut c_int, wished: *const c_void) { choose(to, wished, Layout::Rocm5) }

    fn hipChooseDeviceR0600(to: *mut c_int, wished: *const c_void) { choose(to, wished, Layout::Rocm6) }

    fn hipDeviceGetAttribute(to: *mut c_int, attribute: c_int, device: c_int) {
        if to.is_null() {
            return Err(HipError::INVALID_VALUE);
        }
        seated(|seat| {
            let value = if attributes::is_not_remote(attribute) {
                seat.session().device(device)?;
                0
            } else {
                seat.session().attribute(&seat.desk, device, attribute)?
            };
            // SAFETY: the program wants the value there.
            unsafe { put(to, value) }
        })
    }

    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int) {
        of_device(major, device, |properties| properties.int("major"))?;
        of_device(minor, device, |properties| properties.int("minor"))
    }

    fn hipDeviceGetName(to: *mut c_char, length: c_int, device: c_int) {
        seated(|seat| {
            let properties = seat.session().properties(&seat.desk, device)?;
            // SAFETY: the program says that there is so much room.
            unsafe { put_text(to, length, properties.text("name")?) }
        })
    }

    fn hipDeviceGetUuid(to: *mut [u8; 16], device: c_int) {
        of_device(to, device, |properties| properties.field("uuid")?.try_into().map_err(|_| HipError::NOT_SUPPORTED))
    }

    fn hipDeviceTotalMem(to: *mut usize, device: c_int) {
        of_device(to, device, |properties| properties.size("totalGlobalMem"))
    }

    fn hipDeviceGetPCIBusId(to: *mut c_char, length: c_int, device: c_int) {
        seated(|seat| {
            let address = address(&*seat.session().properties(&seat.desk, device)?)?;
            // SAFETY: the program says that there is so much room.
            unsafe { put_text(to, length, address.as_bytes()) }
        })
    }

    fn hipDeviceGetByPCIBusId(to: *mut c_int, wanted: *const c_char) {
        // SAFETY: the program passes a text.
        let wanted = unsafe { text(wanted) }?;
        seated(|seat| {
            for device in 0..seat.session().welcome.devices {
                let address = address(&*seat.session().properties(&seat.desk, device)?)?;
                if address.as_bytes().eq_ignore_ascii_case(wanted) {
                    // SAFETY: the program wants the device there.
                    return unsafe { put(to, device) };
                }
            }
            Err(HipError::INVALID_VALUE)
        })
    }

    fn hipDeviceCanAccessPeer(to: *mut c_int, device: c_int, peer: c_int) {
        seated(|seat| {
            two_devices(seat, device, peer)?;
            // SAFETY: the program wants the answer there.
            unsafe { put(to, 0) }
        })
    }

    fn hipDeviceGetP2PAttribute(to: *mut c_int, _attribute: c_int, device: c_int, peer: c_int) {
        seated(|seat| {
            two_devices(seat, device, peer)?;
            // SAFETY: the program wants the answer there.
            unsafe { put(to, 0) }
        })
    }

    fn hipDeviceEnablePeerAccess(peer: c_int, _flags: c_uint) {
        seated(|seat| {
            two_devices(seat, seat.device(), peer)?;
            Err(HipError::PEER_ACCESS_UNSUPPORTED)
        })
    }

    fn hipDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        seated(|seat| {
            seat.session().device(device)?;
            // SAFETY: the program wants both there.
            unsafe {
                put(flags, 0)?;
                put(active, 1)
            }
        })
    }

    // Hints, which AMD's GPUs do not take.
    fn hipDeviceSetCacheConfig(_config: c_int) { seated(|_| Ok(())) }

    fn hipDeviceSetSharedMemConfig(_config: c_int) { seated(|_| Ok(())) }

    fn hipSetDeviceFlags(_flags: c_uint) { seated(|_| Ok(())) }
}
