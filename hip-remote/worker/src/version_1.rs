//! Serves a client of version 1: TensorFusion's plan, whose client waits for each reply. It has the first device.

use std::io::IoSlice;
use std::sync::Arc;

use hip_protocol::header::VERSION_1;
use hip_protocol::v1::{Answer, MAX_DATA, Reply, Request};
use hip_transport::{Error, Message, Reader};

use crate::hip::{INVALID_DEVICE_FUNCTION, INVALID_HANDLE, INVALID_VALUE, Status};
use crate::locked::locked;
use crate::rows::Rows;
use crate::session::Session;
use crate::staging::Piece;

const DEVICE: i32 = 0;

/// What a call gives that went well.
enum Given {
    Nothing,
    Count(u64),
    Pointer(u64),
    Data(Piece, usize),
}

/// Serves until the client closes the connection.
///
/// # Errors
/// The sentence that ends the connection.
pub fn serve(session: &Arc<Session>, reader: &mut Reader, first: Message) -> Result<(), String> {
    let mut message = first;
    loop {
        if message.version != VERSION_1 {
            return Err("a message of version 2 came on a connection of version 1".to_owned());
        }
        let payload = reader.bytes(message.length).map_err(|error| error.to_string())?;
        let request = Request::parse(message.op, payload).map_err(|why| why.to_string())?;
        let given = session.timed(|| call(session, &request));
        let answer = match &given {
            Ok(Given::Count(count)) => Answer::Count(*count),
            Ok(Given::Pointer(pointer)) => Answer::Pointer(*pointer),
            Ok(Given::Data(piece, bytes)) => Answer::Data(piece.get(..*bytes).unwrap_or_default()),
            Ok(Given::Nothing) | Err(_) => Answer::Nothing,
        };
        let status = given.as_ref().err().map_or(0, |status| status.cast_unsigned());
        let mut out = Vec::new();
        Reply { status, answer }.put(message.op, message.id, &mut out);
        session.write(&mut [IoSlice::new(&out)])?;
        message = match reader.next() {
            Ok(message) => message,
            Err(Error::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
    }
}

fn call(session: &Session, request: &Request<'_>) -> Result<Given, Status> {
    // Without a device each call gives the library's own error.
    let _ = session.use_device(DEVICE);
    match *request {
        Request::DeviceCount => Ok(Given::Count(session.devices?.try_into().unwrap_or_default())),
        Request::Malloc { size } => Ok(Given::Pointer(session.malloc(DEVICE, size)?.pointer)),
        Request::Free { pointer: 0 } => Ok(Given::Nothing),
        Request::Free { pointer } => {
            let memory = locked(&session.tables).remove_memory(pointer)?;
            session.free(memory).map(|()| Given::Nothing)
        }
        Request::HostToDevice { pointer, data } => {
            let mut piece = staged(session, pointer, data.len())?;
            piece.get_mut(..data.len()).unwrap_or_default().copy_from_slice(data);
            copied(session, session.hip.copy(pointer, piece.address(), data.len(), 0))
                .map(|()| Given::Nothing)
        }
        Request::DeviceToHost { pointer, size } => {
            let bytes = usize::try_from(size).ok().filter(|bytes| *bytes <= MAX_DATA).ok_or(INVALID_VALUE)?;
            let piece = staged(session, pointer, bytes)?;
            copied(session, session.hip.copy(piece.address(), pointer, bytes, 0))?;
            Ok(Given::Data(piece, bytes))
        }
        // A launch of version 1 names no module.
        Request::Launch => Err(INVALID_DEVICE_FUNCTION),
        Request::StreamSync { stream: 0 } => session.hip.stream_sync(0).map(|()| Given::Nothing),
        Request::StreamSync { .. } => Err(INVALID_HANDLE),
    }
}

/// Pinned memory for a copy, whose other end is checked.
fn staged(session: &Session, pointer: u64, bytes: usize) -> Result<Piece, Status> {
    let rows = Rows::new(pointer, bytes as u64, bytes as u64, 1)?;
    locked(&session.tables).check(&rows)?;
    session.staging.take(bytes)
}

/// Waits for a copy that was enqueued.
fn copied(session: &Session, enqueued: Result<(), Status>) -> Result<(), Status> {
    enqueued.and_then(|()| session.hip.stream_sync(0))
}
