//! A connection's bytes as client and worker read them: each message that is taken has the bytes that it would be sent as.

use hip_protocol::calls::{self, Call};
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

macro_rules! by_op {
    ($($call:ident)*) => {
        fn fields_of(op: u16, payload: &[u8]) {
            match op {
                $(calls::$call::OP => {
                    fields::<calls::$call>(op, payload);
                    fields::<<calls::$call as Call>::Reply>(op, payload);
                })*
                _ => assert!(calls::name(op).is_none()),
            }
        }
    };
}
hip_protocol::each_call!(by_op);

fn is_taken(op: u16, payload: &[u8]) -> bool {
    let mut rest = payload;
    let Some(envelope) = taken(Envelope::take(&mut rest)) else { return false };
    assert_eq!([&envelope.bytes(), rest].concat(), payload);
    assert!(envelope.flags <= NO_REPLY | ERROR | CHUNK | DEFERRED);
    fields_of(op, rest);
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
