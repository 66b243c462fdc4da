//! Samples of the daemon's judgement of a card, and of whether the wrapper acts on it.

use allocation::policy::{self, Policy};
use inventory::health::{FRESH_S, GpuHealth, Health, PATH, State};

use root::Root;

use crate::daemon_file::DaemonFile;
use crate::metrics::{GPU_HANG, GPU_HEALTH_SCORE, GPU_HEALTH_STATE, GPU_QUARANTINED};
use crate::sample::{Labelled, truth};

impl DaemonFile for Health {
    const PATH: &'static str = PATH;
    const FRESH_S: u64 = FRESH_S;

    fn written_at(&self) -> u64 {
        self.written_at
    }
}

/// Whether the wrapper's policy keeps containers off an unhealthy GPU; `None` where the policy cannot be
/// read.
#[must_use]
pub fn is_quarantine_enforced(root: &Root) -> Option<bool> {
    match root.read_trusted(policy::PATH, policy::LIMIT) {
        Err(error) => error.is_not_found().then_some(false),
        Ok(bytes) => Some(Policy::parse(str::from_utf8(&bytes).ok()?).ok()?.quarantine),
    }
}

/// Why the wrapper keeps containers off no unhealthy GPU; `None` where it does.
#[must_use]
pub fn why_not_quarantined(is_enforced: Option<bool>) -> Option<&'static str> {
    match is_enforced {
        Some(true) => None,
        Some(false) => Some("wrapper.quarantine is not set"),
        None => Some("the wrapper's policy cannot be read"),
    }
}

/// The daemon's judgement of a card, whether it is awake or not. `is_enforced`: see [`is_quarantine_enforced`].
pub(crate) fn card(judged: &GpuHealth, is_enforced: Option<bool>, to: &mut Labelled<'_>) {
    for state in [State::Healthy, State::Degraded, State::Unhealthy, State::Unknown] {
        let label = ("state", state.name().to_owned());
        to.add_with(&GPU_HEALTH_STATE, [label], truth(judged.state == state));
    }
    to.add(&GPU_HEALTH_SCORE, judged.score.map(f64::from));
    to.add(&GPU_HANG, judged.hang.map(truth));
    let is_quarantined = if judged.quarantine.is_some() { is_enforced } else { Some(false) };
    to.add(&GPU_QUARANTINED, is_quarantined.map(truth));
}
