//! The tags of a Concourse worker. A step runs only where every one of its tags is, and a tagged worker
//! refuses untagged steps: without a usable GPU there must be no managed tag.

use std::collections::BTreeSet;

use config::Config;
use config::selection::Selection;

use super::Worker;

/// What holds the worker's tags.
pub const VARIABLE: &str = "CONCOURSE_TAG";

/// What a worker with a usable GPU is tagged with, whichever it is.
const OF_GPUS: [&str; 4] = ["gpu", "gpu-type=amd", "compute-runtime=rocm", "rocm"];

/// The tags of a worker that a person sets up: the configured ones first, then the managed ones, none twice.
#[must_use]
pub fn tags(config: &Config, selection: &Selection<'_>) -> Vec<String> {
    let mut tags = config.tags.clone();
    if config.concourse.tags != Some(false) {
        add(&mut tags, of_gpus(selection));
    }
    tags
}

/// Whether a person has decided that this worker has tags, or has none of its GPUs. A worker that takes every step
/// would take none without tags from its first tag on.
pub(super) fn are_decided(config: &Config, worker: &Worker) -> bool {
    config.concourse.tags.is_some() || !config.tags.is_empty() || !worker.has_no_tags() || worker.was_tagged
}

fn add(tags: &mut Vec<String>, further: impl IntoIterator<Item = String>) {
    for tag in further {
        if !tag.is_empty() && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
}

/// The managed tags alone: what the GPUs are.
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

/// What [`VARIABLE`] has to be: the user's own tags of other environment files first, then the configured ones, then
/// the managed ones, if the worker can give GPUs. `None` where the user's files give these tags already.
pub(super) fn wanted(
    config: &Config,
    selection: &Selection<'_>,
    worker: &Worker,
    gives_gpus: bool,
) -> Option<String> {
    let known = known(worker);
    let own = known.split(',');
    let own: Vec<&str> = if worker.charm.is_in_force() { without_the_charms(own) } else { own.collect() };
    let mut wanted = Vec::new();
    add(&mut wanted, own.into_iter().map(str::to_owned));
    let gets_tags = gives_gpus && are_decided(config, worker);
    add(&mut wanted, if gets_tags { tags(config, selection) } else { config.tags.clone() });
    Some(wanted.join(",")).filter(|wanted| wanted != known)
}

/// The tags that a worker has without rocworker.
pub(super) fn known(worker: &Worker) -> &str {
    let tags = worker.environment.get(VARIABLE).map_or("", String::as_str);
    // Blanks and commas alone name no tag.
    if tags.trim_matches([',', ' ', '\t']).is_empty() { "" } else { tags }
}

/// Drops the tags that the charm's mode for AMD's GPUs wrote: they are not the user's own, and their count is of every
/// vendor's cards.
fn without_the_charms<'a>(tags: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const WORDS: [&str; 4] = ["gpu", "rocm", "compute-runtime=rocm", "gpu-type=amd"];
    let mut after_devices = false;
    tags.filter(|tag| {
        // `gpu-devices=0,1` falls apart at its comma.
        let is_index = after_devices && !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_digit());
        after_devices = is_index || tag.starts_with("gpu-devices=");
        !(after_devices || WORDS.contains(tag) || tag.starts_with("gpu-count="))
    })
    .collect()
}

/// Whether a worker with the tags `before` would have less to offer with the tags `after`, as far as GPUs go: a kind or
/// number of them that steps ask for. Both are lists with commas, as [`VARIABLE`] has them.
#[must_use]
pub fn loses(before: &str, after: &str) -> bool {
    let ((before, count), (after, count_after)) = (offer(before), offer(after));
    count > count_after || !before.is_subset(&after)
}

/// Tags that the machine decides about, and how many GPUs. The user's own tags never wait.
fn offer(list: &str) -> (BTreeSet<&str>, u64) {
    let count = |tag: &str| tag.strip_prefix("gpu-count=")?.parse().ok();
    let of_machine = list.split(',').filter(|tag| OF_GPUS.contains(tag) || is_architecture(tag));
    (of_machine.collect(), list.split(',').filter_map(count).max().unwrap_or(0))
}

/// `gfx942`
fn is_architecture(tag: &str) -> bool {
    tag.strip_prefix("gfx").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_worker_that_the_charm_tagged_the_users_own_remain() {
        for (tags, expected) in [
            ("rocm,gpu-count=2,gpu-devices=0,1", ""),
            ("linux,rocm,gpu-count=2,gpu-devices=0,1,7b", "linux,7b"),
            ("a,gpu,compute-runtime=rocm,gpu-count=1", "a"),
            ("1,gpu-devices=0,x,2", "1,x,2"),
            ("gpu-type=nvidia,rocm-6", "gpu-type=nvidia,rocm-6"),
        ] {
            assert_eq!(without_the_charms(tags.split(',')).join(","), expected, "{tags}");
        }
    }

    #[test]
    fn a_worker_loses_what_steps_may_ask_for() {
        let two = "linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=2,gfx942,gfx1100";
        for (before, after, expected) in [
            (two, two, false),
            (two, "linux", true),
            (two, "", true),
            ("linux", two, false),
            ("", two, false),
            // The user's own are not waited with.
            (two, "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=2,gfx942,gfx1100", false),
            (two, "linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=1,gfx942,gfx1100", true),
            (two, "linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=2,gfx942", true),
            (two, "linux,gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=3,gfx942,gfx1100", false),
            ("gfx-pipeline,gpu-count=x", "", false),
        ] {
            assert_eq!(loses(before, after), expected, "{before} -> {after}");
        }
    }
}
