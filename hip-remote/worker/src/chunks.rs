//! What comes in chunks: copies to a device, and code objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hip_protocol::calls::{Call as _, Credit, HostToDevice, LoadedImage, ModuleImage};
use hip_protocol::envelope::Envelope;
use hip_protocol::message::{self, MAX_CHUNK};
use hip_transport::{Message, Reader};

use crate::hip::{INVALID_IMAGE, NOT_READY, Status};
use crate::modules::load;
use crate::request::{Answer, Request};
use crate::rows::Rows;
use crate::serving::Serving;
use crate::uploads::{To, Upload};

/// How many requests may have chunks to come. Each of a client's threads sends one at a time.
const MOST: usize = 4096;

impl Serving {
    pub fn host_to_device(&mut self, request: &Request, call: HostToDevice) -> Answer<()> {
        let rows = Rows::new(call.pointer, call.pitch, call.width, call.height);
        let (bytes, failed) = match rows {
            Ok(rows) => {
                (rows.bytes(), self.check(&rows).and_then(|()| self.stream(request, call.stream)).err())
            }
            Err(status) => (call.width.saturating_mul(call.height), Some(status)),
        };
        if bytes == 0 {
            return failed.map_or(Ok(Some(())), Err);
        }
        let rows = rows.unwrap_or(Rows { pointer: 0, pitch: 0, width: 0, height: 0 });
        self.expect(request, To::Device { rows, stream: call.stream }, bytes, failed);
        Ok(None)
    }

    pub fn module_image(&mut self, request: &Request, call: ModuleImage) -> Answer<LoadedImage> {
        if call.bytes == 0 {
            return Err(INVALID_IMAGE);
        }
        let held = self.session.images.hold(call.bytes);
        let failed = held.as_ref().err().copied();
        let to = To::Image { sha256: call.sha256, image: Vec::new(), held: held.ok() };
        self.expect(request, to, call.bytes, failed);
        Ok(None)
    }

    fn expect(&mut self, request: &Request, to: To, bytes: u64, failed: Option<Status>) {
        let upload = Upload { request: request.clone(), to, bytes, done: 0, failed };
        if self.uploads.all.insert(request.id, upload).is_some() {
            self.violation = Some(format!(
                "the request {} began while another with that id has chunks to come",
                request.id
            ));
        } else if self.uploads.all.len() > MOST {
            self.violation = Some(format!("more than {MOST} requests have chunks to come"));
        }
    }

    /// Takes a chunk from the connection.
    ///
    /// # Errors
    /// The sentence that ends the connection.
    pub fn chunk(&mut self, reader: &mut Reader, chunk: &Message) -> Result<(), String> {
        let mut upload = self
            .uploads
            .all
            .remove(&chunk.id)
            .ok_or_else(|| format!("a chunk came for the request {}, which expects none", chunk.id))?;
        let of = (upload.request.op, upload.request.lane.number);
        if of != (chunk.op, chunk.envelope.lane) {
            return Err(format!("a chunk came for the request {} of another operation or lane", chunk.id));
        }
        let length = chunk.length as u64;
        if length == 0 || length > (upload.bytes - upload.done).min(MAX_CHUNK as u64) {
            return Err(format!(
                "a chunk of {length} bytes came for the request {}, which has {} bytes to come, {MAX_CHUNK} at most in a chunk",
                chunk.id,
                upload.bytes - upload.done
            ));
        }
        let under_way = self.uploads.under_way.fetch_add(length, Ordering::Relaxed);
        if under_way + length > self.window as u64 {
            return Err(format!("chunks of more than {} bytes came without credit", self.window));
        }
        let failed = |error: hip_transport::Error| error.to_string();
        match &mut upload.to {
            _ if upload.failed.is_some() => {
                reader.skip(chunk.length).map_err(failed)?;
                self.credit(length);
            }
            To::Image { image, .. } => {
                let begin = image.len();
                image.resize(begin + chunk.length, 0);
                reader.read_exact(image.get_mut(begin..).unwrap_or_default()).map_err(failed)?;
                self.credit(length);
            }
            To::Device { rows, stream } => {
                let (rows, stream) = (*rows, *stream);
                if let Err(error) =
                    self.upload(reader, &upload.request, &rows, stream, upload.done, chunk.length)?
                {
                    upload.failed = Some(error);
                }
            }
        }
        upload.done += length;
        if upload.done < upload.bytes {
            self.uploads.all.insert(chunk.id, upload);
            return Ok(());
        }
        let session = Arc::clone(&self.session);
        session.timed(|| self.uploaded(upload))
    }

    /// Copies a chunk to the device. The inner result is the library's.
    fn upload(
        &mut self,
        reader: &mut Reader,
        request: &Request,
        rows: &Rows,
        stream: u64,
        begin: u64,
        length: usize,
    ) -> Result<Result<(), Status>, String> {
        let session = Arc::clone(&self.session);
        let placed = session.timed(|| {
            // Another thread of the client may have freed the memory or destroyed the stream.
            self.check(rows)?;
            let found = self.stream(request, stream)?;
            Ok((found, self.uploads.batches.place(&session, found, length)?))
        });
        let (found, (bytes, address)) = match placed {
            Ok(placed) => placed,
            Err(status) => {
                reader.skip(length).map_err(|error| error.to_string())?;
                self.credit(length as u64);
                return Ok(Err(status));
            }
        };
        reader.read_exact(bytes).map_err(|error| error.to_string())?;
        let copy = || {
            session.use_device(found.0)?;
            rows.parts(begin, length).try_for_each(|part| {
                let from = address + part.offset as u64;
                if part.height == 1 {
                    return session.hip.copy(part.pointer, from, part.width, found.1);
                }
                let pitch = usize::try_from(rows.pitch).unwrap_or(usize::MAX);
                session.hip.copy_rows(part.pointer, pitch, from, part.width, part.width, part.height, found.1)
            })
        };
        Ok(session.timed(|| {
            let copied = copy();
            self.uploads.batches.enqueued(&session);
            copied
        }))
    }

    /// Gives the credit of bytes back that need no copy.
    fn credit(&mut self, bytes: u64) {
        self.uploads.under_way.fetch_sub(bytes, Ordering::Relaxed);
        message::put(Credit::OP, 0, Envelope::default(), &Credit { bytes }, &[], &mut self.out);
    }

    /// Answers when the last chunk has come.
    fn uploaded(&mut self, upload: Upload) -> Result<(), String> {
        let Upload { request, to, failed, .. } = upload;
        if let Some(status) = failed {
            request.answer::<()>(Err(status), &[], &mut self.out);
            return Ok(());
        }
        match to {
            To::Image { sha256, image, held } => self.session.later(&request.clone(), move |session| {
                let _held = held;
                if hip_transport::sha256(&image) != sha256 {
                    return Err(INVALID_IMAGE);
                }
                if let Err(error) = session.cache.keep(&sha256, &image) {
                    log!("a code object cannot be kept: {error}");
                }
                Ok(LoadedImage { module: load(session, request.lane.device(), &image)? })
            }),
            To::Device { .. } if request.one_way => Ok(()),
            To::Device { stream, .. } => {
                let copied = self.stream(&request, stream).and_then(|(device, stream)| {
                    self.session.use_device(device)?;
                    self.session.events.record(device, stream)
                });
                match copied {
                    Err(status) => self.waited(&request, Err(status)),
                    Ok(copied) => match copied.query() {
                        Err(NOT_READY) => self.session.later(&request, move |_| copied.wait()),
                        ended => self.waited(&request, ended),
                    },
                }
            }
        }
    }
}
