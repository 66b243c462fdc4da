use hip_remote_tests::{Steps, Worker};

/// Debian 12's own, which finds no GPU here.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5";

#[test]
fn real_hip_library_of_debian_says_through_the_worker_that_there_is_no_device() {
    let worker = Worker::with(["-p", "0", "--hip-library", LIBRARY], []);
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("count").starts_with("hipErrorNoDevice"));
    assert!(steps.ask("malloc 16").starts_with("hipErrorNoDevice"));
}
