use std::process::Command;

use hip_remote_tests::{EVENTUALLY, Namespaces, Program, Worker, built, ended};

#[test]
fn real_programs_compute_between_two_network_namespaces_with_a_key() {
    let namespaces = Namespaces::new();
    let keys = tempfile::tempdir().unwrap();
    Worker::make_key(&keys.path().join("key"));
    let [worker_key, client_key] =
        ["worker.key", "client.key"].map(|name| keys.path().join("key").join(name));
    let starter = ["ip", "netns", "exec", &namespaces.worker];
    let key = worker_key.to_str().unwrap();
    let worker = Worker::by(&starter, ["--listen", "0.0.0.0", "--key", key], []);
    let there = Program { worker: Namespaces::WORKER, key: Some(&client_key) };
    let run = |command: &Command| ended(&mut Namespaces::inside(&namespaces.client, command));

    let mut check = Command::new(built().join("bin/rocworker-hip-run"));
    check.args(["--connect", Namespaces::WORKER, "--key", client_key.to_str().unwrap(), "--check"]);
    let shown = run(&check).well();
    assert!(shown.contains("1 device") && shown.contains("gfx90a:sramecc+:xnack-"), "{shown}");

    let vadd = test_gpu::built::compile("vadd");
    let shown = run(&there.command([vadd.as_os_str(), "100000".as_ref()])).well();
    assert!(shown.starts_with("ok "), "{shown}");
    let shown = run(&there.command(super::python::script())).well();
    assert!(shown.starts_with("ok"), "{shown}");

    let without = run(&Program { key: None, ..there }.command([&vadd]));
    assert!(!without.status.success() && without.stderr.contains("asks for a key"), "{}", without.stderr);
    worker.until_free(EVENTUALLY);
}

#[test]
fn real_workers_beyond_loopback_need_a_key() {
    let mut command = Command::new(built().join("bin/rocworker-hip-worker"));
    let refused = ended(command.args(["--listen", "0.0.0.0", "-p", "0"]));
    assert!(
        !refused.status.success() && refused.stderr.contains("rocworker-hip-worker key"),
        "{}",
        refused.stderr
    );
}

#[test]
fn real_keys_of_another_worker_are_refused_on_both_sides() {
    let keys = tempfile::tempdir().unwrap();
    let [ours, others] = ["ours", "others"].map(|name| keys.path().join(name));
    Worker::make_key(&ours);
    Worker::make_key(&others);
    let worker = Worker::with(
        ["-p".as_ref(), "0".as_ref(), "--key".as_ref(), ours.join("worker.key").as_os_str()],
        [],
    );
    let (client_key, address) = (others.join("client.key"), worker.tcp());
    let stranger = Program { worker: &address, key: Some(&client_key) };
    let refused = ended(&mut stranger.command([test_gpu::built::compile("vadd")]));
    assert!(
        !refused.status.success() && refused.stderr.contains("another certificate"),
        "{}",
        refused.stderr
    );
    let client_key = ours.join("client.key");
    let admitted = Program { worker: &address, key: Some(&client_key) };
    ended(&mut admitted.command([test_gpu::built::compile("vadd")])).well();
}
