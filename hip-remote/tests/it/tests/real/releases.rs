//! Programs that are linked with the client's library of each release.

use std::path::{Path, PathBuf};

use hip_remote_tests::{Ended, Program, Worker, built, ended};

fn library(release: &str) -> PathBuf {
    built().join(format!("lib/libamdhip64.so.{release}"))
}

/// Runs a program with the library of each release at once, with the release as its first argument.
fn on_each_release(worker: &Worker, name: &str, options: &[&str], more: &[&Path], holds: fn(&Ended)) {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for release in ["5", "6", "7"] {
            let program = folder.path().join(format!("{name}.{release}"));
            test_gpu::built::compile_with(name, options, &library(release), &program);
            let mut command = Program::on(&worker.unix()).command([&program]);
            command.arg(release).args(more);
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
    on_each_release(&worker, "releases", &[], &[], |_| ());
}

#[test]
fn real_programs_of_each_release_make_the_calls_that_few_programs_make() {
    let worker = Worker::start();
    let code = test_gpu::built::compile_code_object("calls");
    for options in [&[], PER_THREAD] {
        on_each_release(&worker, "calls", options, &[&code], |ran| {
            for name in ["hipGraphCreate", "hipMallocManaged"] {
                let sentence = format!("{name} is not supported by a remote GPU");
                assert_eq!(ran.stderr.matches(&sentence).count(), 1, "{}", ran.stderr);
            }
        });
    }
}

/// Each thread's default stream is its own: the compiler takes the `_spt` functions in place of others.
const PER_THREAD: &[&str] = &["-fgpu-default-stream=per-thread"];

#[test]
fn real_programs_whose_threads_have_default_streams_of_their_own_compute_what_plain_c_computes() {
    let worker = Worker::start();
    let folder = tempfile::tempdir().unwrap();
    for name in ["vadd", "globals", "copy2d", "streams", "async"] {
        let program = folder.path().join(name);
        test_gpu::built::compile_with(name, PER_THREAD, &library("5"), &program);
        let shown = ended(&mut Program::on(&worker.unix()).command([&program])).well();
        assert!(shown.starts_with("ok "), "{name}: {shown}");
    }
}
