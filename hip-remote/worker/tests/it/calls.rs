//! Memory, copies, streams and events.

use std::time::Instant;

use hip_protocol::calls::*;
use hip_protocol::envelope::{CHUNK, Envelope, NO_REPLY};
use hip_protocol::message::{self, MAX_CHUNK};

use crate::client::{Failed, from, pattern, to};
use crate::modules::{NOT_READY, SLOW, launch, launch_on};
use crate::worker::{Worker, eventually};

const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const INVALID_POINTER: i32 = 17;
const INVALID_DEVICE: i32 = 101;
const INVALID_HANDLE: i32 = 400;

#[test]
fn a_copy_comes_back_as_it_went() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let bytes = pattern(5 * MAX_CHUNK + 123);
    let pointer = client.malloc(bytes.len() as u64 + 1);
    client.put(pointer + 1, &bytes);
    assert!(client.get(pointer + 1, bytes.len() as u64) == bytes);
    assert_eq!(client.call(Free { pointer }), Ok(()));
}

#[test]
fn a_copy_that_nobody_waits_for_arrives_before_the_reply_of_the_wait() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let bytes = pattern(3 * MAX_CHUNK);
    let pointer = client.malloc(bytes.len() as u64);
    client.upload(to(pointer, bytes.len() as u64, PER_THREAD), NO_REPLY, &bytes, MAX_CHUNK);
    let ids: Vec<u32> =
        (0..3).map(|_| client.one_way(from(pointer, bytes.len() as u64, PER_THREAD))).collect();
    client.sync(PER_THREAD).unwrap();
    for id in ids {
        assert!(client.chunks[&id] == bytes);
    }
}

#[test]
fn rows_with_gaps_are_copied_and_set_without_the_gaps() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let pointer = client.malloc(1000 * 64);
    client.put(pointer, &[7; 1000 * 64]);
    let rows = pattern(600 * 64);
    let call = HostToDevice { pointer, pitch: 1000, width: 600, height: 64, stream: 0 };
    let id = client.upload(call, 0, &rows, 600 * 5);
    client.reply::<HostToDevice>(id).unwrap();
    client.one_way(Memset {
        pointer: pointer + 700,
        pitch: 1000,
        value: 0x1234,
        element: 1,
        width: 100,
        height: 64,
        stream: 0,
    });
    let wide = Memset { pointer, pitch: 1000, value: 0x1234, element: 2, width: 50, height: 1, stream: 0 };
    assert_eq!(client.call(Memset { height: 64, ..wide }), Err(Failed::Now(INVALID_VALUE)));
    client.one_way(Memset { pointer: pointer + 800, ..wide });
    let id = client.send(DeviceToHost { pointer, pitch: 1000, width: 600, height: 64, stream: 0 }, 0, &[]);
    client.reply::<DeviceToHost>(id).unwrap();
    assert!(client.chunks[&id] == rows);
    let all = client.get(pointer, 1000 * 64);
    for (row, expected) in all.chunks(1000).zip(rows.chunks(600)) {
        assert_eq!(&row[..600], expected);
        assert_eq!(&row[600..700], [7; 100]);
        assert_eq!(&row[700..800], [0x34; 100]);
        assert_eq!(&row[900..], [7; 100]);
    }
    assert_eq!(all[800..900], [0x34, 0x12].repeat(50));
    assert_eq!(all[1800..1900], [7; 100]);
    let other = client.malloc(600 * 64);
    let call = DeviceToDevice {
        to: other,
        to_pitch: 600,
        from: pointer,
        from_pitch: 1000,
        width: 600,
        height: 64,
        stream: 0,
    };
    client.one_way(call);
    assert!(client.get(other, 600 * 64) == rows);
}

#[test]
fn more_small_copies_than_the_window_has_bytes_get_their_credit_back() {
    let worker = Worker::start(&["--in-flight", "2MiB"], &[]);
    let mut client = worker.client();
    let window = client.welcome.unwrap().window;
    assert_eq!(window, 2 << 20);
    let pointer = client.malloc(1 << 20);
    let mut sent = 0;
    for round in 0..5_000_u64 {
        let bytes = pattern(1 + (round as usize * 37) % 5000);
        while sent + bytes.len() as u64 > window + client.credit {
            client.call(Ping {}).unwrap();
        }
        client.upload(
            to(pointer + round % 7, bytes.len() as u64, [0, PER_THREAD][round as usize % 2]),
            NO_REPLY,
            &bytes,
            MAX_CHUNK,
        );
        sent += bytes.len() as u64;
    }
    client.call(DeviceSync {}).unwrap();
    assert!(sent > 4 * window);
}

#[test]
fn the_pointers_of_one_client_are_refused_from_another() {
    let worker = Worker::start(&[], &[]);
    let (mut one, mut other) = (worker.client(), worker.client());
    let pointer = one.malloc(4096);
    let stream = one.call(StreamCreate { flags: 0, priority: 0 }).unwrap().stream;
    let event = one.call(EventCreate { flags: 0 }).unwrap().event;
    one.call(EventRecord { event, stream }).unwrap();
    assert_eq!(other.call(from(pointer, 1, 0)), Err(Failed::Now(INVALID_POINTER)));
    let id = other.upload(to(pointer, 10, 0), 0, &[1; 10], MAX_CHUNK);
    assert_eq!(other.reply::<HostToDevice>(id), Err(Failed::Now(INVALID_POINTER)));
    assert_eq!(other.call(Free { pointer }), Err(Failed::Now(INVALID_VALUE)));
    let own = other.malloc(4096);
    for (to, from) in [(own, pointer), (pointer, own)] {
        let call = DeviceToDevice { to, to_pitch: 1, from, from_pitch: 1, width: 1, height: 1, stream: 0 };
        assert_eq!(other.call(call), Err(Failed::Now(INVALID_POINTER)));
    }
    let set = Memset { pointer, pitch: 1, value: 1, element: 1, width: 1, height: 1, stream: 0 };
    assert_eq!(other.call(set), Err(Failed::Now(INVALID_POINTER)));
    assert_eq!(other.sync(stream), Err(Failed::Now(INVALID_HANDLE)));
    assert_eq!(other.call(EventSync { event }), Err(Failed::Now(INVALID_HANDLE)));
    assert_eq!(other.call(StreamDestroy { stream }), Err(Failed::Now(INVALID_HANDLE)));
    assert_eq!(one.get(pointer, 1).len(), 1);
    assert_eq!(one.sync(stream), Ok(()));
}

#[test]
fn the_failure_of_a_one_way_call_comes_with_the_next_reply_of_its_lane() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    client.one_way(Free { pointer: 12345 });
    client.one_way(StreamDestroy { stream: 99 });
    client.lane = 1;
    client.call(Ping {}).unwrap();
    client.sync(0).unwrap();
    client.lane = 0;
    client.call(Ping {}).unwrap();
    assert_eq!(
        client.call(Free { pointer: 5 }),
        Err(Failed::Now(INVALID_VALUE)),
        "a call's own failure comes first"
    );
    assert_eq!(client.call(MemoryInfo {}).map(drop), Err(Failed::Earlier(INVALID_VALUE)));
    client.sync(0).unwrap();
}

#[test]
fn a_thread_that_ended_leaves_no_failure_and_no_device_to_the_next_on_its_lane() {
    let worker = Worker::start(&[], &[("TEST_GPU_DEVICES", "2")]);
    let mut client = worker.client();
    let before = client.call(MemoryInfo {}).unwrap();
    client.one_way(SetDevice { device: 1 });
    client.one_way(Free { pointer: 12345 });
    client.one_way(LaneEnd {});
    client.sync(0).unwrap();
    client.malloc(1 << 20);
    assert_eq!(client.call(MemoryInfo {}).unwrap().free, before.free - (1 << 20));
    client.lane = 1;
    assert_eq!(client.call(SetDevice { device: 1 }), Ok(()));
    assert_eq!(client.call(MemoryInfo {}).unwrap().free, before.free);
}

#[test]
fn a_copy_that_nobody_waits_for_and_that_fails_is_named() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let id = client.one_way(from(4096, 1, 0));
    assert_eq!(client.sync(0), Err(Failed::Earlier(INVALID_POINTER)));
    assert_eq!(client.failed, [id]);
    client.sync(0).unwrap();
}

#[test]
fn a_worker_says_every_two_seconds_that_it_lives() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    client.beat();
    let begun = Instant::now();
    client.beat();
    client.beat();
    // A client takes its worker for dead after 8 s.
    assert!((3..8).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn each_lane_has_its_device_and_its_stream() {
    let worker = Worker::start(&[], &[("TEST_GPU_DEVICES", "2")]);
    let mut client = worker.client();
    assert_eq!(client.call(DeviceCount {}).unwrap().devices, 2);
    client.one_way(SetDevice { device: 1 });
    let before = client.call(MemoryInfo {}).unwrap();
    client.malloc(1 << 20);
    assert_eq!(client.call(MemoryInfo {}).unwrap().free, before.free - (1 << 20));
    client.lane = 1;
    assert_eq!(client.call(MemoryInfo {}).unwrap().free, before.free, "the other device has all its memory");
    assert_eq!(client.call(SetDevice { device: 2 }), Err(Failed::Now(INVALID_DEVICE)));
    client.sync(PER_THREAD).unwrap();
    client.lane = 0;
    client.call(DeviceReset {}).unwrap();
    client.sync(PER_THREAD).unwrap();
    assert_eq!(client.call(MemoryInfo {}).unwrap().free, before.free);
}

#[test]
fn a_client_gets_no_more_memory_than_it_may() {
    let worker = Worker::start(&["--memory", "1MiB"], &[]);
    let mut client = worker.client();
    assert_eq!(client.call(Malloc { bytes: u64::MAX }), Err(Failed::Now(OUT_OF_MEMORY)));
    let pointer = client.malloc(1 << 20);
    assert_eq!(client.call(Malloc { bytes: 1 }), Err(Failed::Now(OUT_OF_MEMORY)));
    worker.logs("limit of 1048576 bytes on device 0: --memory");
    let memory = client.call(MemoryInfo {}).unwrap();
    assert_eq!((memory.free, memory.total), (0, 1 << 20));
    client.one_way(Free { pointer });
    client.malloc(1 << 20);
}

#[test]
fn memory_that_is_being_freed_is_waited_for() {
    let worker = Worker::start(&[], &[("TEST_GPU_MEMORY", "0x1000000")]);
    let mut client = worker.client();
    for _ in 0..200 {
        let pointer = client.malloc(0xf0_0000);
        client.one_way(Memset {
            pointer,
            pitch: 1,
            value: 1,
            element: 1,
            width: 0xf0_0000,
            height: 1,
            stream: 0,
        });
        client.one_way(Free { pointer });
    }
}

#[test]
fn memory_counts_until_the_device_has_freed_it() {
    let worker = Worker::start(&["--memory", "1MiB"], &[("TEST_GPU_SLOW_MS", SLOW)]);
    let mut client = worker.client();
    let pointer = client.malloc(1 << 20);
    launch(&mut client);
    client.one_way(Free { pointer });
    client.lane = 1;
    assert_eq!(client.call(StreamQuery { stream: 0 }), Err(NOT_READY), "the reader goes on");
    client.malloc(1 << 20);
    assert_eq!(client.call(StreamQuery { stream: 0 }), Ok(()));
}

#[test]
fn a_wait_for_a_stream_that_was_destroyed_stalls_no_other_lane() {
    let worker = Worker::start(&[], &[("TEST_GPU_SLOW_MS", SLOW)]);
    let mut client = worker.client();
    let stream = client.call(StreamCreate { flags: 1, priority: 0 }).unwrap().stream;
    let event = client.call(EventCreate { flags: 0 }).unwrap().event;
    launch_on(&mut client, stream);
    client.one_way(EventRecord { event, stream });
    client.one_way(StreamDestroy { stream });
    let sync = client.send(DeviceSync {}, 0, &[]);
    client.lane = 1;
    assert_eq!(client.call(EventQuery { event }), Err(NOT_READY));
    client.lane = 0;
    client.reply::<DeviceSync>(sync).unwrap();
    assert_eq!(client.call(EventQuery { event }), Ok(()));
}

#[test]
fn a_free_waits_for_no_other_device() {
    let worker = Worker::start(&[], &[("TEST_GPU_SLOW_MS", "60000"), ("TEST_GPU_DEVICES", "2")]);
    let mut client = worker.client();
    let first = client.malloc(1);
    launch(&mut client);
    client.one_way(Free { pointer: first });
    client.one_way(SetDevice { device: 1 });
    let second = client.malloc(1);
    client.call(Free { pointer: second }).unwrap();
    client.call(MemoryInfo {}).unwrap();
    client.lane = 1;
    assert_eq!(client.call(StreamQuery { stream: 0 }), Err(NOT_READY));
}

#[test]
fn a_reply_waits_for_nothing_that_is_still_to_come() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let pointer = client.malloc(4096);
    let mut bytes = Vec::new();
    message::request(&Malloc { bytes: 1 }, 1000, 0, 0, &[], &mut bytes);
    let whole = bytes.len();
    message::request(&Malloc { bytes: 1 }, 1001, 0, 0, &[], &mut bytes);
    let (now, later) = bytes.split_at(whole + 26);
    client.write(now).unwrap();
    client.reply::<Malloc>(1000).unwrap();
    client.write(later).unwrap();
    client.reply::<Malloc>(1001).unwrap();
    message::request(&to(pointer, 4096, 0), 1002, NO_REPLY, 0, &[], &mut bytes);
    let chunk = Envelope { flags: CHUNK, lane: 0, status: 0 };
    bytes.extend(message::prefix(HostToDevice::OP, 1002, chunk, 4096));
    client.write(&bytes).unwrap();
    client.reply::<Malloc>(1000).unwrap();
    client.reply::<Malloc>(1001).unwrap();
    client.write(&[5; 4096]).unwrap();
    assert_eq!(client.get(pointer, 4096), [5; 4096]);
}

#[test]
fn a_stream_that_stands_still_keeps_no_other_streams_credit() {
    let worker = Worker::start(&[], &[("TEST_GPU_SLOW_MS", SLOW)]);
    let mut client = worker.client();
    let (small, large) = (client.malloc(64), client.malloc(1 << 20));
    let [slow, quick] = [0; 2].map(|_| client.call(StreamCreate { flags: 1, priority: 0 }).unwrap().stream);
    launch_on(&mut client, slow);
    // The code object's has come back.
    client.credit = 0;
    client.upload(to(small, 64, slow), NO_REPLY, &[1; 64], MAX_CHUNK);
    let bytes = pattern(1 << 20);
    let mut sent = 64;
    for _ in 0..32 {
        sent += bytes.len() as u64;
        while sent > client.welcome.unwrap().window + client.credit {
            client.call(Ping {}).unwrap();
        }
        let id = client.upload(to(large, 1 << 20, quick), 0, &bytes, MAX_CHUNK);
        client.reply::<HostToDevice>(id).unwrap();
    }
    assert_eq!(client.call(StreamQuery { stream: slow }), Err(NOT_READY));
    let id = client.one_way(from(small, 64, slow));
    client.sync(slow).unwrap();
    assert_eq!(client.chunks[&id], [1; 64]);
}

#[test]
fn events_measure_and_order_streams() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let [one, two] = [0, 1].map(|_| client.call(StreamCreate { flags: 1, priority: 0 }).unwrap().stream);
    let [start, stop] = [0, 1].map(|_| client.call(EventCreate { flags: 0 }).unwrap().event);
    let bytes = 1 << 20;
    let (a, b) = (client.malloc(bytes), client.malloc(bytes));
    client.one_way(EventRecord { event: start, stream: one });
    client.one_way(Memset {
        pointer: a,
        pitch: 1,
        value: 0x55,
        element: 1,
        width: bytes,
        height: 1,
        stream: one,
    });
    client.one_way(EventRecord { event: stop, stream: one });
    client.one_way(StreamWaitEvent { stream: two, event: stop, flags: 0 });
    client.one_way(DeviceToDevice {
        to: b,
        to_pitch: bytes,
        from: a,
        from_pitch: bytes,
        width: bytes,
        height: 1,
        stream: two,
    });
    let id = client.one_way(from(b, bytes, two));
    client.call(EventSync { event: stop }).unwrap();
    eventually("the time that is known brings what was copied until then", || {
        assert!(client.call(EventElapsed { start, stop }).unwrap().milliseconds >= 0.0);
        client.chunks.contains_key(&id)
    });
    client.sync(two).unwrap();
    assert!(client.chunks[&id] == vec![0x55; bytes as usize]);
    client.one_way(StreamDestroy { stream: two });
    client.one_way(EventDestroy { event: stop });
    assert_eq!(client.call(EventQuery { event: stop }), Err(Failed::Now(INVALID_HANDLE)));
    assert_eq!(client.call(StreamQuery { stream: two }), Err(Failed::Now(INVALID_HANDLE)));
    client.call(StreamQuery { stream: one }).unwrap();
}

#[test]
fn the_librarys_own_error_reaches_a_client_where_there_is_no_gpu() {
    let real = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";
    assert!(std::path::Path::new(real).exists(), "install it: apt-get install libamdhip64-5");
    if std::path::Path::new("/dev/kfd").exists() {
        return;
    }
    let worker = Worker::start(&["--hip-library", real], &[]);
    let mut client = worker.client();
    assert_eq!(client.welcome.unwrap().devices, 0);
    assert_eq!(client.call(DeviceCount {}).map(drop), Err(Failed::Now(100)));
    assert!(matches!(client.call(Malloc { bytes: 1 }), Err(Failed::Now(_))));
}

#[test]
fn chunks_of_several_copies_come_in_any_order_of_the_copies() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let bytes = pattern(3 << 20);
    let half = 100_000;
    let pointers = [0; 3].map(|_| client.malloc(1 << 20));
    let parts: Vec<&[u8]> = bytes.chunks(1 << 20).collect();
    let ids = pointers.map(|pointer| client.send(to(pointer, 1 << 20, 0), 0, &[]));
    for (id, part) in ids.iter().zip(&parts) {
        client.chunk(HostToDevice::OP, *id, &part[..half]).unwrap();
    }
    for (id, part) in ids.iter().zip(&parts).rev() {
        client.chunk(HostToDevice::OP, *id, &part[half..]).unwrap();
        client.reply::<HostToDevice>(*id).unwrap();
    }
    for (pointer, part) in pointers.iter().zip(&parts) {
        assert!(client.get(*pointer, 1 << 20) == *part);
    }
}
