//! GPUs that have one holder: a worker with a policy of the container wrapper, in an /etc and a /run of its own.

use std::fs;
use std::path::Path;

use hip_protocol::calls::*;

use crate::client::Client;
use crate::life::lives;
use crate::worker::{Worker, eventually};

const POLICY: &str = r#"{"schema_version":2,"requests":"all","sharing":"SHARING","gpus":[
    {"index":0,"names":[],"card":"0000:64:00.0","nodes":[{"path":"/dev/dri/renderD128"}]},
    {"index":1,"names":[],"card":"0000:65:00.0","nodes":[{"path":"/dev/dri/renderD129"}]}]}"#;

/// `hipDeviceAttributePciBusId`.
const PCI_BUS: i32 = 67;

/// The names of the leases, or of the records.
fn names(run: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(run.join("rocworker").join(folder)).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

fn machine(sharing: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("etc/rocworker")).unwrap();
    fs::create_dir(place.path().join("run")).unwrap();
    fs::write(place.path().join("etc/rocworker/wrapper.json"), POLICY.replace("SHARING", sharing)).unwrap();
    place
}

fn refused(worker: &Worker) -> String {
    let mut client = Client::connect(&worker.address(), None);
    client.send(Hello { token: [0; 32], pid: 1, memory: 0 }, 0, &[]);
    client.closed()
}

#[test]
fn each_client_leases_a_gpu_until_its_process_ends() {
    let place = machine("exclusive");
    let run = place.path().join("run");
    let mut worker = Worker::start_in(place.path(), &[], &[("TEST_GPU_DEVICES", "2")]);
    let mut one = worker.client();
    assert_eq!(names(&run, "leases"), ["renderD128"]);
    let mut two = worker.client();
    for (client, its) in [(&mut one, 0x40), (&mut two, 0x41)] {
        assert_eq!(client.call(DeviceCount {}).unwrap().devices, 1);
        assert_eq!(client.call(DeviceAttribute { device: 0, attribute: PCI_BUS }).unwrap().value, its);
    }
    assert_eq!(names(&run, "leases"), ["renderD128", "renderD129"]);
    let lease = fs::read_to_string(run.join("rocworker/leases/renderD129")).unwrap();
    assert!(worker.processes().iter().any(|pid| lease.contains(&format!("hip-client-{pid}"))), "{lease}");
    let sentence = refused(&worker);
    assert!(sentence.contains("0 of 2 are free") && sentence.contains("hip-client-"), "{sentence}");
    drop(one);
    eventually("the lease has ended", || names(&run, "leases") == ["renderD129"]);
    let three = worker.client();
    assert_eq!(names(&run, "leases"), ["renderD128", "renderD129"]);
    two.call(Ping {}).unwrap();
    // What a killed worker leaves, the next decision clears away.
    let left = worker.processes();
    worker.child.kill().unwrap();
    worker.child.wait().unwrap();
    drop((two, three));
    eventually("the processes are gone", || !left.iter().any(|pid| lives(*pid)));
    let worker = Worker::start_in(place.path(), &["--gpus", "2"], &[]);
    let four = worker.client();
    assert_eq!(names(&run, "leases"), ["renderD128", "renderD129"]);
    drop(four);
    eventually("nothing is left", || names(&run, "leases").is_empty() && names(&run, "records").is_empty());
}

#[test]
fn shared_gpus_have_no_lease_and_the_least_used_one_is_chosen() {
    let place = machine("shared");
    let run = place.path().join("run");
    let worker = Worker::start_in(place.path(), &["--gpus", "1"], &[]);
    let clients = [0; 4].map(|_| worker.client());
    let records: Vec<String> = names(&run, "records")
        .iter()
        .map(|name| fs::read_to_string(run.join("rocworker/records").join(name)).unwrap())
        .collect();
    for render in ["renderD128", "renderD129"] {
        assert_eq!(records.iter().filter(|record| record.contains(render)).count(), 2, "{records:?}");
    }
    assert!(names(&run, "leases").is_empty());
    drop(clients);
    eventually("nothing is left", || names(&run, "records").is_empty());
}

#[test]
fn a_policy_that_cannot_be_used_gives_no_gpu() {
    let place = machine("everybody's");
    let worker = Worker::start_in(place.path(), &[], &[]);
    let sentence = refused(&worker);
    assert!(sentence.contains("/etc/rocworker/wrapper.json"), "{sentence}");
}
