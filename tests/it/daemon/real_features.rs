//! The feature file from which NFD labels the node, while another program divides cards.

use std::fs;
use std::time::{Duration, Instant};

use inventory::partitioning::Compute;
use support::fuse;
use support::partitioned::{Driver, Partitioned};

use crate::daemon::running::{applied, eventually};
use crate::setup::laid::Laid;

const FILE: &str = "etc/kubernetes/node-feature-discovery/features.d/rocworker";

#[test]
fn real_the_feature_file_follows_the_cards_and_ends_with_an_undo() {
    if !fuse::require() {
        return;
    }
    let driver = Driver::new(2);
    let laid = Laid::out(&driver.machine(), "kubernetes: {labels: [compute-memory-partition, device-id]}\n");
    let folder = laid.path(FILE).parent().unwrap().to_owned();
    let machine = Partitioned::at(&laid.path(""), driver);
    let daemon = applied(&laid);
    // A node without NFD has no such folder, and gets none.
    std::thread::sleep(Duration::from_millis(500));
    assert!(!folder.exists());
    fs::create_dir_all(&folder).unwrap();
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    let has = |text: &str| fs::read_to_string(laid.path(FILE)).is_ok_and(|file| file.contains(text));
    eventually("NFD's file is there", || has("amd.com/gpu.compute-memory-partition=spx_nps1\n"));
    let file = fs::read_to_string(laid.path(FILE)).unwrap();
    let header = "# Written by rocworker's daemon: docs/kubernetes.md\n# +expiry-time=20";
    assert!(file.starts_with(header) && file.contains("Z\namd.com/gpu=true\n"), "{file}");
    assert!(!file.contains("\ngpu=true\n"), "{file}");
    let since = Instant::now();
    machine.change(|driver| (0..2).for_each(|card| driver.switch(card, Compute::Cpx)));
    eventually("the labels follow", || has("amd.com/gpu.compute-memory-partition=cpx_nps1\n"));
    eprintln!("a switch was in NFD's file after {} ms", since.elapsed().as_millis());
    machine.change(|driver| driver.switch(1, Compute::Dpx));
    eventually("cards that differ have no common label", || !has("compute-memory-partition"));
    // The next daemon goes on with the file; an undo ends it.
    drop(daemon);
    assert!(has("amd.com/gpu=true"));
    let (stop, watched) = (std::sync::atomic::AtomicBool::new(false), laid.path(FILE));
    let stayed = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                if !watched.exists() {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            true
        });
        let daemon = crate::daemon::running::Running::begin(&laid);
        eventually("it looks", || daemon.says()["counts"]["looks"].as_u64() > Some(0));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let stayed = watch.join().unwrap();
        laid.run(&["undo"]).success();
        eventually("the file is gone", || !watched.exists());
        stayed
    });
    assert!(stayed, "the file was gone while a daemon started");
    // What another program has put there stays.
    fs::write(&watched, "amd.com/own=true\n").unwrap();
    laid.run(&["undo"]).success();
    assert!(watched.exists());
    drop(machine);
}
