//! `rocworker metrics` on a machine of which a file hangs.

use std::time::{Duration, Instant};

use layout::{Machine, Nodes};
use support::fuse::{self, Fault, Served};

#[test]
fn real_fuse_metrics_ends_and_prints_the_rest_where_a_file_hangs() {
    if !fuse::require() {
        return;
    }
    let folder = support::detect::scratch();
    Machine::instinct_with_readings(2, 1).lay_out(folder.path(), Nodes::Recorded).unwrap();
    let served = Served::new(folder.path());
    served.fault("/sys/bus/pci/devices/0000:05:00.0/gpu_metrics", Fault::Block);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let command = command.arg("--root").arg(served.path()).arg("metrics");
    let (stdout, begun) = (tempfile::tempfile().unwrap(), Instant::now());
    let mut child = command.stdout(stdout.try_clone().unwrap()).spawn().unwrap();
    // The command writes all before it ends. The kernel ends no process whose read FUSE has not answered, so a scrape that
    // waits for the file would print nothing.
    let mut text = String::new();
    while !text.contains("rocm_exporter_stuck_reads 1\n") && begun.elapsed() < Duration::from_secs(7) {
        std::thread::sleep(Duration::from_millis(50));
        text = std::io::read_to_string(&mut At(&stdout, 0)).unwrap();
    }
    served.mend();
    served.release();
    let status = child.wait().unwrap();
    assert!(text.contains("rocm_exporter_stuck_reads 1\n"), "{text}");
    assert!(text.contains("rocm_gpu_temperature{gpu=\"1\""), "{text}");
    assert!(status.success());
}

/// Reads a file that another process writes, from its beginning.
struct At<'f>(&'f std::fs::File, u64);

impl std::io::Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = std::os::unix::fs::FileExt::read_at(self.0, buffer, self.1)?;
        self.1 += count as u64;
        Ok(count)
    }
}
