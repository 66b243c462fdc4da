//! Devices.

use std::ffi::{c_int, c_uint};

use hip_protocol::calls::{DeviceReset, DeviceSync};

use crate::border::hip;
use crate::error::HipError;
use crate::program::put;
use crate::thread::{seated, set_device};

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
        let devices = seated(|seat| Ok(seat.session().welcome.devices)).inspect_err(|_| {
            // SAFETY: the program wants the number there, and there is none.
            let _ = unsafe { put(to, 0) };
        })?;
        // SAFETY: as above.
        unsafe { put(to, devices) }?;
        if devices == 0 { Err(HipError::NO_DEVICE) } else { Ok(()) }
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
            seat.session().connection.call(&seat.desk, &DeviceReset {}, &[])?;
            let mut tables = seat.session().tables();
            let device = seat.device();
            tables.allocations.remove_device(device);
            tables.streams.retain(|_, stream| stream.device != device);
            tables.events.retain(|_, event| event.device != device);
            tables.modules.remove_device(device);
            Ok(())
        })
    }
}
