//! Copies between the program's memory and the worker's devices, and code objects.

use std::sync::atomic::Ordering;

use hip_protocol::calls::Call;
use hip_protocol::calls::{DeviceToHost, HostToDevice, LoadedImage, ModuleImage};
use hip_protocol::envelope::{CHUNK, Envelope, NO_REPLY};
use hip_protocol::message::{self, MAX_CHUNK, USUAL_CHUNK};

use super::inbox::Desk;
use super::rows::Rows;
use super::{Connection, lock};
use crate::error::{HipError, Outcome};
use crate::program;

impl Connection {
    /// Copies the program's rows to a device. When this returns, the program may overwrite them.
    ///
    /// # Errors
    /// The copy failed, where the program waits for it; or the connection is lost.
    pub fn upload(&self, desk: &Desk, call: &HostToDevice, from: &Rows, wait: bool) -> Outcome {
        let chunk = chunk(call, USUAL_CHUNK);
        if wait {
            let id = self.expect(desk)?;
            self.append(call, id, 0, desk, &[], false);
            let sent = self.send_rows(desk, HostToDevice::OP, id, from, chunk);
            return self.answer::<HostToDevice>(desk, id).and(sent);
        }
        if self.is_lost() {
            return Err(HipError::LOST);
        }
        let id = self.id();
        self.append(call, id, NO_REPLY, desk, &[], false);
        self.send_rows(desk, HostToDevice::OP, id, from, chunk)
    }

    /// Sends a code object.
    ///
    /// # Errors
    /// The worker cannot load it, or the connection is lost.
    pub fn upload_image(&self, desk: &Desk, call: &ModuleImage, image: &[u8]) -> Outcome<LoadedImage> {
        let id = self.expect(desk)?;
        self.append(call, id, 0, desk, &[], false);
        let one =
            Rows { address: image.as_ptr() as usize, pitch: image.len(), width: image.len(), height: 1 };
        self.send_rows(desk, ModuleImage::OP, id, &one, MAX_CHUNK)?;
        Ok(self.answer::<ModuleImage>(desk, id)?.0)
    }

    /// Copies rows of a device to the program, or lets them come until the next call that waits for the device.
    ///
    /// # Errors
    /// The copy failed, where the program waits for it; or the connection is lost.
    pub fn download(&self, desk: &Desk, call: &DeviceToHost, to: &Rows, wait: bool) -> Outcome {
        let wait = wait || !lock(&self.inbox).targets.has_room(to.bytes());
        if !wait {
            if self.is_lost() {
                return Err(HipError::LOST);
            }
            let id = self.id();
            lock(&self.inbox).targets.add(id, *to, false);
            if self.append(call, id, NO_REPLY, desk, &[], true) {
                self.flush(&[], &[]);
            }
            return Ok(());
        }
        let id = self.expect(desk)?;
        let launches = self.launches.load(Ordering::Relaxed);
        lock(&self.inbox).targets.add(id, *to, true);
        self.append(call, id, 0, desk, &[], false);
        self.flush(&[], &[]);
        let answer = self.answer::<DeviceToHost>(desk, id);
        self.waited_for(launches, &answer);
        let ended = lock(&self.inbox).targets.end(id);
        answer.and(ended)
    }

    /// Whether copies to the program are under way for which nobody waits.
    pub fn has_copies_under_way(&self) -> bool {
        !lock(&self.inbox).targets.is_empty()
    }

    /// Whether one of them may still write to this memory.
    pub fn writes_to(&self, address: usize, bytes: usize) -> bool {
        lock(&self.inbox).targets.reach(address, bytes)
    }

    fn send_rows(&self, desk: &Desk, op: u16, id: u32, rows: &Rows, chunk: usize) -> Outcome {
        let envelope = Envelope { flags: CHUNK, lane: desk.lane, status: 0 };
        let mut gathered = Vec::new();
        let (mut sent, all) = (0, rows.bytes());
        let mut result = Ok(());
        while sent < all {
            let length = chunk.min(all - sent);
            let bytes = if rows.are_one() {
                // SAFETY: the program says that so many bytes are there, and it waits for this call to return.
                unsafe { program::bytes(rows.address + sent, length) }
            } else {
                gathered.clear();
                for (address, length) in rows.parts(sent, length) {
                    // SAFETY: as above.
                    gathered.extend_from_slice(unsafe { program::bytes(address, length) });
                }
                &gathered
            };
            self.take_credit(desk, length)?;
            if !self.flush(&message::prefix(op, id, envelope, length), bytes) {
                result = Err(HipError::INVALID_VALUE);
            }
            sent += length;
        }
        result
    }

    fn take_credit(&self, desk: &Desk, bytes: usize) -> Outcome {
        let bytes = bytes as u64;
        self.wait(desk, |inbox| {
            inbox.credit = inbox.credit.checked_sub(bytes)?;
            Some(())
        })
    }
}

/// How many bytes a chunk has: whole rows where one fits, which the worker copies at once.
fn chunk(call: &HostToDevice, most: usize) -> usize {
    let width = usize::try_from(call.width).unwrap_or(usize::MAX).max(1);
    (most / width).checked_mul(width).filter(|rows| *rows > 0).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_whole_rows_where_one_fits() {
        let call = HostToDevice { pointer: 0, pitch: 4096, width: 3000, height: 1000, stream: 0 };
        assert_eq!(chunk(&call, MAX_CHUNK), 349 * 3000);
        assert_eq!(chunk(&HostToDevice { width: 4_000_000, ..call }, MAX_CHUNK), MAX_CHUNK);
    }
}
