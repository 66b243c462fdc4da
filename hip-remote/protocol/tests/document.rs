//! PROTOCOL.md against the code: each call's code, name, and each field's name, type and place.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Debug;

use hip_protocol::calls::{self, *};
use hip_protocol::field::Field;
use hip_protocol::message;

const DOCUMENT: &str = include_str!("../../PROTOCOL.md");

/// Bytes that differ, so that a field at another place has another value. Their highest bit tells i32 from u32, and no
/// four of them are an f32 that is no number.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|byte| 0x81 + byte as u8).collect()
}

/// The code of a call, its fields and its reply's, as `Debug` shows them when they are read from the pattern.
struct Read {
    op: u16,
    fields: (String, usize),
    reply: (String, usize),
}

fn read<C: Call + Debug>() -> Read
where
    C::Reply: Debug,
{
    Read { op: C::OP, fields: shown::<C>(), reply: shown::<C::Reply>() }
}

fn shown<F: Field + Debug>() -> (String, usize) {
    let pattern = pattern(100);
    let mut rest = pattern.as_slice();
    let value = F::take(&mut rest).unwrap();
    let length = pattern.len() - rest.len();
    let mut again = Vec::new();
    value.put(&mut again);
    assert_eq!(again, pattern[..length], "{value:?}");
    for cut in 0..length {
        assert!(message::fields::<F>(0, &pattern[..cut]).is_err(), "{value:?} of {cut} bytes");
    }
    (format!("{value:?}").replace("()", ""), length)
}

macro_rules! all {
    ($($call:ident),* $(,)?) => { [$(read::<$call>()),*] };
}

fn in_the_code() -> Vec<Read> {
    all!(
        Close,
        DeviceCount,
        Hello,
        Ping,
        Credit,
        Output,
        DeviceProperties,
        DeviceAttribute,
        MemoryInfo,
        SetDevice,
        DeviceSync,
        DeviceReset,
        LaneEnd,
        Malloc,
        Free,
        Memset,
        HostToDevice,
        DeviceToHost,
        DeviceToDevice,
        Launch,
        ModuleLoad,
        ModuleImage,
        ModuleUnload,
        ModuleFunction,
        ModuleGlobal,
        FunctionAttribute,
        Occupancy,
        OccupancyBlock,
        StreamSync,
        StreamCreate,
        StreamDestroy,
        StreamQuery,
        StreamWaitEvent,
        StreamPriorities,
        EventCreate,
        EventDestroy,
        EventRecord,
        EventSync,
        EventQuery,
        EventElapsed,
    )
    .into()
}

/// What `Debug` would show of a cell's fields, read from the pattern at the offsets that the cell gives.
fn expected(cell: &str) -> (String, usize) {
    let fields = cell.split(';').next().unwrap_or_default();
    // The types `[u8; 32]` and `[u32; 3]` have a semicolon of their own.
    let fields = if cell.contains('[') { cell.split("; variable").next().unwrap() } else { fields };
    let (mut shown, mut end) = (Vec::new(), 0);
    for field in fields.split(", ").filter(|field| field.contains('@')) {
        let (name, rest) = field.split_once(": ").unwrap();
        let (kind, offset) = rest.split_once(" @ ").unwrap();
        assert_eq!(offset.trim().parse(), Ok(end), "{field} leaves a gap");
        let (value, length) = value(kind, &pattern(100)[end..]);
        shown.push(format!("{}: {value}", name.trim()));
        end += length;
    }
    (shown.join(", "), end)
}

fn value(kind: &str, bytes: &[u8]) -> (String, usize) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    match kind {
        "u32" => (word(0).to_string(), 4),
        "i32" => ((word(0) as i32).to_string(), 4),
        "f32" => (format!("{:?}", f32::from_bits(word(0))), 4),
        "u64" => ((u64::from(word(0)) | u64::from(word(4)) << 32).to_string(), 8),
        "[u32; 3]" => (format!("{:?}", [word(0), word(4), word(8)]), 12),
        "[u8; 32]" => (format!("{:?}", &bytes[..32]), 32),
        other => panic!("PROTOCOL.md has a field of the type {other}"),
    }
}

/// The fields of a `Debug` text: what is between its braces.
fn between_braces(shown: &str) -> &str {
    let inner = shown.split_once(" { ").and_then(|(_, rest)| rest.strip_suffix(" }"));
    inner.unwrap_or_default()
}

#[test]
fn the_table_of_calls_has_each_call_with_its_fields() {
    let table = DOCUMENT.split("### Calls").nth(1).unwrap().split("### What ends").next().unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| 0x"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let codes: Vec<u16> =
        rows.iter().map(|row| u16::from_str_radix(row[1].strip_prefix("0x").unwrap(), 16).unwrap()).collect();
    assert_eq!(codes, OPS);
    let calls = in_the_code();
    assert_eq!(calls.iter().map(|call| call.op).collect::<Vec<_>>(), OPS);
    for (row, call) in rows.iter().zip(calls) {
        assert_eq!(calls::name(call.op), Some(row[2]));
        for (shown, cell) in [(&call.fields, row[3]), (&call.reply, row[5])] {
            assert_eq!(
                (between_braces(&shown.0), shown.1),
                (expected(cell).0.as_str(), expected(cell).1),
                "{row:?}"
            );
        }
    }
}

#[test]
fn the_numbers_of_the_document_are_the_codes() {
    use hip_protocol::{envelope, header, v1};
    let written = |number: usize| {
        let digits = number.to_string();
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
        groups.join(",")
    };
    for number in [header::MAX_PAYLOAD as usize, message::MAX_CHUNK, v1::MAX_DATA, envelope::LANES.into()] {
        assert!(DOCUMENT.contains(&written(number)), "{number}");
    }
    for (flag, name) in [
        (envelope::NO_REPLY, "NO_REPLY"),
        (envelope::ERROR, "ERROR"),
        (envelope::CHUNK, "CHUNK"),
        (envelope::DEFERRED, "DEFERRED"),
    ] {
        assert!(DOCUMENT.contains(&format!("| {flag} | {name} |")), "{name}");
    }
}

/// The messages in the document's code block of version 1 are what the code reads and writes.
#[test]
fn the_example_of_version_1_is_true() {
    use hip_protocol::v1::{Answer, MALLOC, Reply, Request};
    let block = DOCUMENT.rsplit_once("its reply:").unwrap().1;
    let bytes: Vec<u8> = block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    let mut written = Vec::new();
    Request::Malloc { size: 1_048_576 }.put(7, &mut written);
    Reply { status: 0, answer: Answer::Pointer(0x7f8a_4000_0000) }.put(MALLOC, 7, &mut written);
    assert_eq!(bytes, written);
}
