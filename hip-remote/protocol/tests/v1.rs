//! Version 1, against bytes that were written by hand from PROTOCOL.md and from msgpack's specification.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hip_protocol::header::{Header, SIZE};
use hip_protocol::v1::{
    Answer, DEVICE_COUNT, DEVICE_TO_HOST, FREE, HOST_TO_DEVICE, LAUNCH, MALLOC, Reply, Request, STREAM_SYNC,
};

/// A message of version 1 whose payload is `payload`, with the id 7.
fn message(op: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![b'R', b'P', b'I', b'H', 1, 0, op, 0, 7, 0, 0, 0];
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    bytes
}

fn split(message: &[u8]) -> (u16, &[u8]) {
    let (header, payload) = message.split_first_chunk::<SIZE>().unwrap();
    let header = Header::parse(header).unwrap();
    assert_eq!((header.version, header.id, header.length as usize), (1, 7, payload.len()));
    (header.op, payload)
}

#[test]
fn requests_have_the_plans_bytes() {
    for (op, payload, request) in [
        (0x01, b"\x80".as_slice(), Request::DeviceCount),
        // The plan's example: { size: 1048576 }.
        (0x10, b"\x81\xa4size\xce\x00\x10\x00\x00", Request::Malloc { size: 1_048_576 }),
        (
            0x11,
            b"\x81\xa6devPtr\xcf\x00\x00\x7f\x8a\x40\x00\x00\x00",
            Request::Free { pointer: 0x7f8a_4000_0000 },
        ),
        (0x20, b"\x82\xa6devPtr\x10\xa4data\xc4\x03abc", Request::HostToDevice { pointer: 16, data: b"abc" }),
        (0x21, b"\x82\xa6devPtr\x10\xa4size\xcd\x01\x00", Request::DeviceToHost { pointer: 16, size: 256 }),
        (0x30, b"\x80", Request::Launch),
        (0x40, b"\x81\xa6stream\x00", Request::StreamSync { stream: 0 }),
    ] {
        let mut bytes = Vec::new();
        request.put(7, &mut bytes);
        assert_eq!(bytes, message(op, payload), "{request:?}");
        let (op, payload) = split(&bytes);
        assert_eq!(Request::parse(op, payload), Ok(request));
    }
}

#[test]
fn replies_have_the_plans_bytes() {
    for (op, payload, status, answer) in [
        (0x01, b"\x82\xa6status\x00\xa5count\x02".as_slice(), 0, Answer::Count(2)),
        // The plan's example: { status: 0, devPtr: 0x7f8a40000000 }.
        (
            0x10,
            b"\x82\xa6status\x00\xa6devPtr\xcf\x00\x00\x7f\x8a\x40\x00\x00\x00",
            0,
            Answer::Pointer(0x7f8a_4000_0000),
        ),
        (0x10, b"\x81\xa6status\x02", 2, Answer::Nothing),
        (0x11, b"\x81\xa6status\x00", 0, Answer::Nothing),
        (0x21, b"\x82\xa6status\x00\xa4data\xc4\x02hi", 0, Answer::Data(b"hi")),
        (0x30, b"\x81\xa6status\x62", 98, Answer::Nothing),
        (0x40, b"\x81\xa6status\xcd\x02\xcf", 719, Answer::Nothing),
    ] {
        let reply = Reply { status, answer };
        let mut bytes = Vec::new();
        reply.put(op.into(), 7, &mut bytes);
        assert_eq!(bytes, message(op, payload), "{reply:?}");
        let (op, payload) = split(&bytes);
        assert_eq!(Reply::parse(op, payload), Ok(reply));
    }
}

/// Other languages' encoders choose other lengths for numbers, strings and maps.
#[test]
fn longer_encodings_of_a_value_are_read() {
    for payload in [
        b"\x81\xa4size\x05".as_slice(),
        b"\x81\xa4size\xcc\x05",
        b"\x81\xa4size\xcf\x00\x00\x00\x00\x00\x00\x00\x05",
        b"\x81\xa4size\xd3\x00\x00\x00\x00\x00\x00\x00\x05",
        b"\x81\xd9\x04size\x05",
        b"\xde\x00\x01\xa4size\x05",
        b"\xdf\x00\x00\x00\x01\xda\x00\x04size\xd0\x05",
    ] {
        assert_eq!(Request::parse(MALLOC, payload), Ok(Request::Malloc { size: 5 }), "{payload:?}");
    }
    let payload = b"\x82\xa4data\xc6\x00\x00\x00\x01a\xa6devPtr\x01";
    assert_eq!(Request::parse(HOST_TO_DEVICE, payload), Ok(Request::HostToDevice { pointer: 1, data: b"a" }));
}

#[test]
fn a_payload_that_is_not_exactly_its_map_is_refused() {
    for (op, payload, reason) in [
        (MALLOC, b"".as_slice(), "a payload is no msgpack map"),
        (MALLOC, b"\x91\x05", "a payload is no msgpack map"),
        (MALLOC, b"\x80", "a map lacks size"),
        (MALLOC, b"\x81\xa4size", "size is no whole number from 0 to 2^64 - 1"),
        (MALLOC, b"\x81\xa4size\xff", "size is no whole number from 0 to 2^64 - 1"),
        (MALLOC, b"\x81\xa4size\xa1x", "size is no whole number from 0 to 2^64 - 1"),
        (MALLOC, b"\x81\xa4size\xca\x00\x00\x00\x00", "size is no whole number from 0 to 2^64 - 1"),
        (MALLOC, b"\x81\xa4size\x05\x00", "1 bytes follow a payload's map"),
        (MALLOC, b"\x81\xa4Size\x05", "a map has a key that is none of size"),
        (MALLOC, b"\x81\x05\x05", "a map's key is no string"),
        (MALLOC, b"\x82\xa4size\x05\xa4size\x06", "a map has 2 keys, and 1 are known"),
        (MALLOC, b"\xdf\xff\xff\xff\xff", "a map has 4294967295 keys, and 1 are known"),
        (DEVICE_TO_HOST, b"\x82\xa4size\x05\xa4size\x06", "a map has size twice"),
        (FREE, b"\x81\xa4size\x05", "a map has a key that is none of devPtr"),
        (HOST_TO_DEVICE, b"\x81\xa6devPtr\x05", "a map lacks data"),
        (HOST_TO_DEVICE, b"\x81\xa4data\xa1x", "data is no msgpack bin"),
        (
            HOST_TO_DEVICE,
            b"\x81\xa4data\xc6\xff\xff\xff\xffx",
            "data announces 4294967295 bytes, and fewer follow",
        ),
        (DEVICE_COUNT, b"\x81\xa4size\x05", "a map has 1 keys, and 0 are known"),
        (STREAM_SYNC, b"\x81\xa6stream\xc0", "stream is no whole number from 0 to 2^64 - 1"),
        (0x0002, b"\x80", "version 1 has no operation 0x0002"),
    ] {
        let refused = Request::parse(op, payload).unwrap_err();
        assert_eq!(refused.to_string(), reason, "{payload:?}");
    }
    for (op, payload, reason) in [
        (MALLOC, b"\x81\xa6status\x00".as_slice(), "a map lacks devPtr"),
        (FREE, b"\x82\xa6status\x00\xa6devPtr\x01", "a reply has 2 keys in place of 1"),
        (MALLOC, b"\x82\xa6status\x02\xa6devPtr\x01", "a reply has 2 keys in place of 1"),
        (LAUNCH, b"\x81\xa6status\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "a status has more than 32 bits"),
    ] {
        assert_eq!(Reply::parse(op, payload).unwrap_err().to_string(), reason, "{payload:?}");
    }
}

#[test]
fn each_cut_of_a_request_is_refused() {
    let whole = b"\x82\xa6devPtr\xcf\x00\x00\x7f\x8a\x40\x00\x00\x00\xa4data\xc4\x03abc";
    assert!(Request::parse(HOST_TO_DEVICE, whole).is_ok());
    for length in 0..whole.len() {
        assert!(Request::parse(HOST_TO_DEVICE, &whole[..length]).is_err(), "{length}");
    }
}
