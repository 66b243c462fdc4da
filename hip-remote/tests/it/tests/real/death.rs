use std::time::{Duration, Instant};

use hip_remote_tests::{Machine, Program, Steps, Worker, ended, is_alive, until};

/// How soon a client's death has freed all, while other tests run. The worker's own tests hold the second that
/// users are promised.
const FREED: Duration = Duration::from_secs(3);
/// How soon a worker's death is known.
const KNOWN: Duration = Duration::from_secs(10);

const LOST: &str = "hipErrorContextIsDestroyed";

fn busy(worker: &Worker) -> Steps {
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("malloc 4194304").starts_with("hipSuccess"));
    assert_eq!(steps.ask("stream"), "hipSuccess");
    assert_eq!(steps.ask("copies 1"), "hipSuccess");
    steps.begin("copies 1000000");
    steps
}

/// Everything that a worker keeps in its folder beside its log, its socket, its report and its cache.
fn left(worker: &Worker) -> Vec<String> {
    let entries = std::fs::read_dir(worker.folder.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !["log", "hip.sock", "report", "cache", "counts"].contains(&name.as_str())).collect()
}

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Whether the process that served the client gave all back itself; else its parent killed it, and the kernel took all.
fn client_killed(machine: &Machine, worker: &Worker, moment: Duration) -> bool {
    let _ = std::fs::remove_file(worker.path("report"));
    let mut steps = busy(worker);
    std::thread::sleep(moment);
    assert_eq!(machine.leased().len(), 2, "a lease and a record: {:?}", machine.leased());
    steps.kill();
    worker.until_free(FREED);
    until("the client has leased nothing", FREED, || machine.leased().is_empty());
    let report = std::fs::read_to_string(worker.path("report"));
    if let Ok(report) = &report {
        // Pinned buffers and events are also the worker's own, and a copy that was under way keeps one until the process is gone.
        for left in ["allocations", "streams", "modules"] {
            assert!(report.contains(&format!("{left} 0\n")), "{report}");
        }
    }
    report.is_ok()
}

#[test]
fn real_client_that_is_killed_leaves_nothing_on_the_worker() {
    let machine = Machine::new();
    let worker = machine.worker();
    let [first, others @ ..] = [1, 7, 23, 61, 140].map(Duration::from_millis);
    let mut gave_back = usize::from(client_killed(&machine, &worker, first));
    // A worker that has just begun to listen may not have opened all yet.
    let before = descriptors(worker.pid());
    gave_back += others.into_iter().filter(|&moment| client_killed(&machine, &worker, moment)).count();
    assert!(gave_back > 0);
    until("the worker has as many descriptors as before", FREED, || descriptors(worker.pid()) == before);
    assert_eq!(left(&worker), [""; 0]);
    ended(&mut Program::on(&worker.unix()).command([test_gpu::built::compile("vadd")])).well();
}

#[test]
fn real_worker_that_is_killed_takes_its_processes_along_and_its_clients_know_soon() {
    for whole in [true, false] {
        let mut worker = Worker::start();
        let mut steps = busy(&worker);
        std::thread::sleep(Duration::from_millis(50));
        let processes = worker.clients();
        let begin = Instant::now();
        if whole {
            worker.kill();
        } else {
            let pid = rustix::process::Pid::from_raw(i32::try_from(processes[0]).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        assert_eq!(steps.answer(), LOST);
        assert!(begin.elapsed() < KNOWN, "{:?}", begin.elapsed());
        until("the worker's processes are gone", FREED, || !processes.iter().any(|&pid| is_alive(pid)));
        for step in ["sync", "malloc 16", "write 1", "last"] {
            let again = steps.ask(step);
            assert!(again.starts_with(LOST), "{step}: {again}");
        }
    }
}

#[test]
fn real_worker_that_ends_orderly_tells_its_clients() {
    let mut worker = Worker::start();
    let mut steps = Steps::on(&worker.unix());
    assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
    let processes = worker.clients();
    worker.end();
    assert!(!processes.iter().any(|&pid| is_alive(pid)));
    assert_eq!(steps.ask("sync"), LOST);
    assert!(!worker.path("hip.sock").exists());
}

#[test]
fn real_worker_that_stops_without_a_sign_is_known_within_ten_seconds() {
    let worker = Worker::start();
    let mut waits = Steps::on(&worker.unix());
    let mut launches = Steps::on(&worker.unix());
    for steps in [&mut waits, &mut launches] {
        assert!(steps.ask("malloc 4096").starts_with("hipSuccess"));
        // The first launch loads the code.
        assert_eq!(steps.ask("launch 1"), "hipSuccess");
    }
    for client in worker.clients() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(client).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    let begin = Instant::now();
    waits.begin("sync");
    // Far more calls than the buffers between both hold.
    launches.begin("pipeline 200000");
    assert!(launches.answer().starts_with(LOST));
    assert_eq!(waits.answer(), LOST);
    assert!(begin.elapsed() < KNOWN, "{:?}", begin.elapsed());
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_500_kills_at_random_moments_leave_nothing() {
    let machine = Machine::new();
    let mut worker = machine.worker();
    let mut before = None;
    let mut random = std::process::id();
    for kill in 0..500 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let moment = Duration::from_micros(u64::from(random >> 15));
        if kill % 5 == 4 {
            let mut steps = busy(&worker);
            std::thread::sleep(moment);
            let processes = worker.clients();
            worker.kill();
            assert_eq!(steps.answer(), LOST);
            until("the worker's processes are gone", FREED, || !processes.iter().any(|&pid| is_alive(pid)));
            // The next worker's first client clears away what a client of the killed one leased.
            worker = machine.worker();
            before = None;
        } else {
            client_killed(&machine, &worker, moment);
            // A worker that has just begun to listen may not have opened all yet.
            let before = *before.get_or_insert_with(|| descriptors(worker.pid()));
            // The worker may be writing its counts, into a file of its folder.
            until("the worker has no more descriptors and files than before", FREED, || {
                descriptors(worker.pid()) <= before && left(&worker).is_empty()
            });
        }
    }
    client_killed(&machine, &worker, Duration::ZERO);
}
