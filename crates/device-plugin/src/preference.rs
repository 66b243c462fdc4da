//! Which of the devices that are free a container had best get.

use std::collections::{BTreeMap, BTreeSet};

use allocation::gpu::Gpu;
use allocation::selection::Pool;
use inventory::kubelet::of_whole;

use crate::offer::Offered;

/// `count` of the devices in `available`, with those in `must`; fewer where there are not so many. GPUs are chosen as
/// rocworker's leases choose them: close to each other, and so that whole cards stay whole. A container gets a second
/// slice of a shared GPU only after a slice of each GPU, and the least shared GPUs come first.
pub(crate) fn preferred(
    devices: &[Offered],
    available: &[String],
    must: &[String],
    count: usize,
) -> Vec<String> {
    let mut chosen: Vec<String> = must.iter().take(count).cloned().collect();
    // The slices that are left of each GPU, by its render node.
    let mut free = BTreeMap::<u32, BTreeSet<&str>>::new();
    let render = |id: &str| {
        let device = devices.iter().find(|it| it.device.id == of_whole(id));
        device.map(|it| it.device.gpu.render.number())
    };
    let musts: BTreeSet<&String> = must.iter().collect();
    for id in available.iter().filter(|id| !musts.contains(id)) {
        if let Some(render) = render(id) {
            free.entry(render).or_default().insert(id);
        }
    }
    let pool = Pool::new(devices.iter().map(|it| it.device.gpu.clone()).collect());
    // The GPUs of which the container has a slice in this round, close to which the others are chosen.
    let mut has: BTreeSet<u32> = chosen.iter().filter_map(|id| render(id)).collect();
    while chosen.len() < count {
        let left = |gpu: &Gpu| free.get(&gpu.render.number()).map_or(0, BTreeSet::len);
        let is_had = |gpu: &Gpu| has.contains(&gpu.render.number());
        let new = pool.gpus().iter().filter(|gpu| left(gpu) > 0 && !is_had(gpu)).count();
        if new == 0 && has.is_empty() {
            break;
        }
        let asked = has.len() + new.min(count - chosen.len());
        let most = free.values().map(BTreeSet::len).max().unwrap_or(0);
        let is_free = |gpu: &Gpu| left(gpu) > 0 || is_had(gpu);
        let picked = pool.pick_with(asked, is_free, is_had, |gpu| most.saturating_sub(left(gpu)));
        let picked = picked.into_iter().flatten().filter(|gpu| !is_had(gpu));
        let picked: Vec<u32> = picked.map(|gpu| gpu.render.number()).collect();
        for render in &picked {
            chosen.extend(free.get_mut(render).and_then(BTreeSet::pop_first).map(str::to_owned));
        }
        match new {
            0 => has.clear(),
            _ => has.extend(picked),
        }
    }
    chosen
}
