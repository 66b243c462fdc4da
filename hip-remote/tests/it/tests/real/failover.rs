use std::process::Command;

use hip_remote_tests::{Program, Steps, Worker, built, ended};

const LOST: &str = "hipErrorContextIsDestroyed";

#[test]
fn real_process_without_device_state_goes_to_the_next_worker_whenever_its_own_goes() {
    let mut first = Worker::start();
    let second = Worker::with(["-p", "0"], [("TEST_GPU_DEVICES", "2")]);
    let mut steps = Steps::on(&format!("{},{}", first.unix(), second.tcp()));
    assert_eq!(steps.ask("count"), "hipSuccess 1");
    assert!(steps.ask("malloc 16").starts_with("hipSuccess"));
    assert_eq!(steps.ask("free"), "hipSuccess");
    assert_eq!(steps.ask("sync"), "hipSuccess");
    first.kill();
    assert!(steps.ask("malloc 16").starts_with("hipSuccess"));
    assert_eq!(steps.ask("count"), "hipSuccess 2");
    assert_eq!(steps.ask("write 9"), "hipSuccess");
    assert_eq!(steps.ask("read"), "hipSuccess 9");
}

#[test]
fn real_process_with_device_state_keeps_its_error_and_its_next_start_goes_to_a_worker_that_lives() {
    let mut first = Worker::start();
    let second = Worker::with(["-p", "0"], [("TEST_GPU_DEVICES", "2")]);
    let both = format!("{},{}", first.tcp(), second.unix());
    let mut steps = Steps::on(&both);
    assert!(steps.ask("malloc 16").starts_with("hipSuccess"));
    first.kill();
    assert_eq!(steps.ask("write 1"), LOST);
    assert!(steps.ask("malloc 16").starts_with(LOST));
    assert_eq!(second.clients(), [0; 0]);
    assert_eq!(Steps::on(&both).ask("count"), "hipSuccess 2");
}

#[test]
fn real_launch_for_which_nobody_waited_is_lost_and_no_other_worker_hides_it() {
    for waits in [true, false] {
        let mut first = Worker::start();
        let second = Worker::start();
        let mut steps = Steps::on(&format!("{},{}", first.unix(), second.unix()));
        assert_eq!(steps.ask("alone"), "hipSuccess");
        if waits {
            assert_eq!(steps.ask("sync"), "hipSuccess");
        }
        first.kill();
        for _ in 0..2 {
            assert_eq!(steps.ask("sync"), if waits { "hipSuccess" } else { LOST });
        }
    }
}

#[test]
fn real_thread_whose_device_the_next_worker_lacks_is_told_so() {
    let mut first = Worker::with(["-p", "0"], [("TEST_GPU_DEVICES", "2")]);
    let second = Worker::start();
    let mut steps = Steps::on(&format!("{},{}", first.unix(), second.unix()));
    assert_eq!(steps.ask("device 1"), "hipSuccess");
    first.kill();
    assert!(steps.ask("malloc 16").starts_with("hipErrorInvalidDevice"));
    assert_eq!(steps.ask("count"), "hipSuccess 1");
    assert_eq!(steps.ask("sync"), "hipErrorInvalidDevice");
    assert_eq!(steps.ask("device 0"), "hipSuccess");
    assert!(steps.ask("malloc 16").starts_with("hipSuccess"));
}

#[test]
fn real_check_of_a_worker_without_devices_fails() {
    let worker = Worker::with(["-p", "0"], [("TEST_GPU_DEVICES", "0")]);
    let mut check = Command::new(built().join("bin/rocworker-hip-run"));
    let checked = ended(check.args(["--connect", &worker.unix(), "--check"]));
    assert_eq!(checked.status.code(), Some(125));
    assert!(checked.stderr.contains("hipErrorNoDevice"), "{}", checked.stderr);
}

#[test]
fn real_programs_without_a_worker_end_in_a_sentence_that_names_it() {
    let lost = ended(&mut Program::on("127.0.0.1:1,unix:/none").command([test_gpu::built::compile("vadd")]));
    assert!(!lost.status.success());
    for named in ["127.0.0.1:1", "unix:/none", "hipErrorNoDevice"] {
        assert!(lost.stderr.contains(named), "{}", lost.stderr);
    }
    let mut check = Command::new(built().join("bin/rocworker-hip-run"));
    let checked = ended(check.args(["--connect", "127.0.0.1:1,unix:/none", "--check"]));
    assert_eq!(checked.status.code(), Some(125));
    assert!(
        checked.stderr.contains("127.0.0.1:1") && checked.stderr.contains("unix:/none"),
        "{}",
        checked.stderr
    );
}

#[test]
fn real_exit_codes_are_the_programs_or_those_of_env() {
    let run = |arguments: &[&str]| ended(&mut Program::on("unix:/none").command(arguments));
    assert_eq!(run(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(run(&["/none/program"]).status.code(), Some(127));
    assert_eq!(run(&["no-such-program"]).status.code(), Some(127));
    assert_eq!(run(&["/etc/passwd"]).status.code(), Some(126));
    assert_eq!(run(&[]).status.code(), Some(125));
}

#[test]
fn real_worker_without_a_gpu_is_skipped_by_name() {
    let [without, with] = [("TEST_GPU_DEVICES", "0"), ("TEST_GPU_DEVICES", "1")]
        .map(|environment| Worker::with(["-p", "0"], [environment]));
    let both = format!("{},{}", without.unix(), with.unix());
    let shown = ended(&mut Program::on(&both).command([test_gpu::built::compile("vadd")]));
    let said = format!(
        "rocworker: {} has no GPU for the program: its HIP library says hipErrorNoDevice\n",
        without.unix()
    );
    assert_eq!((shown.stdout.starts_with("ok "), shown.stderr), (true, said));
}
