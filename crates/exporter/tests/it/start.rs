use std::fs;
use std::io::Read as _;
use std::process::{Command, Output};

use layout::Nodes;
use nix::sys::signal::Signal;
use support::{captures, real};

use crate::running::{PROGRAM, Running};

fn run(arguments: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = Command::new(PROGRAM).args(arguments).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn what_is_wrong_at_the_start_is_one_sentence() {
    let (code, stderr) = run(&["--listen", "localhost"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("write an IP address and a port"), "{stderr}");
    assert_eq!(run(&["--nonsense"]).0, 2);
    assert_eq!(run(&["--help"]).0, 0);
    let (code, stderr) = run(&["--root", "/nowhere/at/all"]);
    assert_eq!(
        (code, stderr.as_str()),
        (2, "rocworker-exporter: cannot open /nowhere/at/all: No such file or directory\n")
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, stderr) = run(&["--listen", &address]);
    assert_eq!(code, 1);
    assert!(
        stderr.starts_with(&format!("rocworker-exporter: cannot listen on {address}: Address in use")),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1);
}

#[test]
fn a_signal_ends_it_at_once_even_while_a_client_waits() {
    let root = tempfile::tempdir().unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let running = Running::start(root.path(), &[]);
        let mut client = running.connect();
        let begun = std::time::Instant::now();
        assert_eq!(running.end(signal), Some(0));
        assert!(begun.elapsed().as_secs() < 2);
        assert_eq!(client.read(&mut [0; 8]).unwrap_or(0), 0);
    }
}

#[test]
fn several_addresses_and_the_sources_spelling_are_taken() {
    let root = tempfile::tempdir().unwrap();
    let running = Running::start(root.path(), &["--web.listen-address=127.0.0.1:0".as_ref()]);
    let second = running.says();
    assert!(second.starts_with("rocworker-exporter: http://127.0.0.1:"), "{second}");
    assert!(
        second.ends_with(&format!("/metrics answers for the machine at {}", root.path().display())),
        "{second}"
    );
}

#[test]
fn paths_and_methods_get_their_status() {
    let root = tempfile::tempdir().unwrap();
    let running = Running::start(root.path(), &[]);
    for (path, status) in
        [("/", 200), ("/metrics", 200), ("/metrics?x=y", 200), ("/healthz", 200), ("/x", 404)]
    {
        assert_eq!(running.get(path).status(), status, "{path}");
    }
    assert!(running.get("/").text().contains("<a href=\"metrics\">"));
    let post =
        running.send(b"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((post.status(), post.header("allow")), (405, Some("GET, HEAD")));
    let full = running.get("/metrics");
    let head = running.send(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!((head.status(), head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), full.header("content-type"));
    let old = running.send(b"GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!((old.status(), old.text()), (200, "ok\n"));
}

#[test]
fn the_client_chooses_format_and_compression() {
    let root = tempfile::tempdir().unwrap();
    captures::phoenix().lay_out(root.path(), Nodes::Recorded).unwrap();
    let running = Running::start(root.path(), &[]);
    let plain = running.get("/metrics");
    assert!(plain.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(plain.text().contains("rocm_gpu_info{"), "{}", plain.text());
    let open = running
        .get_with("/metrics", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n");
    assert!(open.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(open.text().ends_with("# EOF\n"));
    let packed = running.get_with("/metrics", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(&*packed.body).read_to_string(&mut unpacked).unwrap();
    assert!(unpacked.contains("rocm_gpu_info{"));
}

#[test]
fn real_setpriv_nobody_can_run_it() {
    if !real::require_root(&["setpriv"]) {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    captures::phoenix().lay_out(root.path(), Nodes::Recorded).unwrap();
    // The build may be in a folder that only root may enter.
    let program = root.path().join("rocworker-exporter");
    fs::copy(PROGRAM, &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
    ]);
    command.arg(&program).arg("--root").arg(root.path()).arg("--listen=127.0.0.1:0");
    let running = Running::of(command);
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    assert!(status.contains("Uid:\t65534\t65534"), "{status}");
    assert!(running.get("/metrics").sample("rocm_gpu_temperature{").is_some());
}

#[test]
fn a_gpu_metrics_version_that_nobody_knows_is_named_in_the_journal_once() {
    let folder = tempfile::tempdir().unwrap();
    layout::Machine::instinct_with_readings(1, 1).lay_out(folder.path(), layout::Nodes::Recorded).unwrap();
    let file = folder.path().join("sys/bus/pci/devices/0000:05:00.0/gpu_metrics");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[2..4].copy_from_slice(&[9, 9]);
    std::fs::write(&file, bytes).unwrap();
    let running = Running::start(folder.path(), &[]);
    for _ in 0..3 {
        assert_eq!(running.get("/metrics").status(), 200);
    }
    // The next message proves that the first one was not logged twice.
    std::fs::write(&file, "").unwrap();
    running.get("/metrics");
    let (first, second) = (running.says(), running.says());
    assert!(first.contains("gpu_metrics") && first.contains("9.9"), "{first}");
    assert!(second.contains("gpu_metrics") && !second.contains("9.9"), "{second}");
}
