//! What the connection does with what a worker sends, shown by a worker of the tests that sends whatever a test wants.

use std::io::{IoSlice, PipeReader, Read as _, Write as _, pipe};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hip_protocol::calls::{
    Call, Close, Credit, DeviceToHost, EventRecord, Hello, HostToDevice, LaneEnd, Malloc, MemoryInfo, Output,
    Ping, StreamSync, Welcome,
};
use hip_protocol::envelope::{CHUNK, DEFERRED, ERROR, Envelope, NO_REPLY};
use hip_protocol::field::Field;
use hip_protocol::message;
use hip_transport::{Address, Message, Reader, Writer};

use super::{Connection, NoWorker, Rows, open};
use crate::error::HipError;

/// The least that a client takes.
const WINDOW: u64 = 2 << 20;

/// A worker's side of a connection that has begun.
pub(crate) struct Worker {
    reader: Reader,
    writer: Writer,
}

impl Worker {
    /// The next message, a heartbeat too, and its bytes.
    fn take(&mut self) -> (Message, Vec<u8>) {
        let message = self.reader.next().unwrap();
        let payload = self.reader.bytes(message.length).unwrap().to_vec();
        (message, payload)
    }

    /// The next message, which must be this call.
    pub(crate) fn expect<C: Call>(&mut self) -> Message {
        let (message, _) = self.take();
        assert_eq!(message.op, C::OP, "{message:?}");
        message
    }

    fn send(&mut self, op: u16, id: u32, envelope: Envelope, fields: &impl Field, variable: &[u8]) {
        let mut bytes = Vec::new();
        message::put(op, id, envelope, fields, variable, &mut bytes);
        self.writer.write(&mut [IoSlice::new(&bytes)]).unwrap();
    }

    pub(crate) fn reply(&mut self, to: &Message, fields: &impl Field) {
        let envelope = Envelope { lane: to.envelope.lane, ..Envelope::default() };
        self.send(to.op, to.id, envelope, fields, &[]);
    }

    fn chunk(&mut self, of: &Message, bytes: &[u8]) {
        self.send(of.op, of.id, Envelope { flags: CHUNK, lane: of.envelope.lane, status: 0 }, &(), bytes);
    }
}

/// A worker that says welcome and then does what the test wants.
pub(crate) fn listen<T: Send + 'static>(
    path: &Path,
    act: impl FnOnce(Worker) -> T + Send + 'static,
) -> JoinHandle<T> {
    listen_with(path, WINDOW, act)
}

fn listen_with<T: Send + 'static>(
    path: &Path,
    window: u64,
    act: impl FnOnce(Worker) -> T + Send + 'static,
) -> JoinHandle<T> {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let (reader, writer) = hip_transport::accept(stream.into(), None, Duration::from_secs(5)).unwrap();
        let mut worker = Worker { reader, writer };
        let hello = worker.expect::<Hello>();
        worker.reply(&hello, &Welcome { window, driver: 1, runtime: 2, devices: 1 });
        act(worker)
    })
}

/// Connects to such a worker.
fn with<T: Send + 'static>(
    act: impl FnOnce(Worker) -> T + Send + 'static,
) -> (Arc<Connection>, JoinHandle<T>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worker");
    let worker = listen(&path, act);
    let address = Address::parse(&format!("unix:{}", path.display())).unwrap();
    let (connection, welcome) = open(&address, None, 0).unwrap();
    assert_eq!(welcome.runtime, 2);
    (connection, worker)
}

#[test]
fn a_thread_that_waits_stalls_no_other() {
    let (sender, has_the_wait) = channel();
    let (connection, worker) = with(move |mut worker| {
        let waits = worker.expect::<StreamSync>();
        sender.send(()).unwrap();
        let quick = worker.expect::<MemoryInfo>();
        worker.reply(&quick, &hip_protocol::calls::Memory { free: 1, total: 2 });
        worker.expect::<EventRecord>();
        worker.reply(&waits, &());
    });
    let quick = connection.sit().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let waits = connection.sit().unwrap();
            connection.call(&waits, &StreamSync { stream: 0 }, &[])
        });
        // The worker takes the wait first, so that the other thread's reply is read by the one that waits.
        has_the_wait.recv().unwrap();
        let (memory, _) = connection.call(&quick, &MemoryInfo {}, &[]).unwrap();
        assert_eq!(memory.total, 2);
        connection.send(&quick, &EventRecord { event: 1, stream: 0 }, &[]).unwrap();
        waiting.join().unwrap().unwrap();
    });
    worker.join().unwrap();
    connection.close();
}

#[test]
fn a_call_without_a_reply_leaves_by_itself_and_in_its_order() {
    let (connection, worker) = with(|mut worker| {
        let one_way: Vec<_> = (0..100).map(|_| worker.take()).collect();
        let sync = worker.expect::<StreamSync>();
        worker.reply(&sync, &());
        one_way
    });
    let desk = connection.sit().unwrap();
    for event in 0..100 {
        connection.send(&desk, &EventRecord { event, stream: 0 }, &[]).unwrap();
    }
    connection.call(&desk, &StreamSync { stream: 0 }, &[]).unwrap();
    for ((message, payload), event) in worker.join().unwrap().iter().zip(0..) {
        assert!(message.envelope.has(NO_REPLY));
        let (call, _) = message::fields::<EventRecord>(message.op, payload).unwrap();
        assert_eq!(call.event, event);
    }
    connection.close();
}

#[test]
fn an_earlier_failure_waits_for_a_call_that_makes_nothing() {
    let (connection, worker) = with(|mut worker| {
        let malloc = worker.expect::<Malloc>();
        let envelope = Envelope { flags: ERROR | DEFERRED, lane: malloc.envelope.lane, status: 719 };
        worker.send(malloc.op, malloc.id, envelope, &hip_protocol::calls::Allocation { pointer: 4096 }, &[]);
        for _ in 0..2 {
            let sync = worker.expect::<StreamSync>();
            worker.reply(&sync, &());
        }
    });
    let desk = connection.sit().unwrap();
    let (made, _) = connection.call(&desk, &Malloc { bytes: 1 }, &[]).unwrap();
    assert_eq!(made.pointer, 4096);
    let sync = StreamSync { stream: 0 };
    assert_eq!(connection.call(&desk, &sync, &[]), Err(HipError::LAUNCH_FAILURE));
    assert!(connection.call(&desk, &sync, &[]).is_ok());
    worker.join().unwrap();
    connection.close();
}

#[test]
fn a_copy_sends_no_more_than_the_worker_has_room_for() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<HostToDevice>();
        let (first, bytes) = worker.take();
        assert!(first.envelope.has(CHUNK) && first.id == copy.id);
        assert_eq!(bytes, [7; 500_000]);
        for _ in 0..3 {
            worker.take();
        }
        // 97,152 bytes of room are left, and the fifth chunk has 500,000.
        assert!(!worker.reader.poll(Duration::from_millis(100)).unwrap());
        worker.send(Credit::OP, 0, Envelope::default(), &Credit { bytes: 500_000 }, &[]);
        let (fifth, _) = worker.take();
        assert!(fifth.envelope.has(CHUNK));
        worker.reply(&copy, &());
    });
    let desk = connection.sit().unwrap();
    let memory = vec![7u8; 3_000_000];
    let from = Rows { address: memory.as_ptr() as usize, pitch: 600_000, width: 500_000, height: 5 };
    let call = HostToDevice { pointer: 1, pitch: 500_000, width: 500_000, height: 5, stream: 0 };
    connection.upload(&desk, &call, &from, true).unwrap();
    worker.join().unwrap();
    connection.close();
}

#[test]
fn a_worker_with_room_for_less_than_two_chunks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worker");
    let worker = listen_with(&path, WINDOW - 1, drop);
    let address = Address::parse(&format!("unix:{}", path.display())).unwrap();
    let Err(NoWorker::Unreachable(why)) = open(&address, None, 0) else { panic!("the client takes it") };
    assert!(why.contains("lets 2097151 bytes"), "{why}");
    worker.join().unwrap();
}

#[test]
fn what_a_copy_brings_fills_the_rows_and_not_the_gaps() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<DeviceToHost>();
        worker.chunk(&copy, &[1; 6]);
        worker.chunk(&copy, &[2; 6]);
        worker.reply(&copy, &());
    });
    let desk = connection.sit().unwrap();
    let mut memory = [0u8; 15];
    let to = Rows { address: memory.as_mut_ptr() as usize, pitch: 5, width: 4, height: 3 };
    let call = DeviceToHost { pointer: 1, pitch: 4, width: 12, height: 1, stream: 0 };
    connection.download(&desk, &call, &to, true).unwrap();
    assert_eq!(memory, [1, 1, 1, 1, 0, 1, 1, 2, 2, 0, 2, 2, 2, 2, 0]);
    worker.join().unwrap();
    connection.close();
}

#[test]
fn bytes_beyond_a_copy_end_the_connection_and_are_not_written() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<DeviceToHost>();
        worker.chunk(&copy, &[1; 9]);
        worker
    });
    let desk = connection.sit().unwrap();
    let mut memory = [0u8; 9];
    let to = Rows { address: memory.as_mut_ptr() as usize, pitch: 8, width: 8, height: 1 };
    let call = DeviceToHost { pointer: 1, pitch: 8, width: 8, height: 1, stream: 0 };
    assert_eq!(connection.download(&desk, &call, &to, true), Err(HipError::LOST));
    assert_eq!(memory, [0; 9]);
    drop(worker.join().unwrap());
}

#[test]
fn a_copy_that_is_not_whole_fails_though_the_worker_says_otherwise() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<DeviceToHost>();
        worker.chunk(&copy, &[1; 7]);
        worker.reply(&copy, &());
    });
    let desk = connection.sit().unwrap();
    let mut memory = [0u8; 8];
    let to = Rows { address: memory.as_mut_ptr() as usize, pitch: 8, width: 8, height: 1 };
    let call = DeviceToHost { pointer: 1, pitch: 8, width: 8, height: 1, stream: 0 };
    assert_eq!(connection.download(&desk, &call, &to, true), Err(HipError::UNKNOWN));
    worker.join().unwrap();
    connection.close();
}

#[test]
fn a_worker_that_closes_says_why_to_all_who_wait() {
    let (connection, worker) = with(|mut worker| {
        worker.expect::<StreamSync>();
        worker.expect::<StreamSync>();
        worker.send(Close::OP, 0, Envelope::default(), &(), b"the machine is\x1b switched off");
    });
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let desk = connection.sit().unwrap();
                assert_eq!(connection.call(&desk, &StreamSync { stream: 0 }, &[]), Err(HipError::LOST));
                assert_eq!(
                    connection.send(&desk, &EventRecord { event: 1, stream: 0 }, &[]),
                    Err(HipError::LOST)
                );
            });
        }
    });
    assert!(connection.why_lost().unwrap().contains("the machine is switched off"));
    worker.join().unwrap();
}

#[test]
fn a_worker_that_is_gone_is_noticed_while_no_thread_waits() {
    let (connection, worker) = with(drop);
    worker.join().unwrap();
    let noticed = (0..40).any(|_| {
        thread::sleep(Duration::from_millis(100));
        connection.is_lost()
    });
    assert!(noticed);
}

#[test]
fn a_file_under_the_number_of_a_closed_connection_stays_the_programs() {
    let (connection, worker) = with(|mut worker| drop(worker.reader.next()));
    let (ours, mut other) = UnixStream::pair().unwrap();
    let number = connection.socket().unwrap();
    // As closefrom() and a new socket do, and no other test gets the number meanwhile.
    // SAFETY: both descriptors are this test's.
    assert_eq!(unsafe { libc::dup2(ours.as_raw_fd(), number) }, number);
    drop(ours);
    worker.join().unwrap();
    let noticed = (0..40).any(|_| {
        thread::sleep(Duration::from_millis(100));
        connection.is_lost()
    });
    assert!(noticed && connection.why_lost().unwrap().contains("closed its descriptor"));
    connection.close();
    // Its threads let go of the socket, too.
    while Arc::strong_count(&connection) > 1 {
        thread::sleep(Duration::from_millis(10));
    }
    drop(connection);
    // SAFETY: the descriptor is a socket of this test, which nobody else closes.
    let mut ours = UnixStream::from(unsafe { OwnedFd::from_raw_fd(number) });
    ours.write_all(b"1").unwrap();
    drop(ours);
    let mut all = Vec::new();
    other.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"1");
}

#[test]
fn the_worker_knows_that_a_thread_ended_before_another_has_its_lane() {
    let (connection, worker) = with(|mut worker| {
        let ended = worker.expect::<LaneEnd>();
        let first = worker.expect::<EventRecord>();
        (ended.envelope.lane, first.envelope.lane)
    });
    let [first, second] = [connection.sit().unwrap(), connection.sit().unwrap()];
    connection.leave(&first);
    let third = connection.sit().unwrap();
    assert_eq!((first.lane, second.lane, third.lane), (0, 1, 0));
    connection.send(&third, &EventRecord { event: 1, stream: 0 }, &[]).unwrap();
    assert_eq!(worker.join().unwrap(), (0, 0));
}

fn rows(memory: &mut [u8]) -> Rows {
    Rows { address: memory.as_mut_ptr() as usize, pitch: memory.len(), width: memory.len(), height: 1 }
}

fn from_device(bytes: u64) -> DeviceToHost {
    DeviceToHost { pointer: 1, pitch: bytes, width: bytes, height: 1, stream: 0 }
}

#[test]
fn a_copy_in_the_background_that_fails_is_no_longer_under_way() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<DeviceToHost>();
        let failed = Envelope { flags: ERROR, lane: copy.envelope.lane, status: 1 };
        worker.send(copy.op, copy.id, failed, &(), &[]);
        let sync = worker.expect::<StreamSync>();
        let failed = Envelope { flags: ERROR | DEFERRED, ..failed };
        worker.send(sync.op, sync.id, failed, &(), &[]);
    });
    let desk = connection.sit().unwrap();
    let mut memory = [0u8; 8];
    let to = rows(&mut memory);
    connection.download(&desk, &from_device(8), &to, false).unwrap();
    assert!(connection.writes_to(to.address + 7, 1) && !connection.writes_to(to.address + 8, 1));
    let synced = connection.call(&desk, &StreamSync { stream: 0 }, &[]);
    assert_eq!(synced, Err(HipError::INVALID_VALUE));
    assert!(!connection.has_copies_under_way());
    worker.join().unwrap();
    connection.close();
}

#[test]
fn a_copy_of_too_many_in_the_background_waits() {
    let (connection, worker) = with(|mut worker| {
        for _ in 0..4096 {
            assert!(worker.expect::<DeviceToHost>().envelope.has(NO_REPLY));
        }
        let waits = worker.expect::<DeviceToHost>();
        assert!(!waits.envelope.has(NO_REPLY));
        worker.chunk(&waits, &[7]);
        worker.reply(&waits, &());
    });
    let desk = connection.sit().unwrap();
    let mut memory = [0u8];
    for _ in 0..4097 {
        connection.download(&desk, &from_device(1), &rows(&mut memory), false).unwrap();
    }
    assert_eq!(memory, [7]);
    worker.join().unwrap();
    connection.close();
}

/// Memory before a page that the process may not touch.
fn memory_with_an_end(bytes: usize) -> usize {
    let (kind, page) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 4096);
    // SAFETY: the kernel chooses where, and no other code has the last page's address.
    unsafe {
        let all =
            libc::mmap(std::ptr::null_mut(), bytes + page, libc::PROT_READ | libc::PROT_WRITE, kind, -1, 0);
        assert_eq!(libc::mprotect(all.add(bytes), page, libc::PROT_NONE), 0);
        all as usize
    }
}

#[test]
fn a_target_that_is_not_the_programs_fails_its_copy_alone() {
    const BYTES: usize = 300_000;
    let (connection, worker) = with(|mut worker| {
        for _ in 0..2 {
            let copy = worker.expect::<DeviceToHost>();
            worker.chunk(&copy, &[7; BYTES]);
            worker.chunk(&copy, &[8; 16]);
            worker.reply(&copy, &());
        }
    });
    let desk = connection.sit().unwrap();
    // More than comes together with a prefix, which no system call writes.
    let address = memory_with_an_end(128 * 1024);
    let to = Rows { address, pitch: BYTES + 16, width: BYTES + 16, height: 1 };
    let call = from_device(BYTES as u64 + 16);
    assert_eq!(connection.download(&desk, &call, &to, true), Err(HipError::INVALID_VALUE));
    let mut memory = vec![0u8; BYTES + 16];
    connection.download(&desk, &call, &rows(&mut memory), true).unwrap();
    assert!(memory[..BYTES].iter().all(|byte| *byte == 7) && memory[BYTES..] == [8; 16]);
    worker.join().unwrap();
    connection.close();
}

#[test]
fn memory_that_is_not_the_programs_fails_its_copy_alone() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<HostToDevice>();
        let (chunk, bytes) = worker.take();
        assert!(chunk.envelope.has(CHUNK) && chunk.id == copy.id);
        worker.reply(&copy, &());
        let sync = worker.expect::<StreamSync>();
        worker.reply(&sync, &());
        bytes
    });
    let desk = connection.sit().unwrap();
    // The first page of a process is never mapped.
    let nowhere = Rows { address: 8, pitch: 2000, width: 2000, height: 1 };
    let call = HostToDevice { pointer: 1, pitch: 2000, width: 2000, height: 1, stream: 0 };
    assert_eq!(connection.upload(&desk, &call, &nowhere, true), Err(HipError::INVALID_VALUE));
    assert!(connection.call(&desk, &StreamSync { stream: 0 }, &[]).is_ok());
    assert_eq!(worker.join().unwrap(), [0; 2000]);
    connection.close();
}

/// What C's stdout brings while a test's body runs.
fn printed(body: impl FnOnce()) -> Vec<u8> {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    let (mut reader, writer): (PipeReader, _) = pipe().unwrap();
    // SAFETY: the descriptors are the process's, and each is closed once; the C library has its stream for ever.
    unsafe {
        let before = libc::dup(1);
        assert_eq!(libc::dup2(writer.as_raw_fd(), 1), 1);
        drop(writer);
        body();
        libc::fflush(stdout);
        assert_eq!(libc::dup2(before, 1), 1);
        libc::close(before);
    }
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    all
}

#[test]
fn what_kernels_print_is_the_programs_output_when_a_wait_ends() {
    let (connection, worker) = with(|mut worker| {
        let sync = worker.expect::<StreamSync>();
        for text in [b"one ".as_slice(), b"and\0two"] {
            worker.send(Output::OP, 0, Envelope::default(), &(), text);
        }
        worker.reply(&sync, &());
    });
    let desk = connection.sit().unwrap();
    let all = printed(|| assert!(connection.call(&desk, &StreamSync { stream: 0 }, &[]).is_ok()));
    // Other tests of this process may print, too.
    assert!(all.windows(11).any(|text| text == b"one and\0two"), "{all:?}");
    worker.join().unwrap();
    connection.close();
}

#[test]
fn a_worker_that_takes_no_calls_and_says_nothing_is_dead() {
    let (connection, worker) = with(|worker| worker);
    let desk = connection.sit().unwrap();
    let begin = Instant::now();
    // The outbox and the socket are full long before: the thread waits for the network.
    while connection.send(&desk, &EventRecord { event: 1, stream: 0 }, &[]).is_ok() {}
    assert!(begin.elapsed() > Duration::from_secs(7) && begin.elapsed() < Duration::from_secs(10));
    drop(worker.join().unwrap());
}

#[test]
fn a_worker_lives_while_a_long_chunk_comes_slowly() {
    let (connection, worker) = with(|mut worker| {
        let copy = worker.expect::<DeviceToHost>();
        let mut bytes = Vec::new();
        let envelope = Envelope { flags: CHUNK, lane: copy.envelope.lane, status: 0 };
        message::put(copy.op, copy.id, envelope, &(), &[7; 40], &mut bytes);
        for part in bytes.chunks(16) {
            worker.writer.write(&mut [IoSlice::new(part)]).unwrap();
            thread::sleep(Duration::from_millis(2500));
        }
        worker.reply(&copy, &());
        worker
    });
    let desk = connection.sit().unwrap();
    let mut memory = [0u8; 40];
    connection.download(&desk, &from_device(40), &rows(&mut memory), true).unwrap();
    assert_eq!(memory, [7; 40]);
    let mut worker = worker.join().unwrap();
    // Meanwhile the client has said that it lives.
    worker.expect::<Ping>();
    connection.close();
}
