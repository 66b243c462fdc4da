//! `pcie_bw`, which takes a second: who reads it, and when.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use layout::Nodes;
use support::captures;
use support::fuse::{self, Fault, Served};
use tempfile::TempDir;

use crate::running::Running;

const GPU: &str = "sys/bus/pci/devices/0000:64:00.0";

/// The capture, with a file that its APU does not have.
fn machine() -> (TempDir, Served) {
    let folder = tempfile::tempdir().unwrap();
    captures::phoenix().lay_out(folder.path(), Nodes::Recorded).unwrap();
    fs::write(folder.path().join(GPU).join("pcie_bw"), "100 200 256\n").unwrap();
    let served = Served::new(folder.path());
    served.fault(&format!("/{GPU}/pcie_bw"), Fault::Delay(Duration::from_secs(1)));
    (folder, served)
}

fn was_asked(served: &Served) -> bool {
    served.take_log().iter().any(|(_, path)| path.file_name() == Path::new("pcie_bw").file_name())
}

#[test]
fn real_fuse_traffic_is_measured_in_the_background_alone() {
    if !fuse::require() {
        return;
    }
    let (_folder, served) = machine();
    let running = Running::start(served.path(), &["--pcie-bw".as_ref()]);
    let begun = Instant::now();
    while running.get("/metrics").sample("rocm_pcie_tx{").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    let answer = running.get("/metrics");
    assert_eq!(answer.sample("rocm_pcie_tx{"), Some(200.0 * 256.0));
    assert_eq!(answer.sample("rocm_pcie_rx{"), Some(100.0 * 256.0));
    // promtool wants the samples of each metric together, in the table's order.
    assert_eq!(answer.text().matches("# TYPE rocm_pcie_tx ").count(), 1);
    served.take_log();
    let begun = Instant::now();
    (0..10).for_each(|_| assert!(running.get("/metrics").sample("rocm_pcie_tx{").is_some()));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn real_fuse_traffic_is_measured_only_if_wanted_and_of_no_suspended_card() {
    if !fuse::require() {
        return;
    }
    let (folder, served) = machine();
    let running = Running::start(served.path(), &[]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(running.get("/metrics").sample("rocm_pcie_tx{"), None);
    assert!(!was_asked(&served));
    drop(running);
    fs::write(folder.path().join(GPU).join("power/runtime_status"), "suspended\n").unwrap();
    let running = Running::start(served.path(), &["--pcie-bw".as_ref()]);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(running.get("/metrics").sample("rocm_pcie_tx{"), None);
    assert!(!was_asked(&served));
}

#[test]
fn real_fuse_a_measurement_that_hangs_keeps_no_scrape_waiting() {
    if !fuse::require() {
        return;
    }
    let (_folder, served) = machine();
    served.fault(&format!("/{GPU}/pcie_bw"), Fault::Block);
    let running = Running::start(served.path(), &["--pcie-bw".as_ref()]);
    let begun = Instant::now();
    while running.get("/metrics").sample("rocm_exporter_stuck_reads") != Some(1.0) {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    let begun = Instant::now();
    assert_eq!(running.get("/metrics").status(), 200);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    served.mend();
    served.release();
}
