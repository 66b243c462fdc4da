//! AMD's own libraries as Debian has them: they find no GPU.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use hip_protocol::calls::Hello;
use hip_protocol::message;
use hip_remote_tests::{EXCLUSIVE, ROCM_6, SidRoot, Steps, Worker, is_alive, leased, until};

/// Debian 12's: 5.2.3.
const ROCM_5: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";

const SOON: Duration = Duration::from_secs(20);

fn in_sid(root: &SidRoot) -> Worker {
    Worker::by(&root.starter(), ["-p", "0", "--root", "/", "--hip-library", ROCM_6], [])
}

fn says_that_there_is_no_device(steps: &mut Steps) {
    for step in ["count", "malloc 16"] {
        let answer = steps.ask(step);
        assert!(answer.starts_with("hipErrorNoDevice"), "{step}: {answer}");
    }
}

#[test]
fn real_hip_library_of_debian_says_through_the_worker_that_there_is_no_device() {
    let worker = Worker::with(["-p", "0", "--hip-library", ROCM_5], []);
    says_that_there_is_no_device(&mut Steps::on(&worker.unix()));
}

#[test]
fn real_hip_library_of_debian_sid_says_it_in_a_root_of_sid() {
    let root = SidRoot::new();
    let worker = in_sid(&root);
    says_that_there_is_no_device(&mut Steps::on(&worker.unix()));
}

#[test]
fn real_client_in_a_root_of_debian_sid_leaves_no_process_and_no_lease() {
    let root = SidRoot::new();
    fs::write(root.path("etc/rocworker/wrapper.json"), EXCLUSIVE).unwrap();
    let mut worker = in_sid(&root);
    // A program lets a worker without devices go after each call.
    let mut client = TcpStream::connect(worker.tcp()).unwrap();
    let mut hello = Vec::new();
    message::request(&Hello { token: [0; 32], pid: 1, memory: 0 }, 1, 0, 0, b"it stays", &mut hello);
    client.write_all(&hello).unwrap();
    client.read_exact(&mut [0; 16]).unwrap();

    let processes = worker.clients();
    assert_eq!(processes.len(), 1);
    let mapped = fs::read_to_string(format!("/proc/{}/maps", processes[0])).unwrap();
    assert!(mapped.contains("/libamdhip64.so.6.4."), "{mapped}");
    assert_eq!(leased(&root.path("run")).len(), 2, "a lease and a record: {:?}", leased(&root.path("run")));

    drop(client);
    until("the client's process is gone", SOON, || !is_alive(processes[0]));
    until("the client owns nothing", SOON, || leased(&root.path("run")).is_empty());
    worker.end();
}
