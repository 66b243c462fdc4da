//! Which tags of GPUs a worker would lose.

use std::collections::BTreeSet;

use super::tags::OF_GPUS;

/// Whether a worker with the tags `before` would have less to offer with the tags `after`, as far as GPUs go: a kind or
/// number of them that steps ask for. Both are lists with commas, as `CONCOURSE_TAG` has them.
#[must_use]
pub fn loses(before: &str, after: &str) -> bool {
    let (before, after) = (Offer::of(before), Offer::of(after));
    before.count > after.count || !before.tags.is_subset(&after.tags)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Offer<'a> {
    tags: BTreeSet<&'a str>,
    count: u64,
}

impl<'a> Offer<'a> {
    /// Only what the machine decides about: the user's own tags are not ours to wait with.
    fn of(list: &'a str) -> Self {
        let mut offer = Self::default();
        for tag in list.split(',') {
            if let Some(count) = tag.strip_prefix("gpu-count=").and_then(|count| count.parse().ok()) {
                offer.count = offer.count.max(count);
            } else if OF_GPUS.contains(&tag) || is_architecture(tag) {
                offer.tags.insert(tag);
            }
        }
        offer
    }
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
