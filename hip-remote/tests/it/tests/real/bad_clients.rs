use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hip_protocol::calls::{Free, Hello, HostToDevice, Launch, Malloc, ModuleLoad, StreamSync};
use hip_protocol::envelope::{CHUNK, Envelope, NO_REPLY};
use hip_protocol::header::{self, Header};
use hip_protocol::message;
use hip_remote_tests::{EVENTUALLY, Program, Steps, Worker, ended, until};

/// The address of the first allocation in a process whose environment has this variable.
const POINTER: u64 = 0x6000_0000_0000;
const FIRST_ALLOCATION: (&str, &str) = ("TEST_GPU_BASE", "0x600000000000");

/// One message of each kind, from Hello on. What it copies and frees is its own allocation, and each call is its lane's only one.
fn session() -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); 8];
    let token = [0; 32];
    message::request(&Hello { token, pid: 1, memory: 0 }, 1, 0, 0, b"a bad client", &mut all[0]);
    message::request(&Malloc { bytes: 4096 }, 2, 0, 0, b"", &mut all[1]);
    let copy = HostToDevice { pointer: POINTER, pitch: 64, width: 64, height: 1, stream: 0 };
    message::request(&copy, 3, 0, 1, b"", &mut all[2]);
    let chunk = Envelope { flags: CHUNK, lane: 1, status: 0 };
    message::put(0x20, 3, chunk, &(), &[7; 64], &mut all[3]);
    let launch = Launch { function: 1, grid: [1; 3], block: [1; 3], shared: 0, stream: 0 };
    message::request(&launch, 4, NO_REPLY, 2, &[0; 32], &mut all[4]);
    message::request(&ModuleLoad { sha256: [1; 32], bytes: 5 }, 5, 0, 3, b"", &mut all[5]);
    message::request(&Free { pointer: POINTER }, 6, NO_REPLY, 4, b"", &mut all[6]);
    message::request(&StreamSync { stream: 77 }, 7, 0, 5, b"", &mut all[7]);
    all
}

/// Sends bytes, ends sending, and waits until the worker closes.
fn send(worker: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(worker).unwrap();
    stream.set_read_timeout(Some(EVENTUALLY)).unwrap();
    // The worker may have closed already.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Sends bytes, and takes the id and the error of the worker's next messages. Sending ends after them: the worker answers no
/// call of a client that has closed.
fn replies<const COUNT: usize>(worker: &str, bytes: &[u8]) -> [(u32, i32); COUNT] {
    let mut stream = TcpStream::connect(worker).unwrap();
    stream.set_read_timeout(Some(EVENTUALLY)).unwrap();
    stream.write_all(bytes).unwrap();
    [(); COUNT].map(|()| {
        let mut header = [0; header::SIZE];
        stream.read_exact(&mut header).unwrap();
        let header = Header::parse(&header).unwrap();
        let mut payload = vec![0; header.length as usize];
        stream.read_exact(&mut payload).unwrap();
        (header.id, Envelope::take(&mut payload.as_slice()).unwrap().status)
    })
}

#[track_caller]
fn serves(worker: &Worker) {
    ended(&mut Program::on(&worker.tcp()).command([test_gpu::built::compile("vadd")])).well();
    worker.until_free(EVENTUALLY);
}

/// How many connections have a process before they say who they are, and how many wait for one (worker/src/supervisor.rs).
const STRANGERS: usize = 16;
const WAITING: usize = 256;

#[test]
fn real_1000_connections_are_refused_while_a_client_works() {
    let worker = Worker::start();
    let mut steps = Steps::on(&worker.tcp());
    assert!(steps.ask("malloc 1048576").starts_with("hipSuccess"));
    steps.begin("copies 30");
    let connections: Vec<_> = (0..1000).filter_map(|_| TcpStream::connect(worker.tcp()).ok()).collect();
    assert_eq!(steps.answer(), "hipSuccess");
    assert!(connections.len() > 900, "{} connections", connections.len());
    connections.iter().for_each(|connection| connection.set_nonblocking(true).unwrap());
    let refused = || connections.iter().filter(|connection| connection.peek(&mut [0]).is_ok()).count();
    until("all others are refused", EVENTUALLY, || {
        let processes = worker.clients().len();
        assert!(processes <= 1 + STRANGERS, "{processes} processes");
        refused() >= connections.len() - STRANGERS - WAITING
    });
    drop(connections);
    until("the strangers' processes are gone", EVENTUALLY, || worker.clients().len() == 1);
    drop(steps);
    serves(&worker);
}

#[test]
fn real_silent_connections_are_let_go_after_five_seconds() {
    let worker = Worker::start();
    let hello = session().remove(0);
    let mut all: Vec<TcpStream> = Vec::new();
    for bytes in [0, 1, 15, 16, 20, hello.len() - 1] {
        let mut stream = TcpStream::connect(worker.tcp()).unwrap();
        stream.write_all(&hello[..bytes]).unwrap();
        all.push(stream);
    }
    let begin = Instant::now();
    for mut stream in all {
        stream.set_read_timeout(Some(EVENTUALLY)).unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).unwrap();
    }
    assert!(begin.elapsed() > Duration::from_secs(4), "{:?}", begin.elapsed());
    serves(&worker);
}

#[test]
fn real_half_a_message_of_a_client_ends_after_the_silence() {
    let worker = Worker::with(["-p", "0", "--silence", "2"], []);
    let mut stream = TcpStream::connect(worker.tcp()).unwrap();
    let all = session();
    stream.write_all(&all[0]).unwrap();
    stream.write_all(&all[1][..20]).unwrap();
    stream.set_read_timeout(Some(EVENTUALLY)).unwrap();
    let begin = Instant::now();
    stream.read_to_end(&mut Vec::new()).unwrap();
    assert!(begin.elapsed() > Duration::from_millis(1500), "{:?}", begin.elapsed());
    serves(&worker);
}

#[test]
fn real_messages_that_are_cut_at_each_byte_end_their_client_alone() {
    let worker = Worker::with(["-p", "0"], [FIRST_ALLOCATION]);
    let mut steps = Steps::on(&worker.tcp());
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    let all = session();
    // A session that is whole reaches the GPU, and its last call is answered: there is no stream 77. Replies of different
    // lanes come in any order.
    let mut whole = replies(&worker.tcp(), &all.concat());
    whole.sort();
    assert_eq!(whole, [(1, 0), (2, 0), (3, 0), (5, 0), (7, 400)]);
    for (index, message) in all.iter().enumerate() {
        let before = all[..index].concat();
        // Each process of a client takes 10 ms: prefixes at each byte, and longer parts at some.
        for cut in (0..message.len()).filter(|cut| *cut < 26 || cut % 7 == 0) {
            send(&worker.tcp(), &[&before, &message[..cut]].concat());
        }
    }
    until("their processes are gone", EVENTUALLY, || worker.clients().len() == 1);
    assert_eq!(steps.ask("copies 3"), "hipSuccess");
}

#[test]
fn real_messages_with_a_changed_byte_or_in_another_order_end_their_client_alone() {
    let worker = Worker::with(["-p", "0"], [FIRST_ALLOCATION]);
    let mut steps = Steps::on(&worker.tcp());
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    let all = session();
    for index in 0..all.len() {
        for at in (0..28).filter(|at| *at < all[index].len()) {
            let mut changed = all.clone();
            changed[index][at] ^= 0x81;
            send(&worker.tcp(), &changed.concat());
        }
        let mut longer = all.clone();
        longer[index].extend_from_slice(b"more");
        send(&worker.tcp(), &longer.concat());
        let mut turned = all.clone();
        turned.rotate_left(index);
        send(&worker.tcp(), &turned.concat());
        turned.reverse();
        send(&worker.tcp(), &turned.concat());
    }
    until("their processes are gone", EVENTUALLY, || worker.clients().len() == 1);
    assert_eq!(steps.ask("copies 3"), "hipSuccess");
}

#[test]
fn real_token_that_is_wrong_is_refused_with_a_sentence() {
    let keys = tempfile::tempdir().unwrap();
    let folder = keys.path().join("key");
    Worker::make_key(&folder);
    let worker = Worker::with(
        ["-p".as_ref(), "0".as_ref(), "--key".as_ref(), folder.join("worker.key").as_os_str()],
        [],
    );
    let text = std::fs::read_to_string(folder.join("client.key")).unwrap();
    let (first, last) = text.trim_end().split_at(text.trim_end().len() - 1);
    let other = if last == "0" { "1" } else { "0" };
    std::fs::write(folder.join("client.key"), format!("{first}{other}\n")).unwrap();
    let (client_key, address) = (folder.join("client.key"), worker.tcp());
    let refused = ended(
        &mut Program { worker: &address, key: Some(&client_key) }.command([test_gpu::built::compile("vadd")]),
    );
    assert!(!refused.status.success() && refused.stderr.contains("token"), "{}", refused.stderr);
    worker.until_free(EVENTUALLY);
}
