//! Reads that hang, for the program as a whole.

use std::fs;
use std::time::{Duration, Instant};

use layout::Nodes;
use support::captures;
use support::fuse::{self, Fault, Operation, Served};
use tempfile::TempDir;

use crate::running::{Answer, Running};

const GPU: &str = "/sys/bus/pci/devices/0000:64:00.0";

fn phoenix() -> (TempDir, Served, Running) {
    let folder = tempfile::tempdir().unwrap();
    captures::phoenix().lay_out(folder.path(), Nodes::Recorded).unwrap();
    let served = Served::new(folder.path());
    let running = Running::start(served.path(), &[]);
    (folder, served, running)
}

fn names(answer: &Answer) -> Vec<String> {
    let lines = answer.text().lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series.to_owned()).collect()
}

#[test]
fn real_fuse_a_file_that_hangs_costs_its_own_metrics_and_one_thread() {
    if !fuse::require() {
        return;
    }
    let (_folder, served, running) = phoenix();
    let whole = running.get("/metrics");
    assert_eq!(whole.sample("rocm_exporter_stuck_reads"), Some(0.0), "{}", whole.text());
    let threads = running.threads();
    served.fault(&format!("{GPU}/mem_info_gtt_used"), Fault::Block);
    let begun = Instant::now();
    let holed = running.get("/metrics");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(holed.sample("rocm_exporter_stuck_reads"), Some(1.0));
    let lost: Vec<_> = names(&whole).into_iter().filter(|name| !names(&holed).contains(name)).collect();
    assert!(!lost.is_empty() && lost.iter().all(|name| name.starts_with("rocm_memory")), "{lost:?}");
    assert!(holed.sample("rocm_exporter_read_errors_total{").is_some(), "{}", holed.text());
    assert_eq!(running.threads(), threads + 1);
    for _ in 0..1000 {
        assert_eq!(running.get("/metrics").status(), 200);
    }
    assert_eq!((running.threads(), served.hanging()), (threads + 1, 1));
    served.mend();
    served.release();
    let begun = Instant::now();
    // The thread ends a moment after its read has come back.
    let is_over = |answer: &Answer| {
        let has_all = lost.iter().all(|name| names(answer).contains(name));
        has_all && answer.sample("rocm_exporter_stuck_reads") == Some(0.0) && running.threads() == threads
    };
    while !is_over(&running.get("/metrics")) {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn real_fuse_several_files_that_hang_cost_a_thread_each() {
    if !fuse::require() {
        return;
    }
    let (_folder, served, running) = phoenix();
    let whole = running.get("/metrics");
    let threads = running.threads();
    let files = ["gpu_metrics", "mem_info_gtt_used", "mem_info_vram_total", "gpu_busy_percent"];
    files.iter().for_each(|file| served.fault(&format!("{GPU}/{file}"), Fault::Block));
    let holed = running.get("/metrics");
    assert_eq!(holed.sample("rocm_exporter_stuck_reads"), Some(4.0), "{}", holed.text());
    assert_eq!((running.threads(), served.hanging()), (threads + 4, 4));
    for file in files {
        let errors = format!("rocm_exporter_read_errors_total{{file=\"{GPU}/{file}\"}}");
        assert!(holed.sample(&errors).is_some(), "{file}: {}", holed.text());
        assert!(running.says().ends_with("its metrics are absent until it does; see journalctl -k"));
    }
    // What hwmon says does not hang.
    for metric in ["rocm_gpu_info{", "rocm_gpu_temperature{", "rocm_power_usage{"] {
        assert_eq!(holed.sample(metric), whole.sample(metric), "{metric}");
        assert!(holed.sample(metric).is_some(), "{metric}");
    }
    served.mend();
    served.release();
}

#[test]
fn real_fuse_a_scrape_of_slow_files_is_as_slow_as_its_reads() {
    if !fuse::require() {
        return;
    }
    let (_folder, served, running) = phoenix();
    running.get("/metrics");
    served.fault_everywhere(Fault::Delay(Duration::from_millis(1)));
    served.take_log();
    running.get("/metrics");
    let mut log = served.take_log();
    log.retain(|(operation, _)| *operation != Operation::Open);
    // The end of a file is a read of its own.
    log.dedup();
    assert!(log.len() > 20, "{log:?}");
    // This process reads the files of the scrape one after the other: FUSE's own way and sleeps that end late are part
    // of both times.
    let alone = || {
        for (operation, path) in &log {
            let path = served.path().join(path.strip_prefix("/").unwrap());
            match operation {
                Operation::List => drop(fs::read_dir(path).map(Iterator::count)),
                _ => drop(fs::read(path)),
            }
        }
    };
    let scrape = shortest_of_five(|| assert_eq!(running.get("/metrics").status(), 200));
    let linear = shortest_of_five(alone);
    assert!(
        scrape < linear + Duration::from_millis(50),
        "{scrape:?}; its {} reads alone: {linear:?}",
        log.len()
    );
    assert_eq!(running.get("/metrics").sample("rocm_exporter_stuck_reads"), Some(0.0));
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_fuse_where_everything_hangs_the_answer_is_a_sentence() {
    if !fuse::require() {
        return;
    }
    let (_folder, served, running) = phoenix();
    running.get("/metrics");
    let threads = running.threads();
    served.fault_everywhere(Fault::Block);
    let answer = running.get("/metrics");
    // What is skipped leaves either nothing but the exporter's own series, or no time for the rest.
    assert!([200, 503].contains(&answer.status()), "{}", answer.head);
    for _ in 0..3 {
        running.get("/metrics");
    }
    assert!(running.threads() <= threads + 128, "{} threads", running.threads());
    assert_eq!(running.get("/healthz").status(), 200);
    // The kernel ends no process whose read FUSE has not answered.
    served.mend();
    served.release();
    assert_eq!(running.end(nix::sys::signal::Signal::SIGTERM), Some(0));
}

/// The shortest of five runs: other tests run at the same time.
fn shortest_of_five(run: impl Fn()) -> Duration {
    let timed = |_| {
        let begun = Instant::now();
        run();
        begun.elapsed()
    };
    (0..5).map(timed).min().unwrap()
}
