//! A call of the client, and its reply.

use std::sync::Arc;

use hip_protocol::calls::{Call as _, DeviceToHost};
use hip_protocol::envelope::{DEFERRED, ERROR, Envelope};
use hip_protocol::field::Field;
use hip_protocol::message;

use crate::hip::Status;
use crate::lane::Lane;

/// A call as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub op: u16,
    pub id: u32,
    /// The client waits for no reply.
    pub one_way: bool,
    pub lane: Arc<Lane>,
}

/// What a call comes to at once; `None`: its lane's thread answers.
pub type Answer<R> = Result<Option<R>, Status>;

impl Request {
    /// Appends the reply, or keeps the failure of a one-way call for a later one.
    pub fn answer<R: Field>(&self, result: Result<R, Status>, variable: &[u8], out: &mut Vec<u8>) {
        let lane = &self.lane;
        match result {
            Err(status) if self.one_way => {
                lane.defer(status);
                if self.op == DeviceToHost::OP {
                    // The client has a place for the bytes, which it must give up.
                    message::error(self.op, self.id, lane.number, status, 0, out);
                }
            }
            Ok(_) if self.one_way => {}
            Err(status) => message::error(self.op, self.id, lane.number, status, 0, out),
            Ok(fields) => match lane.take_deferred() {
                None => message::reply(self.op, self.id, lane.number, &fields, variable, out),
                Some(status) => {
                    // With the fields: what the call made is the client's, and would be lost otherwise.
                    let envelope = Envelope { flags: ERROR | DEFERRED, lane: lane.number, status };
                    message::put(self.op, self.id, envelope, &fields, variable, out);
                }
            },
        }
    }
}
