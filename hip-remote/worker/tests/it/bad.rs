//! Clients that break the protocol: each is told why, and no other is touched.

use hip_protocol::calls::*;
use hip_protocol::envelope::{CHUNK, Envelope, NO_REPLY};
use hip_protocol::header::{Header, MAX_PAYLOAD, VERSION_1, VERSION_2};
use hip_protocol::message;

use crate::client::{Client, Failed, to};
use crate::modules::launch;
use crate::worker::Worker;

/// A message with any payload behind its envelope.
fn raw(op: u16, id: u32, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    message::put(op, id, Envelope { flags, lane: 0, status: 0 }, &(), payload, &mut out);
    out
}

fn header(version: u16, op: u16, length: u32) -> Vec<u8> {
    Header { version, op, id: 1, length }.bytes().to_vec()
}

#[test]
fn a_client_that_breaks_the_protocol_is_told_and_no_other_is_touched() {
    let worker = Worker::start(&[], &[]);
    let mut good = worker.client();
    let pointer = good.malloc(100);
    let malloc = 8_u64.to_le_bytes();
    let upload = |client: &mut Client| client.send(to(0, 10, 0), NO_REPLY, &[]);
    type Send = Box<dyn Fn(&mut Client)>;
    let send = |bytes: Vec<u8>| -> Send { Box::new(move |client| drop(client.write(&bytes))) };
    let cases: Vec<(&str, Send)> = vec![
        ("too few", send(raw(Malloc::OP, 1, 0, &malloc[..7]))),
        ("too many", send(raw(Malloc::OP, 1, 0, &[malloc.as_slice(), &[0]].concat()))),
        ("no message", send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec())),
        ("no message", send(header(3, 1, 0))),
        ("no message", send([header(VERSION_2, 1, 3), vec![0; 3]].concat())),
        ("no message", send(header(VERSION_2, 1, MAX_PAYLOAD + 1))),
        ("version 1", send(header(VERSION_1, 1, 0))),
        ("no message", send(raw(Ping::OP, 1, 0x80, &[]))),
        ("second time", send(raw(Hello::OP, 1, 0, &[0; 44]))),
        ("expects none", send(raw(HostToDevice::OP, 9, CHUNK, b"x"))),
        (
            "10 bytes to come",
            Box::new(move |client| {
                let id = upload(client);
                let _ = client.chunk(HostToDevice::OP, id, &[0; 11]);
            }),
        ),
        (
            "0 bytes",
            Box::new(move |client| {
                let id = upload(client);
                let _ = client.chunk(HostToDevice::OP, id, &[]);
            }),
        ),
        (
            "100 bytes to come",
            Box::new(move |client| {
                let id = client.send(ModuleImage { sha256: [0; 32], bytes: 100 }, 0, &[]);
                let _ = client.chunk(ModuleImage::OP, id, &[0; 200]);
            }),
        ),
        (
            "more than 4096 requests",
            Box::new(move |client| {
                for _ in 0..4097 {
                    upload(client);
                }
            }),
        ),
        (
            "another operation or lane",
            Box::new(move |client| {
                let id = upload(client);
                let _ = client.chunk(ModuleImage::OP, id, &[0; 10]);
            }),
        ),
        (
            "another operation or lane",
            Box::new(move |client| {
                let id = upload(client);
                client.lane = 1;
                let _ = client.chunk(HostToDevice::OP, id, &[0; 10]);
            }),
        ),
        (
            "the lane 4096",
            Box::new(|client| {
                client.lane = 4096;
                client.send(Ping {}, 0, &[]);
            }),
        ),
    ];
    for (words, send) in cases {
        let mut client = worker.client();
        send(&mut client);
        let sentence = client.closed();
        assert!(sentence.contains(words), "{words}: {sentence}");
    }
    assert_eq!(good.get(pointer, 100).len(), 100);
}

#[test]
fn every_call_of_every_length_is_answered_or_ends_its_own_client() {
    let worker = Worker::start(&[], &[]);
    let mut good = worker.client();
    for op in OPS.iter().copied().chain([0x7777]) {
        for length in [0, 1, 3, 4, 7, 8, 12, 16, 24, 40, 48, 56, 100] {
            let mut client = worker.client();
            let _ = client.write(&raw(op, 1, 0, &vec![0xff; length]));
            // The connection ends by what comes next, whatever the call did.
            let _ = client.write(b"no message, of sixteen bytes");
            client.closed();
        }
        good.call(Ping {}).unwrap();
    }
    assert_eq!(good.call_with(Ping {}, &[]), Ok(()));
}

#[test]
fn a_client_that_goes_on_while_its_lane_waits_or_without_credit_is_told() {
    let worker = Worker::start(&["--in-flight", "2MiB"], &[("TEST_GPU_SLOW_MS", "60000")]);
    let mut client = worker.client();
    launch(&mut client);
    // In one piece: the worker may close the connection before the last one.
    client.write(&raw(DeviceSync::OP, 1000, 0, &[]).repeat(3)).unwrap();
    let sentence = client.closed();
    assert!(sentence.contains("further call that waits"), "{sentence}");
    let mut client = worker.client();
    let bytes = 4 << 20;
    let pointer = client.malloc(bytes);
    launch(&mut client);
    let id = client.send(to(pointer, bytes, 0), NO_REPLY, &[]);
    for _ in 0..4 {
        let _ = client.chunk(HostToDevice::OP, id, &[0; 1 << 20]);
    }
    let sentence = client.closed();
    assert!(sentence.contains("without credit"), "{sentence}");
}

#[test]
fn a_call_that_the_worker_does_not_know_is_not_supported() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    client.write(&raw(0x7777, 5, NO_REPLY, &[1, 2, 3])).unwrap();
    assert_eq!(client.call(MemoryInfo {}).map(drop), Err(Failed::Earlier(801)));
}

#[test]
fn the_first_message_must_be_hello() {
    let worker = Worker::start(&[], &[]);
    let mut client = Client::connect(&worker.address(), None);
    client.write(&raw(Malloc::OP, 1, 0, &[0; 8])).unwrap();
    assert!(client.closed().contains("Hello"));
}
