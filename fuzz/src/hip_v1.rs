//! Payloads of version 1: whatever an encoder chose, a payload has one meaning, and not one byte too many or too few.

use hip_protocol::header::{Header, SIZE};
use hip_protocol::v1::{
    DEVICE_COUNT, DEVICE_TO_HOST, FREE, HOST_TO_DEVICE, LAUNCH, MALLOC, Reply, Request, STREAM_SYNC,
};

use crate::assert_fit_for_a_log;

const OPS: [u16; 8] =
    [DEVICE_COUNT, MALLOC, FREE, HOST_TO_DEVICE, DEVICE_TO_HOST, LAUNCH, STREAM_SYNC, 0x1234];

/// The first byte chooses the operation, and whether it is a reply; the payload is behind it.
pub fn check(data: &[u8]) {
    let Some((choice, payload)) = data.split_first() else { return };
    let op = OPS[usize::from(choice & 7)];
    let parse = |payload: &[u8], mut written: Option<&mut Vec<u8>>| {
        let read = if choice & 8 == 0 {
            Request::parse(op, payload).map(|request| {
                if let Some(written) = written.take() {
                    request.put(7, written);
                }
                format!("{request:?}")
            })
        } else {
            Reply::parse(op, payload).map(|reply| {
                if let Some(written) = written.take() {
                    reply.put(op, 7, written);
                }
                format!("{reply:?}")
            })
        };
        read.map_err(|malformed| assert_fit_for_a_log(&malformed.to_string())).ok()
    };
    let mut written = Vec::new();
    let Some(read) = parse(payload, Some(&mut written)) else { return };
    let (header, own) = written.split_first_chunk::<SIZE>().expect("a message has a header");
    let header = Header::parse(header).expect("its header is known");
    assert_eq!((header.op, header.length as usize), (op, own.len()));
    assert_eq!(parse(own, None).as_ref(), Some(&read));
    let is_launch = op == LAUNCH && choice & 8 == 0;
    if !is_launch {
        assert!(own.len() <= payload.len(), "the shortest encoding is written");
        assert_eq!(parse(&[payload, &[0]].concat(), None), None);
        assert_eq!(parse(&payload[..payload.len() - 1], None), None);
    }
}
