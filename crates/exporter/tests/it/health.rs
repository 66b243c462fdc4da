//! The daemon's health.json while the exporter runs: it comes, grows old, and is put in the way.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use layout::{Machine, Nodes};
use support::waiting::eventually;
use tempfile::TempDir;

use crate::running::{Answer, Running};

const SCORE: &str = "rocm_gpu_health_score{";
const ERRORS: &str = "rocm_exporter_read_errors_total{file=\"/run/rocworker/health.json\"}";

struct Judged {
    folder: TempDir,
    running: Running,
}

impl Judged {
    /// Two cards, and a daemon that has published nothing.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Machine::instinct_with_readings(2, 2).lay_out(folder.path(), Nodes::Recorded).unwrap();
        fs::create_dir_all(folder.path().join("run/rocworker")).unwrap();
        let running = Running::start(folder.path(), &[]);
        Self { folder, running }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run/rocworker/health.json")
    }

    /// Writes a daemon's file that is `age` seconds old.
    fn write(&self, path: &Path, age: u64) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        fs::write(path, layout::health(2, true, now - age)).unwrap();
    }

    /// Scrapes, and checks that all readings are there whatever the daemon's file holds.
    fn scrape(&self) -> Answer {
        let answer = self.running.get("/metrics");
        assert_eq!(answer.status(), 200);
        assert!(answer.sample("rocm_gpu_temperature{").is_some(), "{}", answer.text());
        answer
    }

    /// Asserts that nothing of the file counts, in three scrapes, and that the journal says once why.
    fn refuses(&self, why: &str) {
        let before = self.scrape().sample(ERRORS).unwrap();
        for times in [1.0, 2.0] {
            let answer = self.scrape();
            assert_eq!(answer.sample(ERRORS), Some(before + times), "{}", answer.text());
            for name in [SCORE, "rocm_gpu_hang{", "rocm_gpu_quarantined{"] {
                assert_eq!(answer.sample(name), None, "{}", answer.text());
            }
        }
        let logged = self.running.says();
        assert!(logged.contains("/run/rocworker/health.json") && logged.contains(why), "{logged}");
        // The next line is of the next fault.
        fs::remove_file(self.path()).unwrap();
        assert_eq!(self.scrape().sample(ERRORS), Some(before + 2.0), "what is not there is no fault");
    }
}

#[test]
fn a_judgement_appears_at_the_next_scrape_and_goes_when_it_is_old() {
    let judged = Judged::start();
    assert_eq!(judged.scrape().sample(SCORE), None);
    judged.write(&judged.path(), 55);
    let answer = judged.scrape();
    for (series, value) in [
        (r#"rocm_gpu_health_score{gpu="0""#, 10.0),
        (r#"rocm_gpu_health_score{gpu="2""#, 85.0),
        (r#"rocm_gpu_hang{gpu="0""#, 1.0),
        (r#"rocm_gpu_quarantined{gpu="2""#, 0.0),
    ] {
        assert_eq!(answer.sample(series), Some(value), "{series}: {}", answer.text());
    }
    eventually("it is a minute old", || judged.scrape().sample(SCORE).is_none());
    judged.write(&judged.path(), 0);
    let answer = judged.scrape();
    assert_eq!(answer.sample(SCORE), Some(10.0), "it is written again");
    assert_eq!(answer.sample(ERRORS), None, "an old file is no fault");
}

#[test]
fn a_pipe_a_link_and_a_huge_file_in_its_place_cost_the_judgement_alone() {
    let judged = Judged::start();
    let path = judged.path();
    let resident = judged.running.resident_kib();

    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o644)).unwrap();
    let begun = Instant::now();
    judged.refuses("fifo");
    assert!(begun.elapsed() < Duration::from_secs(5), "no scrape waits for a writer");

    let target = path.with_extension("elsewhere");
    judged.write(&target, 0);
    symlink(&target, &path).unwrap();
    judged.refuses("link");

    // A sparse file, which takes no room on the disk but would take it in memory.
    File::create(&path).unwrap().set_len(100 << 20).unwrap();
    judged.refuses("larger");
    let grown = judged.running.resident_kib().saturating_sub(resident);
    assert!(grown < 8 << 10, "{grown} KiB more");

    judged.write(&path, 0);
    assert_eq!(judged.scrape().sample(SCORE), Some(10.0));
}
