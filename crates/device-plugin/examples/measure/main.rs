//! For `cargo xtask bench`: measures the program against a kubelet of its own, on a machine of 8 cards with 8 partitions each.
//!
//! Arguments: the program, and an empty folder. Prints one JSON object: how long each change of the machine took to reach
//! the kubelet, how long each of a thousand Allocate calls with 64 devices took, in milliseconds, and the program's most
//! resident memory in KiB.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark fails by panicking, lays out files and runs programs"
)]

#[allow(dead_code, reason = "tests use the rest")]
mod kubelet;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use kubelet::{Asker, Kubelet};
use layout::{Machine, Nodes};

const GPU: &str = "amd.com/gpu";
const CHANGES: usize = 20;
const CALLS: usize = 1_000;

/// Killed when dropped.
struct Plugin(Child);

impl Drop for Plugin {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (program, work) = (arguments.next().expect("a program"), arguments.next().expect("a folder"));
    let [root, other] = [(8, "root"), (1, "other")].map(|(partitions, name)| {
        let place = work.join(name);
        let generation = format!("{partitions}\n");
        let machine =
            Machine::instinct(8, partitions).put("/sys/class/kfd/kfd/topology/generation_id", generation);
        machine.lay_out(&place, Nodes::Recorded).unwrap();
        place
    });
    let kubelet = Kubelet::start(&root);
    let plugin =
        Plugin(Command::new(program).arg("--root").arg(&root).stderr(Stdio::null()).spawn().unwrap());
    let mut watching = kubelet.watch(GPU);
    let list = watching.until("64 partitions are offered", |list| list.len() == 64);
    let ids: Vec<&str> = list.iter().map(|device| device.id.as_str()).collect();

    let mut asker = Asker::new(&kubelet, GPU);
    let allocate = |_| {
        let begun = Instant::now();
        assert_eq!(asker.allocate(&ids).unwrap().devices.len(), 129);
        begun.elapsed().as_secs_f64() * 1e3
    };
    let allocations: Vec<f64> = (0..CALLS).map(allocate).collect();

    let mut change = |at: usize| {
        let [now, next, before] = [root.join("sys"), other.join("sys"), other.join("before")];
        let begun = Instant::now();
        fs::rename(&now, &before).unwrap();
        fs::rename(&next, &now).unwrap();
        fs::rename(&before, &next).unwrap();
        watching.until("the kubelet knows of it", |list| list.len() == [8, 64][at % 2]);
        begun.elapsed().as_secs_f64() * 1e3
    };
    let changes: Vec<f64> = (0..CHANGES).map(&mut change).collect();
    let status = fs::read_to_string(format!("/proc/{}/status", plugin.0.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let resident: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    println!(
        "{}",
        serde_json::json!({ "changes": changes, "allocations": allocations, "resident": resident })
    );
}
