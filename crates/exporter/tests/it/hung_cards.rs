//! Cards of which no file answers, or each late, beside cards that are well.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use layout::{Machine, Nodes};
use support::fuse::{self, Fault, Served};
use tempfile::TempDir;

use crate::running::{Answer, Running};

/// The code of PCI and DRM answers these, and no driver.
const NO_DRIVERS: &[&str] = &[
    "class",
    "dev",
    "device",
    "revision",
    "runtime_status",
    "subsystem_device",
    "subsystem_vendor",
    "uevent",
    "vendor",
];

/// A device counts as hung after this many of its files.
const A_DEVICE: usize = 5;

/// Fields drop in this order: a program that runs keeps the mount busy.
struct Instincts {
    running: Running,
    served: Served,
    _folder: TempDir,
}

fn instincts(cards: u8, partitions: u8) -> Instincts {
    let folder = tempfile::tempdir().unwrap();
    Machine::instinct_with_readings(cards, partitions).lay_out(folder.path(), Nodes::Recorded).unwrap();
    let served = Served::new(folder.path());
    let running = Running::start(served.path(), &[]);
    Instincts { running, served, _folder: folder }
}

/// The address of a card of [`Machine::instinct`] by its number.
fn address(card: usize) -> String {
    format!("0000:{:02x}:00.0", 5 + 16 * card)
}

impl Instincts {
    /// Does so to all files of these cards that `which` takes by its name.
    fn fault(&self, cards: &[usize], fault: Fault, which: impl Fn(&str) -> bool) {
        for card in cards {
            let folder = format!("/sys/bus/pci/devices/{}", address(*card));
            let mut files = Vec::new();
            files_beneath(&self.served.path().join(&folder[1..]), &mut files);
            let files: Vec<_> =
                files.iter().filter(|file| which(file.file_name().unwrap().to_str().unwrap())).collect();
            assert!(files.len() > 40, "{} files", files.len());
            for file in files {
                let inside = file.strip_prefix(self.served.path()).unwrap().to_str().unwrap();
                self.served.fault(&format!("/{inside}"), fault);
            }
        }
    }

    /// The time of a scrape, and its answer.
    fn scrape(&self) -> (Duration, Answer) {
        let begun = Instant::now();
        let answer = self.running.get("/metrics");
        (begun.elapsed(), answer)
    }

    fn end(self) {
        self.served.mend();
        self.served.release();
    }
}

fn files_beneath(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files_beneath(&entry.path(), files);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
}

/// The series of these cards.
fn series(answer: &Answer, cards: &[usize]) -> Vec<String> {
    let labels: Vec<_> = cards.iter().map(|card| format!("pci=\"{}\"", address(*card))).collect();
    let lines = answer.text().lines().filter(|line| labels.iter().any(|label| line.contains(label)));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series.to_owned()).collect()
}

fn is_drivers(name: &str) -> bool {
    !NO_DRIVERS.contains(&name)
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_fuse_cards_that_hang_cost_a_second_once_and_their_own_metrics() {
    if !fuse::require() {
        return;
    }
    let machine = instincts(4, 1);
    let whole = machine.running.get("/metrics");
    let threads = machine.running.threads();
    machine.fault(&[1, 2], Fault::Block, is_drivers);
    let (took, holed) = machine.scrape();
    assert_eq!(holed.status(), 200, "{}", holed.text());
    assert!(took < Duration::from_secs(3), "{took:?}");
    let healthy = series(&whole, &[0, 3]);
    assert!(healthy.len() > 100, "{}", healthy.len());
    assert_eq!(series(&holed, &[0, 3]), healthy);
    // PCI's own files tell who the cards are.
    for card in [1, 2] {
        let left = series(&holed, &[card]);
        assert!(left.iter().any(|series| series.starts_with("rocm_gpu_info{")), "{left:?}");
        assert!(!left.iter().any(|series| series.starts_with("rocm_gpu_temperature{")), "{left:?}");
    }
    let most = 2 * A_DEVICE;
    assert!(machine.running.threads() <= threads + most, "{} threads", machine.running.threads());
    let (hanging, begun) = (machine.served.hanging(), Instant::now());
    for _ in 0..1000 {
        assert_eq!(machine.running.get("/metrics").status(), 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    assert_eq!(machine.served.hanging(), hanging);
    assert!(machine.running.threads() <= threads + most, "{} threads", machine.running.threads());
    let mut logged = (0..most + 2).map(|_| machine.running.says());
    let folder = format!("{} does not answer: its metrics are absent", address(1));
    assert!(logged.any(|line| line.contains(&folder)));
    machine.end();
}

#[test]
fn real_fuse_cards_of_which_even_pcis_files_hang_leave_the_others_alone() {
    if !fuse::require() {
        return;
    }
    let machine = instincts(8, 8);
    let whole = machine.running.get("/metrics");
    let threads = machine.running.threads();
    machine.fault(&[0, 5], Fault::Block, |_| true);
    let (_, holed) = machine.scrape();
    let others = [1, 2, 3, 4, 6, 7];
    assert_eq!(holed.status(), 200, "{}", holed.text());
    // A card whose PCI files hang is not there, and has no number.
    let of_others = |answer: &Answer| -> Vec<String> {
        let unnumbered = |series: String| match series.split_once("{gpu=") {
            Some((name, labels)) => format!("{name}{{{}", labels.split_once(',').unwrap().1),
            None => series,
        };
        let mut series: Vec<_> = series(answer, &others).into_iter().map(unnumbered).collect();
        series.sort();
        series
    };
    let (left, right) = (of_others(&holed), of_others(&whole));
    let lost: Vec<_> = right.iter().filter(|series| !left.contains(series)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    // Each partition has a node in DRM, of which `dev` and `uevent` hang here too.
    let most = 2 * (A_DEVICE + 3 * 8);
    assert!(machine.running.threads() <= threads + most, "{} threads", machine.running.threads());
    let (took, again) = machine.scrape();
    assert_eq!((again.status(), took < Duration::from_secs(2)), (200, true), "{took:?}");
    machine.end();
}

#[test]
fn real_fuse_a_driver_that_answers_after_two_seconds_delays_one_scrape_a_minute() {
    if !fuse::require() {
        return;
    }
    let machine = instincts(8, 1);
    let whole = machine.running.get("/metrics");
    machine.fault(&[0, 1, 2, 3, 4, 5, 6], Fault::Delay(Duration::from_secs(2)), is_drivers);
    let (_, first) = machine.scrape();
    assert_eq!(first.status(), 200, "{}", first.text());
    // All of the reads have come back.
    let begun = Instant::now();
    while machine.running.get("/metrics").sample("rocm_exporter_stuck_reads") != Some(0.0) {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    for _ in 0..20 {
        let (took, answer) = machine.scrape();
        assert_eq!((answer.status(), took < Duration::from_secs(1)), (200, true), "{took:?}");
        assert_eq!(series(&answer, &[7]), series(&whole, &[7]));
    }
    machine.end();
}
