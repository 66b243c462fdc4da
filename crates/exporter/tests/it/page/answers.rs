//! The page's headers, and the page under many requests, or where little can be read.

use std::fs;
use std::io::Read as _;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use layout::{Machine, Nodes};
use support::captures;
use support::fuse::{self, Fault, Served};

use super::machine;
use crate::clients::damage;
use crate::running::Running;

const POLICY: &str = "content-security-policy";

#[test]
fn a_page_comes_with_headers_that_let_a_browser_run_and_keep_nothing() {
    let folder = machine::busy();
    let running = Running::start(folder.path(), &[]);
    let page = running.get("/");
    assert_eq!((page.status(), page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    for (name, expected) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.header(name), Some(expected), "{}", page.head);
    }
    assert!(
        page.header(POLICY).unwrap().starts_with("default-src 'none'; style-src 'sha256-"),
        "{}",
        page.head
    );
    for sentence in
        ["<title>worker-1: 1 of 4 cards unhealthy</title>", "&lt;script&gt;x", "/etc/docker/daemon.json"]
    {
        assert!(page.text().contains(sentence), "{sentence}: {}", page.text());
    }
    assert!(page.body.len() < 200_000, "{} bytes", page.body.len());

    let packed = running.get_with("/", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert!(text.ends_with("</html>") && packed.body.len() < page.body.len() / 3, "{}", packed.body.len());

    let head = running.send(b"HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!((head.status(), head.body.len()), (200, 0));
    assert!(head.header(POLICY).is_some() && head.header("content-length").is_some(), "{}", head.head);
    let other = running.get("/index.html");
    assert_eq!((other.status(), other.text()), (404, "there are / (a page), /metrics and /healthz\n"));
    let post = running.send(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((post.status(), post.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn without_a_daemon_or_with_a_newer_one_the_page_says_what_to_do() {
    let folder = machine::busy();
    let running = Running::start(folder.path(), &[]);
    let file = folder.path().join("run/rocworker/exporter.json");
    let text = fs::read_to_string(&file).unwrap();
    let unreported = "rocworker's daemon publishes nothing, or its file is more than 30 seconds old";
    assert!(!running.get("/").text().contains(unreported));
    fs::write(&file, text.replace("\"schema_version\":1", "\"schema_version\":2")).unwrap();
    let page = running.get("/");
    for sentence in
        [unreported, "schema_version 2 of a newer version (this one reads 1): use one version of rocworker"]
    {
        assert!(page.text().contains(sentence), "{sentence}: {}", page.text());
    }
    fs::remove_file(&file).unwrap();
    let page = running.get("/");
    for sentence in [unreported, "systemctl status rocworker", "rocworker apply"] {
        assert!(page.text().contains(sentence), "{sentence}: {}", page.text());
    }
    fs::remove_file(folder.path().join("run/rocworker/health.json")).unwrap();
    let page = running.get("/");
    assert!(page.text().contains("<title>worker-1: health unknown for 4 cards</title>"), "{}", page.text());
}

#[test]
fn a_thousand_requests_for_the_page_and_metrics_at_once_share_few_scrapes() {
    let root = tempfile::tempdir().unwrap();
    Machine::instinct_with_readings(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    damage(root.path());
    let scrapes = Running::start(root.path(), &[]).scrapes_for(1000, &["/", "/", "/metrics"]);
    assert!(scrapes < 200.0, "{scrapes}");
}

#[test]
#[ignore = "cargo xtask test --all"]
fn memory_does_not_grow_with_pages() {
    let root = tempfile::tempdir().unwrap();
    Machine::instinct_with_readings(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let running = Running::start(root.path(), &[]);
    let ask = |count| {
        for _ in 0..count {
            for path in ["/", "/metrics"] {
                assert_eq!(running.get(path).status(), 200);
            }
        }
    };
    ask(20);
    let (resident, threads) = (running.resident_kib(), running.threads());
    ask(60);
    assert!(running.resident_kib() < resident + 1024, "{resident} KiB became {}", running.resident_kib());
    assert_eq!(running.threads(), threads);
}

#[test]
fn real_fuse_a_page_says_what_hangs_and_shows_the_rest() {
    if !fuse::require() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    captures::phoenix().lay_out(folder.path(), Nodes::Recorded).unwrap();
    let served = Served::new(folder.path());
    let running = Running::start(served.path(), &[]);
    let whole = running.get("/");
    assert!(!whole.text().contains("What is missing, and why"), "{}", whole.text());
    let file = "/sys/bus/pci/devices/0000:64:00.0/mem_info_gtt_used";
    served.fault(file, Fault::Block);
    let begun = Instant::now();
    let page = running.get("/");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(page.status(), 200);
    for sentence in [
        "What is missing, and why",
        "mem_info_gtt_used does not answer",
        "0000:64:00.0",
        "Unknown: memory in use: ",
    ] {
        assert!(page.text().contains(sentence), "{sentence}: {}", page.text());
    }
    assert!(page.text().contains(" W<"), "{}", page.text());
    served.mend();
    served.release();
    let begun = Instant::now();
    while running.get("/").text().contains("What is missing, and why") {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
