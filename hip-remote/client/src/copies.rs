//! Copies: what they mean is decided by whose memory the pointers are in.

use hip_protocol::calls::{DeviceToDevice, DeviceToHost, HostToDevice, StreamSync};

use crate::connection::Rows;
use crate::error::{HipError, Outcome};
use crate::host_memory;
use crate::thread::Seat;

/// `hipMemcpyKind`.
pub const HOST_TO_HOST: u32 = 0;
pub const HOST_TO_DEVICE: u32 = 1;
pub const DEVICE_TO_HOST: u32 = 2;
pub const DEVICE_TO_DEVICE: u32 = 3;
pub const DEFAULT: u32 = 4;
/// `hipMemcpyDeviceToDeviceNoCU` (ROCm 6).
const DEVICE_TO_DEVICE_NO_CU: u32 = 1024;

#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub address: usize,
    pub pitch: usize,
}

/// A copy of `height` rows of `width` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub to: Side,
    pub from: Side,
    pub width: usize,
    pub height: usize,
    pub kind: u32,
    pub stream: u64,
    /// The program waits for the copy's end.
    pub wait: bool,
}

impl Copy {
    /// A copy of bytes one after the other.
    pub fn flat(to: usize, from: usize, bytes: usize, kind: u32, stream: u64, wait: bool) -> Self {
        let side = |address| Side { address, pitch: bytes };
        Self { to: side(to), from: side(from), width: bytes, height: 1, kind, stream, wait }
    }

    /// # Errors
    /// The pointers are not what the kind of copy needs, the rows reach beyond an allocation, or the copy failed.
    pub fn make(self, seat: &Seat) -> Outcome {
        if self.width == 0 || self.height == 0 {
            return Ok(());
        }
        if self.to.address == 0 || self.from.address == 0 {
            return Err(HipError::INVALID_VALUE);
        }
        if self.to.pitch < self.width || self.from.pitch < self.width {
            return Err(HipError::INVALID_PITCH);
        }
        if !self.to.reaches(&self) || !self.from.reaches(&self) {
            return Err(HipError::INVALID_VALUE);
        }
        let [to, from] = {
            let tables = seat.session().tables();
            let (width, height) = (self.width as u64, self.height as u64);
            let on_device = |side: &Side| {
                let found = tables.allocations.rows(side.address as u64, side.pitch as u64, width, height)?;
                Ok(found.is_some())
            };
            [on_device(&self.to)?, on_device(&self.from)?]
        };
        match self.kind {
            HOST_TO_HOST | DEFAULT => {}
            HOST_TO_DEVICE if to => {}
            DEVICE_TO_HOST if from => {}
            DEVICE_TO_DEVICE | DEVICE_TO_DEVICE_NO_CU if to && from => {}
            HOST_TO_DEVICE | DEVICE_TO_HOST | DEVICE_TO_DEVICE | DEVICE_TO_DEVICE_NO_CU => {
                return Err(HipError::INVALID_VALUE);
            }
            _ => return Err(HipError::INVALID_COPY_DIRECTION),
        }
        match (to, from) {
            (true, true) => self.within_devices(seat),
            (true, false) => self.upload(seat),
            (false, true) => self.download(seat),
            (false, false) => self.within_host(seat),
        }
    }

    fn upload(self, seat: &Seat) -> Outcome {
        let (pitch, width, height) = self.shape(self.to);
        let call =
            HostToDevice { pointer: self.to.address as u64, pitch, width, height, stream: self.stream };
        let connection = &seat.session().connection;
        if connection.writes_to(self.from.address, self.from.extent(&self)) {
            // An earlier copy of the stream brings what this one sends.
            connection.call(&seat.desk, &StreamSync { stream: self.stream }, &[])?;
        }
        connection.upload(&seat.desk, &call, &self.rows(self.from), self.wait)
    }

    fn download(self, seat: &Seat) -> Outcome {
        let (pitch, width, height) = self.shape(self.from);
        let call =
            DeviceToHost { pointer: self.from.address as u64, pitch, width, height, stream: self.stream };
        // HIP waits for a copy to memory that is not pinned, and a program may read it at once (hipMemcpyAsync).
        let pinned = host_memory::has(self.to.address, self.to.extent(&self));
        seat.session().connection.download(&seat.desk, &call, &self.rows(self.to), self.wait || !pinned)
    }

    fn within_devices(self, seat: &Seat) -> Outcome {
        let connection = &seat.session().connection;
        let call = DeviceToDevice {
            to: self.to.address as u64,
            to_pitch: self.to.pitch as u64,
            from: self.from.address as u64,
            from_pitch: self.from.pitch as u64,
            width: self.width as u64,
            height: self.height as u64,
            stream: self.stream,
        };
        connection.send(&seat.desk, &call, &[])?;
        if self.wait {
            connection.call(&seat.desk, &StreamSync { stream: self.stream }, &[])?;
        }
        Ok(())
    }

    /// Copies the program's own memory, in the stream's order.
    fn within_host(self, seat: &Seat) -> Outcome {
        seat.session().connection.call(&seat.desk, &StreamSync { stream: self.stream }, &[])?;
        for row in 0..self.height {
            let [to, from] = [self.to, self.from].map(|side| side.address + row * side.pitch);
            // SAFETY: the program says that so many bytes are at both addresses; they may overlap.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, self.width) };
        }
        Ok(())
    }

    /// The pitch, the width and the height of a device's side: rows without gaps are one row.
    fn shape(&self, device: Side) -> (u64, u64, u64) {
        let [pitch, width, height] = [device.pitch, self.width, self.height].map(|number| number as u64);
        if height == 1 || pitch == width {
            (width * height, width * height, 1)
        } else {
            (pitch, width, height)
        }
    }

    fn rows(&self, side: Side) -> Rows {
        Rows { address: side.address, pitch: side.pitch, width: self.width, height: self.height }
    }
}

impl Side {
    /// From the first row's beginning to the last one's end, where the rows have addresses.
    fn extent(&self, copy: &Copy) -> usize {
        (copy.height - 1) * self.pitch + copy.width
    }

    /// Whether the copy's rows have addresses at all.
    fn reaches(&self, copy: &Copy) -> bool {
        let rows = (copy.height - 1).checked_mul(self.pitch);
        let end =
            rows.and_then(|rows| rows.checked_add(copy.width)).and_then(|end| end.checked_add(self.address));
        end.is_some() && copy.width.checked_mul(copy.height).is_some()
    }
}
