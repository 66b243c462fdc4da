//! How well rocworker's daemon judges a card to be, as samples.

use allocation::document::Document;
use allocation::health::{FRESH_S, Health, PATH, State};
use amdgpu::Address;

use crate::daemon_file::DaemonFile;
use crate::metrics::{GPU_HANG, GPU_HEALTH_SCORE, GPU_HEALTH_STATE, GPU_QUARANTINED};
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
    if let Some(gpu) = health.gpus.iter().find(|gpu| gpu.pci == card) {
        for state in [State::Healthy, State::Degraded, State::Unhealthy, State::Unknown] {
            let label = ("state", state.name().to_owned());
            to.add_with(&GPU_HEALTH_STATE, [label], truth(gpu.state == state));
        }
        to.add(&GPU_HEALTH_SCORE, gpu.score.map(f64::from));
        to.add(&GPU_HANG, gpu.hang.map(truth));
        to.add(&GPU_QUARANTINED, truth(gpu.quarantine.is_some()));
    }
}
