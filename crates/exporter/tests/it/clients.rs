//! Clients that are slow, many, or wrong.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::path::Path;
use std::time::{Duration, Instant};

use layout::{Machine, Nodes};

use crate::running::{Answer, Running};

fn empty() -> (tempfile::TempDir, Running) {
    let root = tempfile::tempdir().unwrap();
    let running = Running::start(root.path(), &[]);
    (root, running)
}

/// A daemon's file that each scrape refuses, and counts.
pub(crate) fn damage(top: &Path) {
    let folder = top.join("run/rocworker");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("exporter.json"), "{").unwrap();
}

#[test]
fn a_request_line_of_a_megabyte_is_refused_and_its_connection_closed() {
    let (_root, running) = empty();
    let resident = running.resident_kib();
    for _ in 0..20 {
        let path = "x".repeat(1 << 20);
        let status = running.get(&format!("/{path}")).status();
        // The kernel may drop the answer with what was never read.
        assert!([0, 400, 414, 431].contains(&status), "{status}");
        let status = running.get_with("/healthz", &format!("X: {path}\r\n")).status();
        assert!([0, 400, 414, 431].contains(&status), "{status}");
    }
    assert!(running.resident_kib() < resident + 4096);
    // A request that fits into a socket's buffer gets its answer.
    assert_eq!(running.get(&format!("/{}", "x".repeat(20 << 10))).status(), 431);
    assert_eq!(running.get("/healthz").status(), 200);
}

#[test]
fn what_is_no_request_is_refused() {
    let (_root, running) = empty();
    for bytes in
        [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..], b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        assert_eq!(running.send(bytes).status(), 400);
    }
    assert_eq!(running.get("/healthz").status(), 200);
}

#[test]
fn a_client_that_closes_its_half_gets_its_answer() {
    let (_root, running) = empty();
    let mut stream = running.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(Answer::read(stream).status(), 200);
}

#[test]
fn a_client_that_sends_no_whole_request_is_closed() {
    let (_root, running) = empty();
    let begun = Instant::now();
    let mut silent = running.connect();
    let mut slow = running.connect();
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    for _ in 0..8 {
        slow.write_all(b"X: y\r\n").unwrap();
        std::thread::sleep(Duration::from_secs(1));
    }
    for stream in [&mut silent, &mut slow] {
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
    assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
}

#[test]
fn a_thousand_idle_connections_do_not_keep_a_scrape_out() {
    let (_root, running) = empty();
    let idle: Vec<_> = (0..1000).map(|_| running.connect()).collect();
    let begun = Instant::now();
    assert_eq!(running.get("/metrics").status(), 200);
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let open = std::fs::read_dir(format!("/proc/{}/fd", running.pid())).unwrap().count();
    assert!(open < 600, "{open} descriptors");
    drop(idle);
    assert_eq!(running.get("/metrics").status(), 200);
}

#[test]
fn a_thousand_requests_at_once_are_all_answered_by_few_scrapes() {
    let root = tempfile::tempdir().unwrap();
    Machine::instinct(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    damage(root.path());
    let scrapes = Running::start(root.path(), &[]).scrapes_for(1000, &["/metrics"]);
    assert!(scrapes < 200.0, "{scrapes}");
}

#[test]
fn clients_that_never_read_their_answers_keep_nobody_out() {
    let root = tempfile::tempdir().unwrap();
    Machine::instinct(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let running = Running::start(root.path(), &[]);
    let mut streams: Vec<_> = (0..200).map(|_| running.connect()).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    }
    assert_eq!(running.get("/metrics").status(), 200);
    assert!(running.resident_kib() < 48 << 10, "{} KiB", running.resident_kib());
}

/// A thousand scrapes keep resident memory below 16 MiB in the program as it ships; `cargo xtask bench` measures that one.
#[test]
fn memory_does_not_grow_with_scrapes() {
    let root = tempfile::tempdir().unwrap();
    Machine::instinct(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let running = Running::start(root.path(), &[]);
    let scrape = |count| (0..count).for_each(|_| assert_eq!(running.get("/metrics").status(), 200));
    scrape(20);
    let (resident, threads) = (running.resident_kib(), running.threads());
    scrape(80);
    assert!(running.resident_kib() < resident + 1024, "{resident} KiB became {}", running.resident_kib());
    assert_eq!(running.threads(), threads);
}
