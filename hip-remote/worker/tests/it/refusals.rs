//! Whom the worker does not serve.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use hip_protocol::calls::*;
use hip_protocol::message;
use hip_transport::{Address, ClientKey};
use rustix::net::{AddressFamily, SocketType, bind, socket};

use crate::client::Client;
use crate::worker::{Worker, eventually, program};

fn hello(token: [u8; 32]) -> Hello {
    Hello { token, pid: 1, memory: 0 }
}

#[test]
fn beyond_loopback_a_worker_does_not_listen_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let output = program().args(["--listen", "0.0.0.0:0", "--cache"]).arg(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("rocworker-hip-worker key"), "{said}");
}

/// What a worker says that does not start.
fn refused(options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = program().args(options).arg("--cache").arg(folder.path()).output().unwrap();
    assert!(!output.status.success(), "{options:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_file_that_is_no_socket_stays_where_a_worker_is_to_listen() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("thesis"), folder.path().join("link"));
    std::fs::write(&file, "years of work").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link] {
        assert!(refused(&["--unix", path.to_str().unwrap()]).contains("is no socket"));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "years of work");
    }
}

#[test]
fn a_worker_whose_library_serves_no_client_does_not_start() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (library, says) in [("none", "none"), (readme, "invalid ELF header"), ("libm.so.6", "has no hipInit")]
    {
        let said = refused(&["-p", "0", "--hip-library", library]);
        assert!(said.contains(says) && said.contains("does not start"), "{said}");
    }
}

#[test]
fn a_worker_that_finds_too_few_devices_says_so_when_it_starts() {
    Worker::start(&[], &[("TEST_GPU_DEVICES", "0")]).logs("finds no device");
    Worker::start(&["--gpus", "9"], &[]).logs("--gpus asks for 9, and the HIP library finds 1");
}

#[test]
fn a_keys_folder_is_closed_and_those_above_it_are_not() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("a/b");
    assert!(program().arg("key").arg(&made).status().unwrap().success());
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&made), 0o700);
    assert_ne!(mode(&folder.path().join("a")), 0o700);
}

#[test]
fn a_client_with_the_key_is_served_and_one_without_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let made = |name: &str| folder.path().join("k").join(name);
    assert!(program().arg("key").arg(folder.path().join("k")).status().unwrap().success());
    let again = program().arg("key").arg(folder.path().join("k")).output().unwrap();
    assert!(!again.status.success(), "a second key takes the first one's place");
    let key = made("worker.key");
    let worker = Worker::start(&["--listen", "127.0.0.1:0", "--key", key.to_str().unwrap()], &[]);
    let address = Address::parse(&worker.tcp()).unwrap();
    let key = ClientKey::read(&made("client.key")).unwrap();
    let mut client = Client::greet(&address, Some(&key));
    let bytes = crate::client::pattern(3 << 20);
    let pointer = client.malloc(bytes.len() as u64);
    client.put(pointer, &bytes);
    assert!(client.get(pointer, bytes.len() as u64) == bytes);
    let mut wrong = Client::connect(&address, Some(&key));
    wrong.send(hello([1; 32]), 0, &[]);
    assert!(wrong.closed().contains("client.key"));
    let mut plain = Client::connect(&address, None);
    plain.send(hello([0; 32]), 0, &[]);
    assert!(plain.closed().contains("key"));
    // A Unix socket's permissions say who may connect.
    worker.client().call(Ping {}).unwrap();
}

#[test]
fn a_client_too_many_is_refused_until_another_has_ended() {
    let worker = Worker::start(&["--clients", "2"], &[]);
    let mut clients = vec![worker.client(), worker.client()];
    let mut third = Client::connect(&worker.address(), None);
    third.send(hello([0; 32]), 0, &[]);
    let sentence = third.closed();
    assert!(sentence.contains("--clients 2"), "{sentence}");
    clients.pop();
    eventually("the place is free", || worker.processes().len() == 1);
    worker.client().call(Ping {}).unwrap();
    clients[0].call(Ping {}).unwrap();
}

#[test]
fn a_thousand_connections_that_say_nothing_keep_no_client_from_its_work() {
    let worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let pointer = client.malloc(1000);
    let begun = Instant::now();
    let mut strangers = Vec::new();
    for _ in 0..1000 {
        strangers.push(UnixStream::connect(worker.socket()).unwrap());
        client.call(Ping {}).unwrap();
    }
    assert_eq!(client.get(pointer, 1000).len(), 1000);
    assert!(worker.processes().len() <= 17, "{}", worker.processes().len());
    // Those that have a process are sent away when their time is over.
    eventually("all strangers are gone", || worker.processes().len() == 1);
    assert!(begun.elapsed() < Duration::from_secs(15));
    worker.client().call(Ping {}).unwrap();
}

#[test]
fn a_stranger_that_sends_a_byte_now_and_then_is_told_when_its_time_is_over() {
    let worker = Worker::start(&[], &[]);
    let mut stranger = UnixStream::connect(worker.socket()).unwrap();
    let mut greeting = Vec::new();
    message::request(&hello([0; 32]), 1, 0, 0, &[], &mut greeting);
    let begun = Instant::now();
    // The whole greeting would take more than 12 s.
    for byte in greeting {
        if stranger.write_all(&[byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    worker.logs("did not answer in time");
}

#[test]
fn one_address_that_says_nothing_leaves_places_for_others() {
    let worker = Worker::start(&["--listen", "127.0.0.1:0"], &[]);
    let to: SocketAddr = worker.tcp().parse().unwrap();
    let connect = |from: &str| {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
        rustix::net::connect(&socket, &to).unwrap();
        TcpStream::from(socket)
    };
    let mut one = (0..14).map(|_| connect("127.0.0.1")).collect::<Vec<_>>();
    let _other = connect("127.0.0.2");
    eventually("the other one has a process", || worker.processes().len() == 13);
    // The last two wait until others leave.
    one.drain(..5);
    eventually("the last ones have their turn", || worker.processes().len() == 10);
}

#[test]
fn more_clients_that_begin_at_once_than_there_are_places_are_all_served() {
    let worker = Worker::start(&["--listen", "127.0.0.1:0"], &[]);
    let addresses = [worker.address(), Address::parse(&worker.tcp()).unwrap()];
    for address in addresses {
        let connect = |_| Client::connect(&address, None);
        let mut clients: Vec<Client> = (0..30).map(connect).collect();
        for client in &mut clients {
            client.send(hello([0; 32]), 0, &[]);
        }
        for mut client in clients {
            client.reply::<Hello>(1).unwrap();
        }
    }
}

#[test]
fn a_number_of_gpus_needs_a_policy_that_counts_them() {
    let place = tempfile::tempdir().unwrap();
    let worker = Worker::start_in(place.path(), &["--gpus", "1"], &[]);
    let mut client = Client::connect(&worker.address(), None);
    client.send(hello([0; 32]), 0, &[]);
    let sentence = client.closed();
    assert!(sentence.contains("--gpus") && sentence.contains("wrapper.json"), "{sentence}");
}
