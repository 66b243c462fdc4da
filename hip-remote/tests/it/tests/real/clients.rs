use hip_remote_tests::{EVENTUALLY, Program, Steps, Worker, ended, until};

#[test]
fn real_two_clients_compute_at_once_in_processes_of_their_own() {
    let worker = Worker::start();
    let [mut one, mut other] = [(); 2].map(|()| Steps::on(&worker.unix()));
    for steps in [&mut one, &mut other] {
        assert!(steps.ask("malloc 1048576").starts_with("hipSuccess"));
    }
    assert_eq!(worker.clients().len(), 2);
    for steps in [&mut one, &mut other] {
        steps.begin("copies 20");
    }
    assert_eq!(one.answer(), "hipSuccess");
    assert_eq!(other.answer(), "hipSuccess");
    drop((one, other));
    worker.until_free(EVENTUALLY);
}

#[test]
fn real_pointers_of_another_client_are_refused() {
    let worker = Worker::start();
    let [mut one, mut other] = [(); 2].map(|()| Steps::on(&worker.unix()));
    let pointer = one.ask("malloc 4096");
    let pointer = pointer.strip_prefix("hipSuccess 0x").unwrap();
    let pointer = u64::from_str_radix(pointer, 16).unwrap();
    assert!(other.ask("malloc 16").starts_with("hipSuccess"));
    for step in ["free-address", "set-address"] {
        let refused = other.ask(&format!("{step} {pointer}"));
        assert!(refused.starts_with("hipErrorInvalid"), "{step}: {refused}");
    }
    assert_eq!(one.ask("write 7"), "hipSuccess");
    assert_eq!(one.ask("read"), "hipSuccess 7");
}

#[test]
fn real_crash_of_one_clients_gpu_process_touches_no_other() {
    let worker = Worker::with(["-p", "0"], [("TEST_GPU_CRASH_AFTER", "20")]);
    let [mut one, mut other] = [(); 2].map(|()| Steps::on(&worker.unix()));
    for steps in [&mut one, &mut other] {
        assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
        assert!(steps.ask("launch 1").starts_with("hipSuccess"));
    }
    let lost = one.ask("pipeline 30");
    assert!(lost.starts_with("hipErrorContextIsDestroyed"), "{lost}");
    assert_eq!(other.ask("sync"), "hipSuccess");
    until("the crashed process is gone", EVENTUALLY, || worker.clients().len() == 1);
    assert_eq!(other.ask("set 0"), "hipSuccess");
    assert!(other.ask("pipeline 5").starts_with("hipSuccess 5"));
}

#[test]
fn real_slow_kernels_of_one_client_do_not_delay_another() {
    let worker = Worker::with(["-p", "0"], [("TEST_GPU_SLOW_MS", "4000")]);
    let [mut slow, mut quick] = [(); 2].map(|()| Steps::on(&worker.unix()));
    assert!(slow.ask("malloc 4096").starts_with("hipSuccess"));
    assert!(slow.ask("launch 1").starts_with("hipSuccess"));
    slow.begin("sync");
    assert!(quick.ask("malloc 4096").starts_with("hipSuccess"));
    assert_eq!(quick.ask("write 3"), "hipSuccess");
    assert_eq!(quick.ask("read"), "hipSuccess 3");
    assert!(slow.is_busy());
    assert_eq!(slow.answer(), "hipSuccess");
}

#[test]
fn real_client_that_asks_for_all_memory_gets_an_error_and_keeps_what_it_has() {
    let worker = Worker::with(["-p", "0", "--memory", "1MiB"], []);
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("malloc 1000000").starts_with("hipSuccess"));
    assert!(steps.ask("malloc 1000000").starts_with("hipErrorOutOfMemory"));
    assert!(steps.ask("malloc 18446744073709551615").starts_with("hipErrorOutOfMemory"));
    assert_eq!(steps.ask("write 5"), "hipSuccess");
    assert_eq!(steps.ask("free"), "hipSuccess");
    assert!(steps.ask("malloc 1000000").starts_with("hipSuccess"));
}

#[test]
fn real_program_has_the_memory_that_tensorfusion_allows_it() {
    let worker = Worker::start();
    let mut program = Program::on(&worker.unix()).command([test_gpu::built::compile("steps")]);
    let mut steps = Steps::by(program.env("TF_GPU_MEMORY_LIMIT", "2"));
    assert_eq!(steps.ask("memory"), "hipSuccess 2097152 2097152");
    assert!(steps.ask("malloc 2000000").starts_with("hipSuccess"));
    assert!(steps.ask("malloc 100000").starts_with("hipErrorOutOfMemory"));
    assert_eq!(steps.ask("memory"), "hipSuccess 97152 2097152");
    assert_eq!(steps.ask("free"), "hipSuccess");
    assert!(steps.ask("malloc 2097152").starts_with("hipSuccess"));
}

#[test]
fn real_clients_beyond_the_limit_are_told_so() {
    let worker = Worker::with(["-p", "0", "--clients", "1"], []);
    let mut first = Steps::on(&worker.unix());
    assert!(first.ask("malloc 16").starts_with("hipSuccess"));
    let refused = ended(&mut Program::on(&worker.unix()).command([test_gpu::built::compile("vadd")]));
    assert!(!refused.status.success() && refused.stderr.contains("--clients"), "{}", refused.stderr);
    assert_eq!(first.ask("sync"), "hipSuccess");
}

#[test]
fn real_thread_that_waits_stalls_no_other() {
    let worker = Worker::with(["-p", "0"], [("TEST_GPU_SLOW_MS", "4000")]);
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    assert_eq!(steps.ask("beside 50"), "hipSuccess waits");
}

#[test]
fn real_reset_that_tells_an_error_has_freed_all() {
    let worker = Worker::start();
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    assert_eq!(steps.ask("fault"), "hipSuccess");
    assert_eq!(steps.ask("reset"), "hipErrorIllegalAddress");
    assert_eq!(steps.ask("free"), "hipErrorInvalidValue");
}

#[test]
fn real_fork_does_not_wait_for_a_worker_that_says_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut steps = Steps::on(&silent.local_addr().unwrap().to_string());
    let answer = steps.ask("fork-beside");
    let time = answer.strip_prefix("hipSuccess ").unwrap();
    // The other thread waits for 30 s.
    assert!(time.parse::<u32>().unwrap() < 15_000, "{time} ms");
}

#[test]
fn real_forked_child_has_a_connection_of_its_own_and_its_parent_keeps_its_memory() {
    let worker = Worker::start();
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    assert_eq!(steps.ask("write 8"), "hipSuccess");
    assert_eq!(steps.ask("fork"), "hipSuccess 0");
    assert_eq!(steps.ask("read"), "hipSuccess 8");
    until("the child's process is gone", EVENTUALLY, || worker.clients().len() == 1);
}
