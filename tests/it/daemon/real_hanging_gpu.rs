//! Which files of a GPU are read for its health, and what one costs that does not answer: a machine served through FUSE.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gpu_health::rules::Rules;
use inventory::health::{GpuHealth, Health, State};
use layout::{Machine, Nodes};
use rocworker::health::Observer;
use root::Root;
use support::fuse::{Fault, Served, require};
use tempfile::TempDir;

/// The cards of a synthetic Instinct machine.
const FIRST: &str = "0000:05:00.0";
const SECOND: &str = "0000:15:00.0";

const LOG: &str = "5,0,0,-;Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)\n3,1,2000000,-;amdgpu \
                   0000:05:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=2219, emitted seq=2221\n";

fn folder(card: &str) -> String {
    format!("/sys/bus/pci/devices/{card}")
}

fn served(machine: &Machine) -> (TempDir, Served, Root) {
    let laid = tempfile::tempdir().unwrap();
    machine.lay_out(laid.path(), Nodes::Recorded).unwrap();
    let served = Served::new(laid.path());
    let root = Root::open(served.path()).unwrap();
    (laid, served, root)
}

fn of<'h>(health: &'h Health, card: &str) -> &'h GpuHealth {
    health.gpus.iter().find(|gpu| gpu.pci.to_string() == card).unwrap()
}

#[test]
fn real_fuse_a_suspended_card_is_judged_and_no_file_that_wakes_it_is_read() {
    if !require() {
        return;
    }
    let status = format!("{}/power/runtime_status", folder(FIRST));
    let machine = Machine::instinct_with_readings(2, 1).put(&status, "suspended\n").put("/dev/kmsg", LOG);
    let (_laid, served, root) = served(&machine);
    let read_of = |card: &str| -> BTreeSet<PathBuf> {
        let paths = served.take_log().into_iter().map(|(_, path)| path);
        paths.filter(|path| path.components().any(|part| part.as_os_str() == card)).collect()
    };
    served.take_log();
    drop(amdgpu::read(&root));
    let by_detection = read_of(FIRST);
    let health = Observer::new(&root).judge(&root, &Rules::built_in(), None, 1_790_000_000).health;
    let more: Vec<PathBuf> = read_of(FIRST).difference(&by_detection).cloned().collect();
    assert!(more.iter().all(|path| path.ends_with("power/runtime_status")), "{more:#?}");
    assert_eq!((of(&health, FIRST).state, of(&health, SECOND).state), (State::Unhealthy, State::Healthy));
    end(&served, root);
}

#[test]
fn real_fuse_a_card_whose_files_hang_costs_a_second_once_and_the_kernels_log_still_counts() {
    if !require() {
        return;
    }
    let machine = Machine::instinct_with_readings(2, 1).put("/dev/kmsg", LOG);
    let (_laid, served, root) = served(&machine);
    for file in ["gpu_busy_percent", "mem_busy_percent", "mem_info_vram_used", "gpu_metrics", "pp_dpm_sclk"] {
        served.fault(&format!("{}/{file}", folder(FIRST)), Fault::Block);
    }
    let mut observer = Observer::new(&root);
    let mut last = None;
    let mut judged = |now| {
        let began = Instant::now();
        let health = observer.judge(&root, &Rules::built_in(), last.as_ref(), now).health;
        last = Some(health.clone());
        (health, began.elapsed())
    };
    let (health, first) = judged(1_790_000_000);
    assert_eq!((of(&health, FIRST).hang, of(&health, FIRST).state), (Some(true), State::Unhealthy));
    assert_eq!(of(&health, SECOND).score, Some(95), "its slot has 8 lanes: {health:#?}");
    assert!(!of(&health, FIRST).unknown.is_empty(), "{health:#?}");
    assert!(first < Duration::from_secs(3), "{first:?}");
    let (health, again) = judged(1_790_000_010);
    assert!(again < first / 2, "{first:?}, then {again:?}");
    assert_eq!(of(&health, FIRST).state, State::Unhealthy);
    drop(observer);
    end(&served, root);
}

/// Waits until no thread has a file of the mount open: it can be unmounted then.
fn end(served: &Served, root: Root) {
    drop(root);
    served.mend();
    support::waiting::eventually("no thread reads on", || {
        served.release();
        let mut open = fs::read_dir("/proc/self/fd").unwrap().map_while(Result::ok);
        !open.any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.starts_with(served.path())))
    });
}
