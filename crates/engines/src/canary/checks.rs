//! What the probe's answer means.

use check::{About, Check};
use nix::errno::Errno;

use super::probe::{Answer, Tried, named};
use super::question::Question;

/// Remedy for a node behind which no driver answers: the engine let it through, and is not at fault.
const NO_DRIVER: &str =
    "see the checks of driver and kfd above, and compare ls -l of the node inside and outside";

/// Three checks: KFD, the GPU that was asked for, one that was not. `remedy`: what to do when the container has something
/// else.
pub(super) fn checks(
    about: impl Fn() -> About,
    question: &Question,
    answer: &Answer,
    remedy: &str,
) -> Vec<Check> {
    vec![
        kfd(about(), question, &answer.kfd, remedy),
        render(about(), question, &answer.render, remedy),
        stranger(about(), question, &answer.stranger, remedy),
    ]
}

fn kfd(about: About, question: &Question, tried: &Tried, remedy: &str) -> Check {
    let (node, way) = (question.kfd.display(), format!(", {}", question.way));
    match tried {
        Tried::Got(version) => about.ok(format!("KFD answers inside with version {version}{way}")),
        Tried::Unopened(errno) | Tried::Unmade(errno) => {
            unopened(about, &node.to_string(), *errno, &way, remedy)
        }
        Tried::Unanswered(errno) => about.failed(
            format!("{node} opens inside, and is asked for its version in vain ({}){way}", named(*errno)),
            NO_DRIVER,
        ),
    }
}

fn render(about: About, question: &Question, tried: &Tried, remedy: &str) -> Check {
    let node = question.render.display();
    let of_gpu = format!("{node} of GPU {}", question.name);
    let (major, minor) = question.number;
    match tried {
        Tried::Got(number) if *number == format!("{major}:{minor}") => {
            about.ok(format!("{of_gpu} opens inside"))
        }
        Tried::Got(number) => about.failed(
            format!("{node} is {number} inside and {major}:{minor} outside: it is another device"),
            remedy,
        ),
        Tried::Unopened(errno) | Tried::Unmade(errno) => unopened(about, &of_gpu, *errno, "", remedy),
        Tried::Unanswered(_) => about.failed(format!("{node} is no device node inside"), remedy),
    }
}

/// A node that the container was given, and could not open.
fn unopened(about: About, node: &str, errno: i32, way: &str, remedy: &str) -> Check {
    let why = named(errno);
    if is_without_driver(errno) {
        let evidence = format!("{node} is let through, and no driver answers inside ({why}){way}");
        return about.warning(evidence, NO_DRIVER);
    }
    about.failed(format!("{node} does not open inside ({why}){way}"), remedy)
}

/// Whether an open got past the container's walls and found no driver behind the node.
fn is_without_driver(errno: i32) -> bool {
    matches!(Errno::from_raw(errno), Errno::ENXIO | Errno::ENODEV)
}

fn stranger(about: About, question: &Question, tried: &Tried, remedy: &str) -> Check {
    let (major, minor) = question.stranger;
    let node = format!("the device {major}:{minor}, {},", question.stranger_of);
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
