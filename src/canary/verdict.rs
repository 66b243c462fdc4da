//! What the probe's answer means.

use nix::errno::Errno;

use super::answer::{Answer, Tried, is_without_driver, named};
use super::question::Question;
use crate::check::{About, Check};

/// Three checks: KFD, the GPU that was asked for, one that was not. `way`: how it was asked for; `remedy`: what to do
/// when the container has something else.
pub(super) fn checks(
    about: impl Fn() -> About,
    question: &Question,
    answer: &Answer,
    way: &str,
    remedy: &str,
) -> Vec<Check> {
    vec![
        kfd(about(), question, &answer.kfd, way, remedy),
        render(about(), question, &answer.render, remedy),
        stranger(about(), question, &answer.stranger, remedy),
    ]
}

/// Of a node that was let through to no driver: it is not the engine's fault.
const NO_DRIVER: &str =
    "see the checks of driver and kfd above, and compare ls -l of the node inside and outside";

fn kfd(about: About, question: &Question, tried: &Tried<String>, way: &str, remedy: &str) -> Check {
    let node = question.kfd.display();
    match tried {
        Tried::Got(version) => about.ok(format!("KFD answers inside with version {version}, {way}")),
        Tried::Unopened(errno) if is_without_driver(*errno) => about.warning(
            format!("{node} is let through, and no driver answers inside ({}), {way}", named(*errno)),
            NO_DRIVER,
        ),
        Tried::Unopened(errno) | Tried::Unmade(errno) => {
            about.failed(format!("{node} does not open inside ({}), {way}", named(*errno)), remedy)
        }
        Tried::Unanswered(errno) => about.failed(
            format!("{node} opens inside, and is asked for its version in vain ({}), {way}", named(*errno)),
            NO_DRIVER,
        ),
    }
}

fn render(about: About, question: &Question, tried: &Tried<String>, remedy: &str) -> Check {
    let (node, name) = (question.render.display(), &question.name);
    let (major, minor) = question.number;
    match tried {
        Tried::Got(number) if *number == format!("{major}:{minor}") => {
            about.ok(format!("{node} of GPU {name} opens inside"))
        }
        Tried::Got(number) => about.failed(
            format!("{node} is {number} inside and {major}:{minor} outside: it is another device"),
            remedy,
        ),
        Tried::Unopened(errno) if is_without_driver(*errno) => about.warning(
            format!("{node} of GPU {name} is let through, and no driver answers inside ({})", named(*errno)),
            NO_DRIVER,
        ),
        Tried::Unopened(errno) | Tried::Unmade(errno) => {
            about.failed(format!("{node} of GPU {name} does not open inside ({})", named(*errno)), remedy)
        }
        Tried::Unanswered(_) => about.failed(format!("{node} is no device node inside"), remedy),
    }
}

fn stranger(about: About, question: &Question, tried: &Tried<String>, remedy: &str) -> Check {
    let (major, minor) = question.stranger.number;
    let node = format!("the device {major}:{minor}, {},", question.stranger.whose);
    match tried {
        // The device cgroup's answer; the mode of the node, which is root's own, would give EACCES.
        Tried::Unopened(errno) if *errno == Errno::EPERM as i32 => {
            about.ok(format!("{node} was not given, and is refused inside"))
        }
        Tried::Unmade(errno) => about.skipped(format!(
            "the container could make no node to try {node} which it was not given ({})",
            named(*errno)
        )),
        Tried::Unopened(errno) if is_without_driver(*errno) => {
            about.failed(format!("{node} was not given, and is let through all the same"), remedy)
        }
        Tried::Got(_) | Tried::Unanswered(_) => {
            about.failed(format!("{node} was not given, and opens inside all the same"), remedy)
        }
        Tried::Unopened(errno) => about.warning(
            format!(
                "{node} was not given, and what refuses it inside is not the device cgroup ({})",
                named(*errno)
            ),
            remedy,
        ),
    }
}
