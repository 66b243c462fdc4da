//! Why no GPU can be used, and the one thing to do about it: as doctor finds it.

use reconcile::command::Programs;
use root::Root;

use crate::config::Config;
use crate::doctor::{self, Check, Status};
use crate::facts::Facts;

/// What remedies on the host of a container begin with.
const ON_THE_HOST: &str = "on the host: ";
/// What stands between the commands of one.
const AND: &str = " && ";

/// In a line; `None` where doctor finds nothing wrong. In a container to which nodes were not passed, all of the
/// commands that pass them: one alone makes no GPU usable.
pub(super) fn hindrance(
    root: &Root,
    config: &Config,
    facts: &Facts,
    programs: Option<&Programs>,
) -> Option<String> {
    told(&doctor::examine(root, config, facts, programs).checks)
}

fn told(checks: &[Check]) -> Option<String> {
    let of = |status| checks.iter().find(|check| check.status == status && check.remedy.is_some());
    let first = of(Status::Failed).or_else(|| of(Status::Warning))?;
    let remedy = first.remedy.as_deref()?;
    let remedy = if remedy.starts_with(ON_THE_HOST) {
        let all = checks.iter().filter(|check| check.status == Status::Failed);
        let mut commands: Vec<&str> = Vec::new();
        let remedies = all.filter_map(|check| check.remedy.as_deref()?.strip_prefix(ON_THE_HOST));
        // One that passes several nodes has a command for each, of which another has some too.
        for command in remedies.flat_map(|remedy| remedy.split(AND)) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        format!("{ON_THE_HOST}{}", commands.join(AND))
    } else {
        remedy.to_owned()
    };
    // A path or an address is a thing, and evidence reads on from it; another subject is a heading.
    let thing = first.subject.as_ref().filter(|subject| subject.contains(['/', ':']));
    let subject = thing.map_or_else(String::new, |subject| format!("{subject} "));
    Some(format!("{subject}{}: {remedy}", first.evidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: Status, subject: Option<&str>, evidence: &str, remedy: Option<&str>) -> Check {
        Check {
            name: "nodes",
            subject: subject.map(str::to_owned),
            status,
            evidence: evidence.to_owned(),
            remedy: remedy.map(str::to_owned),
        }
    }

    #[test]
    fn the_first_thing_that_fails_is_told_and_of_a_container_all_commands() {
        let kfd = "on the host: lxc config device add CONTAINER kfd unix-char source=/dev/kfd";
        let gpu = "on the host: lxc config device add CONTAINER gpu0 gpu pci=0000:64:00.0";
        let both = format!("{kfd} && {}", gpu.trim_start_matches("on the host: "));
        for (checks, expected) in [
            (vec![check(Status::Ok, None, "fine", None)], None),
            (
                vec![
                    check(Status::Warning, None, "a warning", Some("look")),
                    check(Status::Failed, Some("/dev/kfd"), "is not there", Some("modprobe amdgpu")),
                    check(Status::Failed, None, "another", Some("another")),
                ],
                Some("/dev/kfd is not there: modprobe amdgpu".to_owned()),
            ),
            (
                vec![
                    check(Status::Failed, Some("passthrough"), "none of them in /dev", Some(gpu)),
                    check(Status::Failed, Some("/dev/kfd"), "is not there", Some(kfd)),
                    check(Status::Failed, None, "both", Some(&both)),
                ],
                Some(
                    "none of them in /dev: on the host: lxc config device add CONTAINER gpu0 gpu pci=0000:64:00.0 && lxc \
                     config device add CONTAINER kfd unix-char source=/dev/kfd"
                        .to_owned(),
                ),
            ),
        ] {
            assert_eq!(told(&checks), expected);
        }
    }
}
