//! A call on a connection that nobody else uses yet, such as the greeting.

use std::io::IoSlice;

use hip_protocol::calls::{Call, Close};
use hip_protocol::envelope::ERROR;
use hip_protocol::message;

use crate::text::printable;
use crate::{Error, Reader, Writer};

/// Why a call has no result.
#[derive(Debug)]
pub enum Unanswered {
    Connection(Error),
    /// The worker's `hipError_t`.
    Hip(i32),
}

impl From<Error> for Unanswered {
    fn from(why: Error) -> Self {
        Self::Connection(why)
    }
}

/// Makes a call, and returns its reply with the variable bytes.
///
/// # Errors
/// The worker refuses the client, answers wrongly or not at all; or the call fails.
pub fn ask<C: Call>(
    reader: &mut Reader,
    writer: &mut Writer,
    call: &C,
    variable: &[u8],
) -> Result<(C::Reply, Vec<u8>), Unanswered> {
    let peer = reader.peer().to_owned();
    let mut request = Vec::new();
    message::request(call, 0, 0, 0, variable, &mut request);
    // A worker that refuses the client has said why before it closes, whatever becomes of this.
    let written = writer.write(&mut [IoSlice::new(&request)]);
    loop {
        let message = reader.next().map_err(|why| written.clone().err().unwrap_or(why))?;
        let payload = reader.bytes(message.length)?;
        if message.op == Close::OP {
            let sentence = format!("{peer} refuses this program: {}", printable(payload));
            return Err(Error::Failed(sentence).into());
        }
        if message.op != C::OP {
            continue;
        }
        if message.envelope.has(ERROR) {
            return Err(Unanswered::Hip(message.envelope.status));
        }
        return match message::fields(C::OP, payload) {
            Ok((reply, variable)) => Ok((reply, variable.to_vec())),
            Err(why) => Err(Error::Failed(format!("{peer} answers wrongly: {why}")).into()),
        };
    }
}
