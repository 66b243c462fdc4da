//! Whole messages of version 2, against bytes that were written by hand from PROTOCOL.md.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hip_protocol::calls::{
    self, Allocation, Attribute, Close, Credit, DeviceAttribute, DeviceToHost, Hello, HostToDevice, Launch,
    Loaded, Malloc, ModuleFunction, ModuleLoad, Ping, Welcome,
};
use hip_protocol::envelope::{self, CHUNK, DEFERRED, ERROR, Envelope, NO_REPLY};
use hip_protocol::header::{self, Header};
use hip_protocol::message::{self, PREFIX};

/// Bytes from pairs of hexadecimal digits; what follows a `;` of a line is a comment.
fn bytes(text: &str) -> Vec<u8> {
    let code = text.lines().map(|line| line.split(';').next().unwrap());
    code.flat_map(str::split_whitespace).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// The header and envelope of a message, and what follows them.
fn split(message: &[u8]) -> (Header, Envelope, &[u8]) {
    let (header, mut rest) = message.split_first_chunk::<{ header::SIZE }>().unwrap();
    let header = Header::parse(header).unwrap();
    assert_eq!(header.length as usize, rest.len());
    let envelope = Envelope::take(&mut rest).unwrap();
    (header, envelope, rest)
}

#[test]
fn a_request_is_header_envelope_and_fields() {
    let mut written = Vec::new();
    message::request(&Malloc { bytes: 0x0102_0304 }, 5, 0, 3, &[], &mut written);
    let golden = bytes(
        "52 50 49 48  02 00  10 00  05 00 00 00  10 00 00 00  ; version 2, Malloc, id 5, 16 bytes
         00 00  03 00  00 00 00 00                            ; no flag, lane 3, status 0
         04 03 02 01 00 00 00 00                              ; bytes",
    );
    assert_eq!(written, golden);
    let (header, envelope, rest) = split(&golden);
    assert_eq!((header.version, header.op, header.id), (2, 0x10, 5));
    assert_eq!(envelope, Envelope { flags: 0, lane: 3, status: 0 });
    assert_eq!(message::fields(header.op, rest), Ok((Malloc { bytes: 0x0102_0304 }, [].as_slice())));
}

#[test]
fn a_reply_has_its_requests_operation_id_and_lane() {
    let mut written = Vec::new();
    message::reply(0x10, 5, 3, &Allocation { pointer: 0x7f8a_4000_0000 }, &[], &mut written);
    assert_eq!(
        written,
        bytes(
            "52 50 49 48  02 00  10 00  05 00 00 00  10 00 00 00
             00 00  03 00  00 00 00 00
             00 00 00 40 8a 7f 00 00"
        )
    );
}

#[test]
fn an_error_is_a_reply_without_fields() {
    let mut written = Vec::new();
    message::error(0x10, 5, 3, 2, 0, &mut written);
    assert_eq!(
        written,
        bytes("52 50 49 48  02 00  10 00  05 00 00 00  08 00 00 00   02 00  03 00  02 00 00 00")
    );
}

#[test]
fn an_earlier_calls_error_comes_with_a_reply_that_has_its_fields() {
    let mut written = Vec::new();
    let envelope = Envelope { flags: ERROR | DEFERRED, lane: 3, status: 719 };
    message::put(0x07, 6, envelope, &Attribute { value: 64 }, &[], &mut written);
    let golden = bytes(
        "52 50 49 48  02 00  07 00  06 00 00 00  0c 00 00 00
         0a 00  03 00  cf 02 00 00                            ; ERROR and DEFERRED, lane 3, status 719
         40 00 00 00",
    );
    assert_eq!(written, golden);
    let (_, envelope, rest) = split(&golden);
    assert!(envelope.has(ERROR) && envelope.has(DEFERRED) && !envelope.has(CHUNK));
    assert_eq!(message::fields(0x07, rest), Ok((Attribute { value: 64 }, [].as_slice())));
}

#[test]
fn a_one_way_launch_ends_with_its_kernels_arguments() {
    let mut written = Vec::new();
    let launch = Launch {
        function: 0x11,
        grid: [4, 2, 1],
        block: [256, 1, 1],
        shared: 1024,
        stream: calls::PER_THREAD,
    };
    message::request(&launch, 9, NO_REPLY, 1, &[0xaa, 0xbb, 0xcc, 0xdd], &mut written);
    let golden = bytes(
        "52 50 49 48  02 00  30 00  09 00 00 00  38 00 00 00
         01 00  01 00  00 00 00 00                            ; NO_REPLY, lane 1
         11 00 00 00 00 00 00 00                              ; function
         04 00 00 00  02 00 00 00  01 00 00 00                ; grid
         00 01 00 00  01 00 00 00  01 00 00 00                ; block
         00 04 00 00                                          ; shared
         02 00 00 00 00 00 00 00                              ; stream
         aa bb cc dd                                          ; arguments",
    );
    assert_eq!(written, golden);
    let (header, _, rest) = split(&golden);
    assert_eq!(message::fields(header.op, rest), Ok((launch, [0xaa, 0xbb, 0xcc, 0xdd].as_slice())));
}

#[test]
fn a_chunk_is_its_requests_id_and_bytes() {
    let mut written = Vec::new();
    let copy = HostToDevice { pointer: 0x1000, pitch: 3, width: 3, height: 1, stream: 0 };
    message::request(&copy, 10, NO_REPLY, 0, &[], &mut written);
    written.extend(message::prefix(0x20, 10, Envelope { flags: CHUNK, lane: 0, status: 0 }, 3));
    written.extend(b"abc");
    let golden = bytes(
        "52 50 49 48  02 00  20 00  0a 00 00 00  30 00 00 00   01 00  00 00  00 00 00 00
         00 10 00 00 00 00 00 00                              ; pointer
         03 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00     ; pitch, width
         01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00     ; height, stream
         52 50 49 48  02 00  20 00  0a 00 00 00  0b 00 00 00   04 00  00 00  00 00 00 00
         61 62 63",
    );
    assert_eq!(written, golden);
}

#[test]
fn a_connection_begins_with_hello_and_welcome() {
    let mut written = Vec::new();
    let token = std::array::from_fn(|byte| byte as u8);
    message::request(&Hello { token, pid: 0x1234, memory: 1 << 30 }, 1, 0, 0, b"vadd", &mut written);
    let welcome = Welcome { window: 8 << 20, driver: 60443, runtime: 60443, devices: 2 };
    message::reply(0x02, 1, 0, &welcome, b"0.1.0", &mut written);
    assert_eq!(
        written,
        bytes(
            "52 50 49 48  02 00  02 00  01 00 00 00  38 00 00 00   00 00  00 00  00 00 00 00
             00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f      ; token
             10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f
             34 12 00 00  00 00 00 40 00 00 00 00                 ; pid, memory
             76 61 64 64                                          ; the program
             52 50 49 48  02 00  02 00  01 00 00 00  21 00 00 00   00 00  00 00  00 00 00 00
             00 00 80 00 00 00 00 00                              ; window
             1b ec 00 00  1b ec 00 00  02 00 00 00                ; driver, runtime, devices
             30 2e 31 2e 30                                       ; the worker's version"
        )
    );
}

#[test]
fn the_workers_own_messages_have_the_id_0() {
    let mut written = Vec::new();
    message::request(&Credit { bytes: 1 << 20 }, 0, 0, 0, &[], &mut written);
    message::request(&Close {}, 0, 0, 0, b"busy", &mut written);
    assert_eq!(
        written,
        bytes(
            "52 50 49 48  02 00  04 00  00 00 00 00  10 00 00 00   00 00  00 00  00 00 00 00
             00 00 10 00 00 00 00 00
             52 50 49 48  02 00  00 00  00 00 00 00  0c 00 00 00   00 00  00 00  00 00 00 00
             62 75 73 79"
        )
    );
}

#[test]
fn other_requests_have_the_documents_bytes() {
    let mut written = Vec::new();
    message::request(&Ping {}, 2, 0, 0, &[], &mut written);
    message::request(&DeviceAttribute { device: 1, attribute: -1 }, 3, 0, 0, &[], &mut written);
    message::request(&ModuleLoad { sha256: [0x5a; 32], bytes: 4096 }, 4, 0, 0, &[], &mut written);
    message::reply(0x31, 4, 0, &Loaded { module: 0 }, &[], &mut written);
    message::request(&ModuleFunction { module: 7 }, 5, 0, 0, b"vadd", &mut written);
    let copy = DeviceToHost { pointer: 0x2000, pitch: 64, width: 32, height: 2, stream: 9 };
    message::request(&copy, 6, 0, 0, &[], &mut written);
    assert_eq!(
        written,
        bytes(
            "52 50 49 48  02 00  03 00  02 00 00 00  08 00 00 00   00 00  00 00  00 00 00 00
             52 50 49 48  02 00  07 00  03 00 00 00  10 00 00 00   00 00  00 00  00 00 00 00
             01 00 00 00  ff ff ff ff
             52 50 49 48  02 00  31 00  04 00 00 00  30 00 00 00   00 00  00 00  00 00 00 00
             5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a
             5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a 5a
             00 10 00 00 00 00 00 00
             52 50 49 48  02 00  31 00  04 00 00 00  10 00 00 00   00 00  00 00  00 00 00 00
             00 00 00 00 00 00 00 00
             52 50 49 48  02 00  34 00  05 00 00 00  14 00 00 00   00 00  00 00  00 00 00 00
             07 00 00 00 00 00 00 00  76 61 64 64
             52 50 49 48  02 00  21 00  06 00 00 00  30 00 00 00   00 00  00 00  00 00 00 00
             00 20 00 00 00 00 00 00  40 00 00 00 00 00 00 00  20 00 00 00 00 00 00 00
             02 00 00 00 00 00 00 00  09 00 00 00 00 00 00 00"
        )
    );
}

#[test]
fn a_header_that_is_none_is_refused_with_its_reason() {
    let whole = bytes("52 50 49 48  02 00  10 00  05 00 00 00  10 00 00 00");
    for (place, byte, reason) in [
        (0, 0x50, "begins with 0x48495050 in place of 0x48495052"),
        (4, 0, "has version 0, and 1 and 2 are known"),
        (5, 1, "has version 258, and 1 and 2 are known"),
        (15, 1, "announces 16777232 bytes, and 4194304 are the most"),
    ] {
        let mut changed: [u8; 16] = whole.clone().try_into().unwrap();
        changed[place] = byte;
        let refused = Header::parse(&changed).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    let most = bytes("52 50 49 48  02 00  10 00  05 00 00 00  00 00 40 00");
    assert_eq!(Header::parse(&most.try_into().unwrap()).unwrap().length, header::MAX_PAYLOAD);
}

#[test]
fn an_envelope_that_is_cut_or_has_an_unknown_flag_is_refused() {
    for length in 0..envelope::SIZE {
        assert!(Envelope::take(&mut &[0; envelope::SIZE][..length]).is_err(), "{length}");
    }
    for flag in [16_u16, 1 << 15] {
        let mut bytes = [0; envelope::SIZE];
        bytes[..2].copy_from_slice(&flag.to_le_bytes());
        assert!(Envelope::take(&mut bytes.as_slice()).is_err(), "{flag}");
    }
    let prefix: [u8; PREFIX] = message::prefix(0x10, 5, Envelope { flags: 15, lane: 65535, status: -1 }, 0);
    assert_eq!(split(&prefix).1, Envelope { flags: 15, lane: 65535, status: -1 });
}
