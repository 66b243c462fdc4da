//! The tags of a Concourse worker. A step runs only where every one of its tags is, and a tagged worker
//! refuses untagged steps: without a usable GPU there must be none of ours.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::selection::Selection;

/// What a worker with a usable GPU is tagged with, whichever it is.
pub(super) const OF_GPUS: [&str; 4] = ["gpu", "gpu-type=amd", "compute-runtime=rocm", "rocm"];

/// The worker's tags: the user's own first, then ours, none twice.
#[must_use]
pub fn tags(config: &Config, selection: &Selection<'_>) -> Vec<String> {
    let mut tags = config.tags.clone();
    for tag in of_gpus(selection) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// Ours alone: what the GPUs are.
#[must_use]
pub fn of_gpus(selection: &Selection<'_>) -> Vec<String> {
    if selection.gpus.is_empty() {
        return Vec::new();
    }
    let mut tags: Vec<String> = OF_GPUS.map(str::to_owned).into();
    tags.push(format!("gpu-count={}", selection.gpus.len()));
    if selection.listed {
        let indexes: Vec<String> =
            selection.gpus.iter().filter_map(|gpu| Some(gpu.index?.to_string())).collect();
        // One tag with commas in it, as the Concourse charm writes it; Concourse splits it at them.
        tags.push(format!("gpu-devices={}", indexes.join(",")));
    }
    let architectures: BTreeSet<_> = selection.gpus.iter().filter_map(|gpu| gpu.gfx.as_ref().ok()).collect();
    tags.extend(architectures.into_iter().map(ToString::to_string));
    tags
}
