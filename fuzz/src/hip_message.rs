//! A connection's bytes as client and worker read them: each message that is taken has the bytes that it would be sent as.

use hip_protocol::calls::{self, *};
use hip_protocol::envelope::{CHUNK, DEFERRED, ERROR, Envelope, NO_REPLY};
use hip_protocol::field::Field;
use hip_protocol::header::{Header, MAX_PAYLOAD, SIZE, VERSION_1, VERSION_2};
use hip_protocol::{Malformed, message};

use crate::assert_fit_for_a_log;

/// Messages, one after the other.
pub fn check(mut data: &[u8]) {
    while let Some((header, rest)) = data.split_first_chunk::<SIZE>() {
        let Some(read) = taken(Header::parse(header)) else { return };
        assert_eq!(read.bytes(), *header);
        assert!(read.length <= MAX_PAYLOAD && [VERSION_1, VERSION_2].contains(&read.version));
        let Some((payload, rest)) = rest.split_at_checked(read.length as usize) else { return };
        data = rest;
        if read.version == VERSION_2 && !is_taken(read.op, payload) {
            return;
        }
    }
}

fn taken<T>(read: Result<T, Malformed>) -> Option<T> {
    read.map_err(|malformed| assert_fit_for_a_log(&malformed.to_string())).ok()
}

macro_rules! each {
    ($op:expr, $payload:expr; $($call:ident)*) => {
        match $op {
            $($call::OP => {
                fields::<$call>($op, $payload);
                fields::<<$call as Call>::Reply>($op, $payload);
            })*
            op => assert!(!OPS.contains(&op), "{op:#06x} is not fuzzed"),
        }
    };
}

fn is_taken(op: u16, payload: &[u8]) -> bool {
    let mut rest = payload;
    let Some(envelope) = taken(Envelope::take(&mut rest)) else { return false };
    assert_eq!([&envelope.bytes(), rest].concat(), payload);
    assert!(envelope.flags <= NO_REPLY | ERROR | CHUNK | DEFERRED);
    each!(op, rest;
        Close DeviceCount Hello Ping Credit Output DeviceProperties DeviceAttribute MemoryInfo SetDevice DeviceSync
        DeviceReset Malloc Free Memset HostToDevice DeviceToHost DeviceToDevice Launch ModuleLoad ModuleImage
        ModuleUnload ModuleFunction ModuleGlobal FunctionAttribute Occupancy OccupancyBlock StreamSync StreamCreate
        StreamDestroy StreamQuery StreamWaitEvent StreamPriorities EventCreate EventDestroy EventRecord EventSync
        EventQuery EventElapsed);
    true
}

/// What is read as fields and variable bytes is written as the bytes that were read.
fn fields<F: Field>(op: u16, payload: &[u8]) {
    assert!(calls::name(op).is_some());
    let Some((fields, variable)) = taken(message::fields::<F>(op, payload)) else { return };
    let mut written = Vec::new();
    message::put(op, 7, Envelope::default(), &fields, variable, &mut written);
    assert_eq!(written[message::PREFIX..], *payload);
}
