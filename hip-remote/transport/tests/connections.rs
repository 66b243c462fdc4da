//! Both ends of real connections.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{JoinHandle, scope, spawn};
use std::time::{Duration, Instant};

use hip_protocol::calls::{Call, Ping};
use hip_protocol::envelope::{CHUNK, Envelope};
use hip_protocol::message;
use hip_transport::{Address, ClientKey, Error, Reader, Result, WorkerKey, Writer, accept, connect, refuse};

const TIME: Duration = Duration::from_secs(10);

type Ends = (Reader, Writer);

fn worker(key: Option<WorkerKey>) -> (Address, JoinHandle<Result<Ends>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    (address, spawn(move || accept(listener.accept().unwrap().0.into(), key.as_ref(), TIME)))
}

fn ping(variable: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    message::request(&Ping {}, 7, 0, 3, variable, &mut bytes);
    bytes
}

/// A connection whose client has said [`Ping`].
fn connected(key: Option<&WorkerKey>) -> (Ends, Ends) {
    let (address, worker) = worker(key.cloned());
    let client_key = key.map(WorkerKey::client);
    let mut client = connect(&address, client_key.as_ref(), TIME).unwrap();
    client.1.write(&mut [IoSlice::new(&ping(b""))]).unwrap();
    let mut worker = worker.join().unwrap().unwrap();
    assert_eq!(worker.0.next().unwrap().op, Ping::OP);
    (client, worker)
}

fn key() -> WorkerKey {
    WorkerKey::make().unwrap()
}

#[test]
fn messages_arrive_whole_and_in_order_over_each_kind_of_connection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hip.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let unix = spawn(move || accept(listener.accept().unwrap().0.into(), None, TIME).unwrap());
    let mut client = connect(&Address::Unix(path), Some(&key().client()), TIME).unwrap();
    client.1.write(&mut [IoSlice::new(&ping(b""))]).unwrap();
    let mut worker = unix.join().unwrap();
    worker.0.next().unwrap();
    for ((mut reader, _writer), (reader_there, mut writer)) in
        [connected(None), connected(Some(&key())), (client, worker)]
    {
        let chunk: Vec<u8> = (0..1024 * 1024 + 5).map(|i: usize| (i % 251) as u8).collect();
        let prefix =
            message::prefix(Ping::OP, 9, Envelope { flags: CHUNK, ..Envelope::default() }, chunk.len());
        let long = ping(&chunk);
        let sender = spawn(move || {
            for _ in 0..20 {
                let small = ping(b"variable");
                writer
                    .write(&mut [
                        IoSlice::new(&small),
                        IoSlice::new(&[]),
                        IoSlice::new(&prefix),
                        IoSlice::new(&chunk),
                    ])
                    .unwrap();
                writer.write(&mut [IoSlice::new(&small), IoSlice::new(&long)]).unwrap();
            }
            chunk
        });
        let mut target = vec![0; 1024 * 1024 + 5];
        let mut long = Vec::new();
        for _ in 0..20 {
            let message = reader.next().unwrap();
            assert_eq!((message.op, message.id, message.envelope.lane, message.length), (Ping::OP, 7, 3, 8));
            assert_eq!(reader.bytes(8).unwrap(), b"variable");
            let message = reader.next().unwrap();
            assert!(message.envelope.has(CHUNK) && message.id == 9);
            reader.read_exact(&mut target).unwrap();
            let message = reader.next().unwrap();
            reader.skip(message.length).unwrap();
            let message = reader.next().unwrap();
            long = reader.bytes(message.length).unwrap().to_vec();
        }
        assert!(!reader.has(1));
        drop(reader_there);
        let sent = sender.join().unwrap();
        assert!(target == sent && long == sent);
        assert!(matches!(reader.next(), Err(Error::Ended { .. })));
    }
}

#[test]
fn both_sides_write_64_mib_at_once() {
    for key in [None, Some(key())] {
        let (client, worker) = connected(key.as_ref());
        let bytes: Vec<u8> = (0..64 * 1024 * 1024).map(|i: usize| (i / 1000) as u8).collect();
        scope(|scope| {
            for (mut reader, mut writer) in [client, worker] {
                let bytes = &bytes;
                scope.spawn(move || writer.write(&mut [IoSlice::new(bytes)]).unwrap());
                scope.spawn(move || {
                    let mut target = vec![0; bytes.len()];
                    reader.read_exact(&mut target).unwrap();
                    assert!(target == *bytes);
                });
            }
        });
    }
}

#[test]
fn a_wait_ends_when_another_thread_shuts_the_connection_down() {
    for key in [None, Some(key())] {
        let ((mut reader, _writer), _worker) = connected(key.as_ref());
        let shutdown = reader.shutdown();
        let waiter = spawn(move || reader.next());
        std::thread::sleep(Duration::from_millis(50));
        shutdown.now();
        assert!(waiter.join().unwrap().is_err());
    }
}

#[test]
fn a_silent_peer_is_noticed_after_the_time_that_was_set() {
    for key in [None, Some(key())] {
        let ((mut reader, _writer), (_, mut worker)) = connected(key.as_ref());
        assert!(!reader.poll(Duration::from_millis(20)).unwrap());
        reader.set_silence(Some(Duration::from_millis(100))).unwrap();
        let begin = Instant::now();
        assert!(matches!(reader.next(), Err(Error::Silent { .. })));
        assert!(begin.elapsed() >= Duration::from_millis(100));
        worker.write(&mut [IoSlice::new(&ping(b"12"))]).unwrap();
        assert!(reader.poll(TIME).unwrap());
        assert_eq!(reader.next().unwrap().length, 2);
        assert!(reader.has(2) && reader.poll(Duration::ZERO).unwrap());
    }
}

#[test]
fn a_peer_that_sends_a_byte_now_and_then_is_told_at_the_deadline() {
    for key in [None, Some(key())] {
        let ((mut reader, _writer), (_, mut worker)) = connected(key.as_ref());
        let begin = Instant::now();
        reader.set_deadline(Some(begin + Duration::from_millis(300)));
        let sender = spawn(move || {
            let message = ping(&[0; 1000]);
            for byte in &message {
                if worker.write(&mut [IoSlice::new(std::slice::from_ref(byte))]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let read = reader.next().and_then(|message| reader.bytes(message.length).map(<[u8]>::len));
        let Err(Error::Failed(sentence)) = read else { panic!("{read:?}") };
        assert!(sentence.contains("did not answer in time"), "{sentence}");
        assert!(begin.elapsed() < TIME);
        reader.shutdown().now();
        sender.join().unwrap();
    }
}

#[test]
fn a_deadline_that_is_over_counts_though_bytes_are_ready() {
    for key in [None, Some(key())] {
        let ((mut reader, _writer), (_, mut worker)) = connected(key.as_ref());
        let sender = spawn(move || worker.write(&mut [IoSlice::new(&ping(b"").repeat(5000))]).unwrap());
        assert!(reader.poll(TIME).unwrap());
        reader.set_deadline(Some(Instant::now()));
        let why = reader.next().unwrap_err().to_string();
        assert!(why.contains("did not answer in time"), "{why}");
        reader.set_deadline(None);
        while reader.next().is_ok() {}
        sender.join().unwrap();
    }
}

#[test]
fn a_message_that_is_cut_is_an_error_and_no_end() {
    let whole = ping(b"variable");
    for cut in 1..whole.len() {
        let (address, worker) = worker(None);
        let Address::Tcp { host, port } = address else { unreachable!() };
        TcpStream::connect((host.as_str(), port)).unwrap().write_all(&whole[..cut]).unwrap();
        let (mut reader, _writer) = worker.join().unwrap().unwrap();
        let all = reader.next().and_then(|message| reader.bytes(message.length).map(<[u8]>::to_vec));
        let Err(Error::Failed(sentence)) = all else { panic!("{cut} bytes: {all:?}") };
        assert!(sentence.contains("within a message"), "{sentence}");
    }
}

#[test]
fn a_unix_socket_whose_queue_is_full_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("worker");
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let _waits = UnixStream::connect(&path).unwrap();
    let address = Address::parse(&format!("unix:{}", path.display())).unwrap();
    let begin = Instant::now();
    assert!(connect(&address, None, Duration::from_millis(100)).is_err());
    assert!(begin.elapsed() < TIME);
}

#[test]
fn bytes_that_are_no_message_end_in_a_sentence() {
    for (at, byte, says) in [
        (1, 0, "begins with"),
        (4, 9, "has version 9"),
        (15, 0xff, "are the most"),
        (12, 3, "no envelope"),
        (17, 0xff, "flags"),
    ] {
        let (address, worker) = worker(None);
        let Address::Tcp { host, port } = address else { unreachable!() };
        let mut bytes = ping(b"");
        bytes[at] = byte;
        TcpStream::connect((host.as_str(), port)).unwrap().write_all(&bytes).unwrap();
        let (mut reader, _writer) = worker.join().unwrap().unwrap();
        let sentence = reader.next().unwrap_err().to_string();
        assert!(sentence.contains(says), "{sentence}");
    }
}

fn fails(worker_key: Option<WorkerKey>, client_key: Option<ClientKey>) -> (String, String) {
    let (address, worker) = worker(worker_key);
    let client = connect(&address, client_key.as_ref(), TIME).and_then(|(mut reader, mut writer)| {
        writer.write(&mut [IoSlice::new(&ping(b""))])?;
        let message = reader.next()?;
        Err::<(), _>(Error::Failed(String::from_utf8_lossy(reader.bytes(message.length)?).into_owned()))
    });
    (client.unwrap_err().to_string(), worker.join().unwrap().unwrap_err().to_string())
}

#[test]
fn a_client_with_another_workers_key_is_told_so() {
    let (client, worker) = fails(Some(key()), Some(key().client()));
    assert!(client.contains("another certificate than the key says"), "{client}");
    assert!(worker.contains("refused TLS"), "{worker}");
}

#[test]
fn a_client_without_a_key_learns_that_the_worker_asks_for_one() {
    let (client, worker) = fails(Some(key()), None);
    assert!(client.contains("asks for a key"), "{client}");
    assert!(worker.contains("without TLS"), "{worker}");
}

#[test]
fn a_client_with_a_key_learns_that_the_worker_has_none() {
    let (client, worker) = fails(None, Some(key().client()));
    assert!(client.contains("this worker has no key"), "{client}");
    assert!(worker.contains("was refused"), "{worker}");
}

#[test]
fn a_reset_while_tls_begins_is_told_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let resets = spawn(move || {
        let stream = listener.accept().unwrap().0;
        // A kernel that closes a socket with unread bytes resets the connection.
        stream.peek(&mut [0]).unwrap();
    });
    let sentence = connect(&address, Some(&key().client()), TIME).unwrap_err().to_string();
    assert!(sentence.starts_with(&format!("The connection to the worker {address} broke: ")), "{sentence}");
    resets.join().unwrap();
}

#[test]
fn a_refusal_before_any_byte_reaches_clients_with_and_without_a_key() {
    for key in [None, Some(key().client())] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        let refused = spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            std::thread::sleep(Duration::from_millis(50));
            refuse(&stream, "100 clients are here, which is the limit");
        });
        let said = connect(&address, key.as_ref(), TIME).and_then(|(mut reader, _)| {
            let message = reader.next()?;
            Err::<(), _>(Error::Failed(String::from_utf8_lossy(reader.bytes(message.length)?).into_owned()))
        });
        assert!(said.unwrap_err().to_string().contains("100 clients are here"));
        refused.join().unwrap();
    }
}

#[test]
fn a_client_that_says_nothing_or_half_a_handshake_is_let_go_in_time() {
    for bytes in [&b""[..], &[0x16, 3, 1]] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(bytes).unwrap();
        let begin = Instant::now();
        let descriptor: OwnedFd = listener.accept().unwrap().0.into();
        assert!(accept(descriptor, Some(&key()), Duration::from_millis(200)).is_err());
        assert!(begin.elapsed() < TIME);
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
    }
}

#[test]
fn a_missing_worker_is_named() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let sentence =
        connect(&Address::parse(&format!("127.0.0.1:{port}")).unwrap(), None, TIME).unwrap_err().to_string();
    assert!(
        sentence.contains(&format!("the worker 127.0.0.1:{port}")) && sentence.contains("refused"),
        "{sentence}"
    );
}

#[test]
fn a_write_to_a_peer_that_is_gone_is_an_error_and_no_signal() {
    let ((reader, mut writer), worker) = connected(None);
    drop(worker);
    let broken = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        writer.write(&mut [IoSlice::new(&ping(b""))]).err()
    });
    assert!(broken.unwrap().to_string().contains("broke"));
    drop(reader);
}

#[test]
fn what_came_before_a_bad_record_is_read_first_and_its_sender_gets_an_alert() {
    let ((mut client, mut writer), (mut reader, mut answer)) = connected(Some(&key()));
    writer.write(&mut [IoSlice::new(&ping(b"whole"))]).unwrap();
    let record = [&[23, 3, 3, 0, 32], [0; 32].as_slice()].concat();
    rustix::net::send(&client, &record, rustix::net::SendFlags::empty()).unwrap();
    // Both are there when the reader looks.
    std::thread::sleep(Duration::from_millis(50));
    let message = reader.next().unwrap();
    assert_eq!(reader.bytes(message.length).unwrap(), b"whole");
    let why = reader.next().unwrap_err().to_string();
    assert!(why.contains("broke: cannot decrypt"), "{why}");
    assert!(answer.write(&mut [IoSlice::new(&ping(b""))]).is_err());
    let why = client.next().unwrap_err().to_string();
    assert!(why.contains("fatal alert: BadRecordMac"), "{why}");
}

#[test]
fn a_stranger_whose_handshake_never_becomes_whole_is_not_kept_in_memory() {
    let (address, worker) = worker(Some(key()));
    let mut stranger = TcpStream::connect(address.to_string()).unwrap();
    // A ClientHello of 65535 bytes in records of one byte each.
    let hello = [1, 0, 255, 255].into_iter().chain(std::iter::repeat_n(0, 20_000));
    let records: Vec<u8> = hello.flat_map(|byte| [22, 3, 1, 0, 1, byte]).collect();
    let begin = Instant::now();
    // The worker may close before it has read all.
    let _ = stranger.write_all(&records);
    let why = worker.join().unwrap().unwrap_err().to_string();
    assert!(why.contains("too long") && begin.elapsed() < TIME, "{why}");
}
