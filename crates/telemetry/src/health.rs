//! How well rocworker's daemon judges a card to be, as samples.

use allocation::PciAddress;
use allocation::document::Document;
use allocation::health::{FRESH_S, Health, PATH};
use amdgpu::Address;

use crate::daemon_file::DaemonFile;
use crate::metrics::{GPU_HANG, GPU_HEALTH_SCORE, GPU_QUARANTINED};
use crate::sample::{Labelled, truth};

impl DaemonFile for Health {
    const PATH: &'static str = PATH;
    const SCHEMA_VERSION: u32 = <Self as Document>::SCHEMA_VERSION;
    const FRESH_S: u64 = FRESH_S;

    fn written_at(&self) -> u64 {
        self.written_at
    }
}

/// What is said of one card, whether it is awake or not.
pub(crate) fn card(health: &Health, card: Address, to: &mut Labelled<'_>) {
    let Address { domain, bus, device, function } = card;
    let pci = PciAddress { domain, bus, device, function };
    if let Some(gpu) = health.gpus.iter().find(|gpu| gpu.pci == pci) {
        to.add(&GPU_HEALTH_SCORE, gpu.score.map(f64::from));
        to.add(&GPU_HANG, gpu.hang.map(truth));
        to.add(&GPU_QUARANTINED, truth(gpu.quarantine.is_some()));
    }
}
