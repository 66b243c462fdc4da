//! The worker's tags, those that its other environment files give it among them.

use crate::config::Config;
use crate::engines::concourse::Worker;
use crate::engines::concourse::tags::tags as of_rocworker;
use crate::selection::Selection;

/// What holds the worker's tags.
pub const VARIABLE: &str = "CONCOURSE_TAG";

/// What is to be done about the variable.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tags {
    /// The other environment files say what should be said.
    AsTheyAre,
    Set(String),
    /// The other files set some, and there should be none. An empty value would be a tag too, the empty one.
    Unset,
    /// The command line has tags, and none of an environment counts.
    OutOfReach,
    /// What the other files say is not known, and ours would take its place.
    Unknown,
}

/// The user's own tags first, then those of our configuration, then, if the worker can give GPUs, ours.
pub(super) fn tags(config: &Config, selection: &Selection<'_>, worker: &Worker, gives_gpus: bool) -> Tags {
    let theirs = worker.environment.get(VARIABLE).map(String::as_str);
    let mut tags: Vec<String> = Vec::new();
    let mut add = |tag: &str| {
        if !tag.is_empty() && !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    };
    let own = theirs.unwrap_or_default().split(',');
    let own: Vec<&str> = if worker.charm.is_in_force() { without_the_charms(own) } else { own.collect() };
    own.into_iter().for_each(&mut add);
    let of_rocworker = if gives_gpus { of_rocworker(config, selection) } else { config.tags.clone() };
    of_rocworker.iter().for_each(|tag| add(tag));
    let joined = tags.join(",");
    if theirs.unwrap_or_default() == joined {
        Tags::AsTheyAre
    } else if worker.options.has("tag") {
        Tags::OutOfReach
    } else if !worker.unfollowed.is_empty() {
        Tags::Unknown
    } else if tags.is_empty() {
        Tags::Unset
    } else {
        Tags::Set(joined)
    }
}

/// What the charm's mode for AMD's GPUs wrote is not the user's own, and its count is of every vendor's cards.
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
}
