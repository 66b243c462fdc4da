//! How clients and workers end, and what is left.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hip_protocol::calls::*;
use hip_protocol::envelope::{CHUNK, Envelope, NO_REPLY};
use hip_protocol::{message, v1};
use rustix::process::{Pid, Signal, getpgid, kill_process, test_kill_process};

use crate::client::{Client, Failed, from, pattern, to};
use crate::modules::{launch, load, vadd};
use crate::worker::{Worker, eventually};

pub fn lives(pid: u32) -> bool {
    test_kill_process(Pid::from_raw(pid.cast_signed()).unwrap()).is_ok()
}

/// Whether something ever takes less than a second. Other tests take the processor from single attempts.
fn within_a_second(mut takes: impl FnMut() -> Duration) {
    let mut best = Duration::MAX;
    for _ in 0..10 {
        best = best.min(takes());
        if best < Duration::from_secs(1) {
            return;
        }
    }
    panic!("the best of ten took {best:?}");
}

/// What the library still had when the process of one client ended. The worker kills a process that a busy machine keeps from
/// ending in time, and then there is no report.
fn reported_at_the_end(worker: &Worker) -> Option<String> {
    let report = worker.folder.path().join("report");
    // The worker's trial of the library has written one, too.
    let _ = std::fs::remove_file(&report);
    let mut client = worker.client();
    let pointer = client.malloc(1 << 20);
    client.put(pointer, &pattern(1 << 20));
    client.call(StreamCreate { flags: 0, priority: 0 }).unwrap();
    client.call(EventCreate { flags: 0 }).unwrap();
    client.sync(PER_THREAD).unwrap();
    load(&mut client, &vadd());
    drop(client);
    eventually("the process is gone", || worker.processes().is_empty());
    std::fs::read_to_string(report).ok()
}

#[test]
fn a_client_that_ends_leaves_nothing_in_the_library() {
    let worker = Worker::start(&[], &[]);
    let report = (0..5).find_map(|_| reported_at_the_end(&worker)).unwrap();
    assert!(report.contains("allocations "), "{report}");
    for line in report.lines() {
        assert!(line.ends_with(" 0"), "{report}");
    }
}

#[test]
fn a_client_that_dies_while_its_kernel_runs_is_gone_within_a_second() {
    let worker = Worker::start(&[], &[("TEST_GPU_SLOW_MS", "60000")]);
    let gone = || {
        let mut client = worker.client();
        launch(&mut client);
        client.send(DeviceSync {}, 0, &[]);
        client.lane = 1;
        client.call(Ping {}).unwrap();
        let begun = Instant::now();
        drop(client);
        eventually("the process is gone", || worker.processes().is_empty());
        begun.elapsed()
    };
    within_a_second(gone);
}

#[test]
fn a_client_that_crashes_the_library_touches_no_other() {
    let worker = Worker::start(&[], &[("TEST_GPU_CRASH_AFTER", "1")]);
    let (mut good, mut bad) = (worker.client(), worker.client());
    let pointer = good.malloc(10);
    launch(&mut bad);
    bad.send(DeviceSync {}, 0, &[]);
    let end = bad.closed();
    assert!(end.contains("closed the connection") || end.contains("broke"), "{end}");
    worker.logs("signal");
    good.put(pointer, &[3; 10]);
    assert_eq!(good.get(pointer, 10), [3; 10]);
}

#[test]
fn a_worker_that_is_told_to_end_tells_its_clients() {
    let mut worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    worker.signal(Signal::TERM);
    assert!(client.closed().contains("the worker ends"));
    assert!(worker.child.wait().unwrap().success());
    assert!(!worker.socket().exists());
}

#[test]
fn a_worker_that_ends_leaves_the_next_ones_socket() {
    let mut worker = Worker::start(&[], &[]);
    std::fs::remove_file(worker.socket()).unwrap();
    let _next = std::os::unix::net::UnixListener::bind(worker.socket()).unwrap();
    worker.signal(Signal::TERM);
    assert!(worker.child.wait().unwrap().success());
    assert!(worker.socket().exists());
}

#[test]
fn a_worker_whose_options_have_ended_serves_all_the_same() {
    Worker::start(&["--"], &[]).client().call(Ping {}).unwrap();
}

#[test]
fn a_client_that_reads_nothing_is_ended_in_time() {
    let worker = Worker::start(&["--silence", "1"], &[]);
    let mut client = worker.client();
    let mut ping = Vec::new();
    message::request(&Ping {}, 9, 0, 0, &[], &mut ping);
    let writes = std::thread::spawn(move || while client.write(&ping).is_ok() {});
    eventually("the client is gone", || writes.is_finished() && worker.processes().is_empty());
}

#[test]
fn a_folder_that_keeps_no_more_code_objects_keeps_no_client_from_its_own() {
    let worker = Worker::start(&[], &[]);
    let cache = worker.folder.path().join("cache");
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::write(&cache, "no folder").unwrap();
    load(&mut worker.client(), &vadd());
    worker.logs("cannot be kept");
}

#[test]
fn a_worker_that_is_killed_takes_its_clients_processes_along() {
    let mut worker = Worker::start(&[], &[]);
    let mut client = worker.client();
    let processes = worker.processes();
    assert_eq!(processes.len(), 1);
    worker.child.kill().unwrap();
    client.closed();
    worker.child.wait().unwrap();
    eventually("the processes are gone", || !processes.iter().any(|pid| lives(*pid)));
    // What it left does not keep the next one from its place.
    let socket = worker.socket();
    assert!(socket.exists());
    let mut next = crate::worker::program();
    let next = next
        .arg("--unix")
        .arg(&socket)
        .arg("--cache")
        .arg(worker.folder.path())
        .arg("--metrics")
        .arg(worker.folder.path().join("next"));
    let mut next = next.spawn().unwrap();
    eventually("the next worker listens", || UnixStream::connect(&socket).is_ok());
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn half_a_message_is_waited_for_only_so_long() {
    let worker = Worker::start(&["--silence", "1"], &[]);
    let mut client = worker.client();
    let mut half = Vec::new();
    message::request(&Malloc { bytes: 1 }, 1, 0, 0, &[], &mut half);
    client.write(&half[..half.len() - 3]).unwrap();
    assert!(client.closed().contains("sent nothing for 1 s"));
    // Before Hello the time is another one.
    let mut stranger = UnixStream::connect(worker.socket()).unwrap();
    stranger.write_all(&half[..7]).unwrap();
    eventually("the stranger has a process", || worker.processes().len() == 1);
    eventually("the stranger is gone", || worker.processes().is_empty());
}

#[test]
fn a_wait_that_is_longer_than_allowed_ends_its_client() {
    let worker = Worker::start(&["--longest-wait", "1"], &[("TEST_GPU_SLOW_MS", "60000")]);
    let mut client = worker.client();
    launch(&mut client);
    client.send(DeviceSync {}, 0, &[]);
    assert!(client.closed().contains("--longest-wait"));
    worker.logs("--longest-wait");
    eventually("the process is gone", || worker.processes().is_empty());
    let mut client = worker.client();
    let pointer = client.malloc(1);
    launch(&mut client);
    client.send(Free { pointer }, 0, &[]);
    assert!(client.closed().contains("--longest-wait"));
}

/// A library that ends neither an allocation of one byte nor one of pinned memory.
const STANDS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

static int stand(void) { for (;;) pause(); }

int hipHostMalloc(void **to, size_t bytes, unsigned flags) { return stand(); }

int hipMalloc(void **to, size_t bytes) {
    int (*real)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "hipMalloc");
    return bytes == 1 ? stand() : real(to, bytes);
}
"#;

#[test]
fn a_call_that_the_library_does_not_end_is_a_wait_too() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path(), STANDS);
    let worker = Worker::start(&["--longest-wait", "1", "--hip-library", library.to_str().unwrap()], &[]);
    let mut client = worker.client();
    client.send(Malloc { bytes: 1 }, 0, &[]);
    assert!(client.closed().contains("--longest-wait"));
    let mut client = worker.client();
    let pointer = client.malloc(2);
    client.upload(to(pointer, 2, 0), NO_REPLY, &[0; 2], 2);
    assert!(client.closed().contains("--longest-wait"));
    let mut client = Client::connect(&worker.address(), None);
    let mut malloc = Vec::new();
    v1::Request::Malloc { size: 1 }.put(1, &mut malloc);
    client.write(&malloc).unwrap();
    assert!(client.closed().contains("--longest-wait"));
}

#[test]
fn a_client_that_sends_and_takes_a_copy_slowly_waits_for_no_gpu() {
    const LONG: Duration = Duration::from_millis(3500);
    let worker = Worker::start(&["--longest-wait", "1", "--in-flight", "32MiB"], &[]);
    let mut client = worker.client();
    let bytes = pattern(16 << 20);
    let pointer = client.malloc(bytes.len() as u64);
    client.put(pointer, &bytes);
    let id = client.send(from(pointer, bytes.len() as u64, 0), 0, &[]);
    std::thread::sleep(LONG);
    client.reply::<DeviceToHost>(id).unwrap();
    assert!(client.chunks[&id] == bytes);
    let id = client.send(to(pointer, 4, 0), 0, &[]);
    let envelope = Envelope { flags: CHUNK, lane: 0, status: 0 };
    client.write(&message::prefix(HostToDevice::OP, id, envelope, 4)).unwrap();
    std::thread::sleep(LONG);
    client.write(&[1; 4]).unwrap();
    client.reply::<HostToDevice>(id).unwrap();
}

#[test]
fn clients_that_are_killed_anywhere_in_their_copies_leave_no_process() {
    let worker = Worker::start(&[], &[]);
    for round in 0..50_usize {
        let mut client = worker.client();
        let bytes = pattern(2 << 20);
        let pointer = client.malloc(bytes.len() as u64);
        let mut out = Vec::new();
        message::request(&to(pointer, bytes.len() as u64, 0), 7, 0, 0, &[], &mut out);
        for chunk in bytes.chunks(1 << 18) {
            let envelope = Envelope { flags: CHUNK, lane: 0, status: 0 };
            out.extend(message::prefix(HostToDevice::OP, 7, envelope, chunk.len()));
            out.extend(chunk);
        }
        let _ = client.write(&out[..out.len() * round / 50]);
        if round % 3 == 0
            && let Some(pid) = worker.processes().first()
        {
            let _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL);
        }
    }
    eventually("all processes are gone", || worker.processes().is_empty());
    assert_eq!(worker.client().call(EventSync { event: 3 }), Err(Failed::Now(400)));
}

/// A library that prints at each synchronisation, as kernels with printf do, and is the tests' GPU otherwise.
const PRINTS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int hipDeviceSynchronize(void) {
    int (*real)(void) = (int (*)(void))dlsym(RTLD_NEXT, "hipDeviceSynchronize");
    for (int i = 0; i < 20000; i++) printf("thread %d\n", i);
    return real ? real() : 1;
}
"#;

/// Builds a library that is the tests' GPU but for what its source has: its path.
fn library(folder: &Path, code: &str) -> PathBuf {
    let (source, library) = (folder.join("own.c"), folder.join("own.so"));
    std::fs::write(&source, code).unwrap();
    let gpu = test_gpu::built::folder();
    let mut cc = std::process::Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).args([&library, &source]);
    cc.arg("-L").arg(&gpu).arg("-l:libamdhip64.so.5").arg(format!("-Wl,-rpath,{}", gpu.display()));
    assert!(cc.status().unwrap().success());
    library
}

#[test]
fn what_kernels_print_reaches_the_client_before_its_wait_ends() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path(), PRINTS);
    let worker = Worker::start(&["--hip-library", library.to_str().unwrap()], &[]);
    let mut client = worker.client();
    client.call(DeviceSync {}).unwrap();
    let expected: String = (0..20000).map(|thread| format!("thread {thread}\n")).collect();
    assert!(client.printed == expected.as_bytes(), "{} bytes", client.printed.len());
}

#[test]
fn what_kernels_print_reaches_the_client_before_a_fault_that_is_known_already() {
    const FAULTS: &str = r#"
        #include <stdio.h>
        int hipStreamQuery(void *stream) { printf("before\n"); return 700; }
    "#;
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path(), FAULTS);
    let worker = Worker::start(&["--hip-library", library.to_str().unwrap()], &[]);
    let mut client = worker.client();
    assert_eq!(client.sync(0), Err(Failed::Now(700)));
    assert_eq!(client.printed, b"before\n");
    assert_eq!(client.call(StreamQuery { stream: 0 }), Err(Failed::Now(700)));
    assert_eq!(client.printed, b"before\nbefore\n");
}

#[test]
fn a_client_that_dies_while_the_library_opens_is_gone_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(
        folder.path(),
        "#include <unistd.h>\nint hipInit(unsigned flags) { for (;;) pause(); return (int)flags; }\n",
    );
    let worker = Worker::start(&["--hip-library", library.to_str().unwrap()], &[]);
    within_a_second(|| {
        let mut client = Client::connect(&worker.address(), None);
        client.send(Hello { token: [0; 32], pid: 1, memory: 0 }, 0, &[]);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(worker.processes().len(), 1);
        let begun = Instant::now();
        drop(client);
        eventually("the process is gone", || worker.processes().is_empty());
        begun.elapsed()
    });
}

#[test]
fn a_terminals_interruption_reaches_the_worker_alone() {
    let worker = Worker::start(&[], &[]);
    let _client = worker.client();
    let pid = Pid::from_raw(worker.processes()[0].cast_signed()).unwrap();
    assert_eq!(getpgid(Some(pid)).unwrap(), pid);
}
