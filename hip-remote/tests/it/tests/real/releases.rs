//! Programs that are linked with the client's library of each release.

use std::path::Path;

use hip_remote_tests::{Ended, Program, Worker, built, ended};

/// Runs a program with the library of each release at once, with the release as its first argument.
fn on_each_release(worker: &Worker, name: &str, more: &[&Path], holds: impl Fn(&Ended) + Sync) {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for release in ["5", "6", "7"] {
            let program = folder.path().join(format!("{name}.{release}"));
            let library = built().join(format!("lib/libamdhip64.so.{release}"));
            test_gpu::built::compile_with(name, &library, &program);
            let mut command = Program::on(&worker.unix()).command([&program]);
            command.arg(release).args(more);
            let holds = &holds;
            scope.spawn(move || {
                let ran = ended(&mut command);
                assert_eq!(ran.stdout, "ok\n", "ROCm {release}: {}", ran.stderr);
                holds(&ran);
            });
        }
    });
}

#[test]
fn real_programs_get_the_rules_of_their_release_and_each_thread_has_its_own_stream() {
    let worker = Worker::with(["-p", "0"], [("TEST_GPU_SLOW_MS", "2000")]);
    on_each_release(&worker, "releases", &[], |_| ());
}

#[test]
fn real_programs_of_each_release_make_the_calls_that_few_programs_make() {
    let worker = Worker::start();
    let code = test_gpu::built::compile_code_object("calls");
    on_each_release(&worker, "calls", &[&code], |ran| {
        for name in ["hipGraphCreate", "hipMallocManaged"] {
            let sentence = format!("{name} is not supported by a remote GPU");
            assert_eq!(ran.stderr.matches(&sentence).count(), 1, "{}", ran.stderr);
        }
    });
}
