//! Samples of what rocworker-hip-worker counts.

use inventory::hip_worker::{FRESH_S, HipGpu, HipWorker, PATH};

use crate::daemon_file::DaemonFile;
use crate::metrics::{
    HIP_ALLOCATED, HIP_CLIENTS, HIP_CRASHED, HIP_LAUNCHES, HIP_RECEIVED, HIP_REFUSED, HIP_SENT, HIP_SERVED,
};
use crate::sample::{Labelled, count};

impl DaemonFile for HipWorker {
    const PATH: &'static str = PATH;
    const FRESH_S: u64 = FRESH_S;

    fn written_at(&self) -> u64 {
        self.written_at
    }
}

pub(crate) fn worker(worker: &HipWorker, to: &mut Labelled<'_>) {
    for (metric, value) in [
        (&HIP_CLIENTS, worker.clients),
        (&HIP_SERVED, worker.served),
        (&HIP_REFUSED, worker.refused),
        (&HIP_CRASHED, worker.crashed),
        (&HIP_RECEIVED, worker.received_bytes),
        (&HIP_SENT, worker.sent_bytes),
    ] {
        to.add(metric, count(value));
    }
}

/// `index`: the GPU's of `rocworker detect`.
pub(crate) fn gpu(worker: Option<&HipWorker>, index: Option<u32>, to: &mut Labelled<'_>) {
    let gpu = || worker?.gpus.get(usize::try_from(index?).ok()?);
    if let Some(HipGpu { launches, allocated_bytes }) = gpu() {
        to.add(&HIP_LAUNCHES, count(*launches));
        to.add(&HIP_ALLOCATED, count(*allocated_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_its_own_counts_and_one_that_was_not_used_none() {
        let gpus = vec![HipGpu::default(), HipGpu { launches: 7, allocated_bytes: 4096 }];
        let counted = HipWorker { clients: 2, sent_bytes: 9, gpus, ..HipWorker::default() };
        let mut samples = Vec::new();
        let mut to = Labelled::new(&[], &mut samples);
        worker(&counted, &mut to);
        for index in [Some(1), Some(2), None] {
            gpu(Some(&counted), index, &mut to);
        }
        let lines: Vec<_> = samples.iter().map(|sample| (sample.metric.name, sample.value)).collect();
        assert!(
            lines.contains(&("rocm_hip_clients", 2.0)) && lines.contains(&("rocm_hip_sent_bytes_total", 9.0))
        );
        assert_eq!(lines[6..], [("rocm_hip_launches_total", 7.0), ("rocm_hip_allocated_bytes", 4096.0)]);
    }
}
