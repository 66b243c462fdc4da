//! Reads cards: captured ones, invented ones, and files that hold nothing or nonsense.

mod bad_files;
mod captures;
mod heat;
mod instinct;
mod not_there;
mod real_fuse;

use inventory::readings::{CardReadings, Clock, Temperature};
use layout::{Machine, Nodes};
use root::Root;
use tempfile::TempDir;

/// A machine on disk.
struct Laid {
    folder: TempDir,
    root: Root,
}

impl Laid {
    fn out(machine: &Machine) -> Self {
        let folder = support::detect::scratch();
        machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
        let root = Root::open(folder.path()).unwrap();
        Self { folder, root }
    }

    fn card(&self, address: &str) -> CardReadings {
        amdgpu::readings::of_card(&self.root, address.parse().unwrap())
    }
}

fn temperature(sensor: &str, celsius: f64, limits: Option<(f64, f64)>) -> Temperature {
    Temperature {
        sensor: sensor.to_owned(),
        celsius: Some(celsius),
        critical_celsius: limits.map(|limits| limits.0),
        emergency_celsius: limits.map(|limits| limits.1),
    }
}

fn megahertz(domain: &'static str, instance: Option<u32>, megahertz: u32) -> Clock {
    Clock { domain: domain.into(), instance, hertz: f64::from(megahertz) * 1e6 }
}
