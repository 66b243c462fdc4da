//! The same machine through FUSE, which delays reads and notes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use layout::{Machine, Nodes};
use support::fuse::{Fault, Operation, Served};

use super::exporter::Exporter;
use super::report::Outcome;
use super::scrape::{CARDS, PARTITIONS, check};

const A_READ: Duration = Duration::from_millis(1);

/// What the design allows beyond a time that grows with the number of reads alone.
const ALLOWED_MS: f64 = 50.0;

/// Runs of each, of which the quickest counts: what else the machine does only adds.
const RUNS: usize = 15;

/// What PCI's and DRM's own code keeps in memory (drivers/pci/pci-sysfs.c, drivers/gpu/drm/drm_sysfs.c): it asks no driver
/// and wakes no GPU. All else in a card's folder is the driver's.
const NO_DRIVERS: &[&str] = &[
    "class",
    "device",
    "dev",
    "modalias",
    "numa_node",
    "power/runtime_status",
    "revision",
    "subsystem_device",
    "subsystem_vendor",
    "uevent",
    "vendor",
];

fn served(root: &Path) -> Result<Served> {
    ensure!(Path::new("/dev/fuse").exists(), "there is no /dev/fuse: modprobe fuse");
    ensure!(nix::unistd::geteuid().is_root(), "mounting needs root");
    Ok(Served::new(root))
}

/// What the delay of every read adds to a scrape, less what it adds to a plain reader of the same files, one after another.
pub(super) fn beyond_linear(program: &Path, root: &Path) -> Result<Outcome> {
    let served = served(root)?;
    let exporter = Exporter::start(program, served.path(), &[])?;
    exporter.scrape()?;
    let quick = quickest(&exporter, &served)?;
    served.fault_everywhere(Fault::Delay(A_READ));
    let slow = quickest(&exporter, &served)?;
    let scrape = (slow.scrape - quick.scrape) * 1e3;
    let reader = (slow.read - quick.read) * slow.reads * 1e3;
    let figures = format!(
        "{:.0} ms for {} reads: {scrape:.0} ms more than without the delay; a plain reader {reader:.0} ms more",
        slow.scrape * 1e3,
        slow.reads
    );
    Ok(Outcome::Measured { figures, ratio: (scrape - reader).max(0.0) / ALLOWED_MS })
}

/// In seconds.
struct Quickest {
    scrape: f64,
    /// One read of a plain reader.
    read: f64,
    /// Of a scrape.
    reads: f64,
}

fn quickest(exporter: &Exporter, served: &Served) -> Result<Quickest> {
    let mut least = Quickest { scrape: f64::MAX, read: f64::MAX, reads: 0.0 };
    served.take_log();
    for _ in 0..RUNS {
        let (answer, took) = exporter.scrape()?;
        check(&answer, usize::from(CARDS) * usize::from(PARTITIONS))?;
        least.scrape = least.scrape.min(took.as_secs_f64());
        let log = served.take_log();
        least.reads = reads(&log)?;
        let began = Instant::now();
        read_again(served, &log);
        // It asks once more where a file ends.
        let took = began.elapsed().as_secs_f64();
        least.read = least.read.min(took / reads(&served.take_log())?);
    }
    Ok(least)
}

fn reads(log: &[(Operation, PathBuf)]) -> Result<f64> {
    let reads = log.iter().filter(|(operation, _)| *operation != Operation::Open).count();
    ensure!(reads > 0, "nothing was read");
    Ok(f64::from(u32::try_from(reads)?))
}

/// The same files and folders, in the same order.
fn read_again(served: &Served, log: &[(Operation, PathBuf)]) {
    for (operation, path) in log {
        let path = served.path().join(path.strip_prefix("/").unwrap_or(path));
        match operation {
            Operation::Open if path.is_file() => drop(fs::read(&path)),
            Operation::List => drop(fs::read_dir(&path).map(Iterator::count)),
            _ => {}
        }
    }
}

/// Files of the driver that a scrape opens where every GPU is suspended.
pub(super) fn of_suspended(program: &Path, work: &Path) -> Result<Outcome> {
    let root = work.join("scrape-suspended");
    let machine = suspended()?;
    machine.lay_out(&root, Nodes::Recorded).with_context(|| format!("laying out {}", root.display()))?;
    let served = served(&root)?;
    let exporter = Exporter::start(program, served.path(), &[])?;
    // The first scrape learns who the GPUs are, too, and may read no more than the next.
    let mut opened = BTreeSet::new();
    for _ in 0..3 {
        let (answer, _) = exporter.scrape()?;
        check(&answer, usize::from(CARDS))?;
        ensure!(answer.contains("rocm_gpu_suspended{"), "the exporter does not say that GPUs are suspended");
        let log = served.take_log();
        opened.extend(log.into_iter().map(|(_, path)| path).filter(|path| is_drivers(path)));
    }
    let first = opened.first().map(|path| format!(": {}", path.display())).unwrap_or_default();
    let figures = format!("{}{first}", opened.len());
    Ok(Outcome::Measured { figures, ratio: f64::from(u32::try_from(opened.len())?) })
}

/// The machine with every card suspended.
fn suspended() -> Result<Machine> {
    let machine = Machine::instinct_with_readings(CARDS, PARTITIONS);
    let tree = machine.tree().context("laying out a machine")?;
    let cards: Vec<String> =
        tree.beneath("sys/bus/pci/drivers/amdgpu").iter().map(|(name, _)| name.to_owned()).collect();
    Ok(cards.iter().fold(machine, |machine, card| {
        machine.put(&format!("/sys/bus/pci/devices/{card}/power/runtime_status"), "suspended\n")
    }))
}

/// Whether a path is one that amdgpu answers: in the folder of an Instinct or of a partition of one.
fn is_drivers(path: &Path) -> bool {
    let Some(path) = path.to_str() else { return false };
    let inside = if let Some((_, inside)) = path.split_once("/amdgpu_xcp") {
        inside.split_once('/').map(|(_, inside)| inside)
    } else {
        path.strip_prefix("/sys/devices/pci")
            .filter(|_| !path.contains("0000:02:00.0"))
            .and_then(|inside| inside.split_once(":00.0/"))
            .map(|(_, inside)| inside)
    };
    let Some(inside) = inside else { return false };
    let name =
        inside.rsplit_once('/').filter(|_| inside.starts_with("drm/")).map_or(inside, |(_, name)| name);
    !NO_DRIVERS.contains(&name) && !inside.starts_with("drm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pci_and_drm_answer_is_not_the_drivers_and_all_else_of_a_card_is() {
        let card = "/sys/devices/pci0000:05/0000:05:00.0";
        for file in ["vendor", "power/runtime_status", "drm/card1/dev", "drm"] {
            assert!(!is_drivers(Path::new(&format!("{card}/{file}"))), "{file}");
        }
        for file in
            ["gpu_metrics", "hwmon/hwmon1/temp1_input", "vbios_version", "ras/umc_err_count", "unique_id"]
        {
            assert!(is_drivers(Path::new(&format!("{card}/{file}"))), "{file}");
        }
        let partition = "/sys/devices/platform/amdgpu_xcp_0";
        assert!(is_drivers(Path::new(&format!("{partition}/xcp/xcp_metrics"))));
        assert!(!is_drivers(Path::new(&format!("{partition}/uevent"))));
        assert!(!is_drivers(Path::new("/sys/class/kfd/kfd/topology/nodes/0/gpu_id")));
    }
}
