use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use hip_remote_tests::{Program, Relay, Worker, built, changed, ended};

/// What a program prints where the GPU is in its own machine.
fn local(program: &[impl AsRef<OsStr>]) -> String {
    let mut command = Command::new(&program[0]);
    ended(command.args(&program[1..]).env("LD_LIBRARY_PATH", test_gpu::built::folder())).stdout
}

#[test]
fn real_programs_compute_over_the_wire_what_they_compute_locally() {
    let worker = Worker::start();
    for name in test_gpu::built::PROGRAMS {
        let program = test_gpu::built::compile(name);
        let remote = ended(&mut Program::on(&worker.unix()).command([&program]));
        assert!(remote.stdout.contains("ok "), "{name}: {}{}", remote.stdout, remote.stderr);
        assert_eq!(remote.stdout, local(&[&program]), "{name}");
    }
}

/// What the tests of the GPU itself ask of it holds over the wire too.
#[test]
fn real_devices_streams_queries_and_errors_are_what_they_are_locally() {
    for (name, environment) in [
        ("devices", ("TEST_GPU_DEVICES", "2")),
        ("order", ("TEST_GPU_SLOW_MS", "50")),
        ("queries", ("TEST_GPU_DEVICES", "1")),
        ("faults", ("TEST_GPU_DEVICES", "1")),
    ] {
        let worker = Worker::with(["-p", "0"], [environment]);
        let remote = ended(&mut Program::on(&worker.unix()).command([test_gpu::built::compile(name)]));
        assert_eq!(remote.stdout, "ok\n", "{name}: {}", remote.stderr);
    }
}

#[test]
fn real_kernels_of_a_program_with_a_managed_variable_are_refused_by_name() {
    let worker = Worker::start();
    let remote = ended(&mut Program::on(&worker.unix()).command([test_gpu::built::compile("managed")]));
    assert_eq!(remote.stdout, "hipErrorNotSupported\nhipSuccess\n", "{}", remote.stderr);
    let said = "rocworker: the managed variable variable is not supported by a remote GPU\n";
    assert_eq!(remote.stderr, said);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_copies_of_more_than_4_gib_arrive_whole() {
    let worker = Worker::start();
    let shown = ended(&mut Program::on(&worker.tcp()).command([test_gpu::compile("huge")])).well();
    assert_eq!(shown, "ok\n");
}

/// V_ADD_F32 and V_SUB_F32 of VOP2.
#[test]
fn real_code_with_one_instruction_changed_gives_the_changed_result() {
    let worker = Worker::start();
    let folder = tempfile::tempdir().unwrap();
    let (whole, other) = (test_gpu::built::compile("vadd"), folder.path().join("vadd"));
    assert_eq!(changed(&whole, 1, 2, &other), 1);
    let remote = ended(&mut Program::on(&worker.unix()).command([&other]));
    assert!(remote.stdout.starts_with("wrong at 0: "), "{}{}", remote.stdout, remote.stderr);
    assert_eq!(remote.stdout, local(&[&other]));
}

#[test]
fn real_kernel_of_a_file_takes_its_arguments_by_pointers_and_by_a_buffer() {
    let worker = Worker::start();
    let program = [test_gpu::compile("module"), test_gpu::built::compile_code_object("vadd")];
    let shown = ended(&mut Program::on(&worker.unix()).command(&program)).well();
    assert_eq!(shown.lines().count(), 300);
    assert_eq!(shown, local(&program));
}

/// The sizes of the code objects that a worker keeps.
fn kept(worker: &Worker) -> Vec<u64> {
    let entries = std::fs::read_dir(worker.path("cache")).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
}

/// The bytes of heartbeats by which two runs of a program may differ.
const HEARTBEATS: u64 = 256;

#[test]
fn real_modules_travel_once() {
    let worker = Worker::start();
    let relay = Relay::to(&worker.tcp(), Duration::ZERO);
    let program = test_gpu::built::compile("vadd");
    let sent = [(); 3].map(|()| {
        let before = relay.bytes();
        ended(&mut Program::on(&relay.address).command([program.as_os_str(), "1".as_ref()])).well();
        relay.bytes() - before
    });
    let kept = kept(&worker);
    assert_eq!(kept.len(), 1);
    assert!(sent[1] + kept[0] < sent[0] + HEARTBEATS && sent[2] < sent[1] + HEARTBEATS, "{sent:?}, {kept:?}");
}

#[test]
fn real_programs_with_a_dt_rpath_to_another_library_run_remotely() {
    let worker = Worker::start();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("vadd");
    let source = test_gpu::built::sources().join("vadd.hip");
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", test_gpu::built::folder().display());
    let mut hipcc = Command::new("hipcc");
    hipcc.args(["--offload-arch=gfx90a", "-O3", &rpath, "-o"]).args([&program, &source]);
    ended(hipcc.env("TMPDIR", folder.path())).well();
    let shown = ended(Program::on(&worker.unix()).command([&program]).env("TEST_GPU_DEVICES", "0")).well();
    assert!(shown.starts_with("ok "), "{shown}");
    assert!(worker.log().contains("vadd"), "{}", worker.log());
}

#[test]
fn real_stub_that_is_preloaded_runs_a_program_of_debians_library_remotely() {
    let worker = Worker::start();
    let mut program = Command::new(test_gpu::built::compile("vadd"));
    program
        .env("LD_PRELOAD", built().join("lib/libhip_client_stub.so"))
        .env("ROCWORKER_HIP_REMOTE", worker.unix());
    let shown = ended(&mut program).well();
    assert!(shown.starts_with("ok "), "{shown}");
}

/// /etc/ld.so.preload puts the library into every process.
#[test]
fn real_library_does_nothing_in_a_program_without_hip() {
    let shown = |preload: Option<_>| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ls /proc/$$/task | wc -l; ls -l /proc/$$/fd | grep -c socket; exit 0"]);
        shell.envs(preload.map(|library| ("LD_PRELOAD", library))).env("ROCWORKER_HIP_REMOTE", "no address:");
        let ended = ended(&mut shell);
        (ended.stdout, ended.stderr)
    };
    let library = built().join("lib/libhip_client_stub.so");
    assert_eq!(shown(Some(library)), shown(None));
}
