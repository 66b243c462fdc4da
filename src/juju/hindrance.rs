//! Why no GPU can be used, and the one thing to do about it: as doctor finds it.

use reconcile::command::Programs;
use root::Root;

use crate::config::Config;
use crate::doctor::{self, Check, Status};
use crate::facts::Facts;
use crate::lxd::command::{Command, on_the_host};

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
    let remedy = if first.on_host.is_empty() {
        first.remedy.clone()?
    } else {
        let mut commands: Vec<Command> = Vec::new();
        for command in checks.iter().filter(|check| check.status == Status::Failed).flat_map(|it| &it.on_host)
        {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        on_the_host(&commands)
    };
    // A path or an address is a thing, and evidence reads on from it; another subject is a heading.
    let thing = first.subject.as_ref().filter(|subject| subject.contains(['/', ':']));
    let subject = thing.map_or_else(String::new, |subject| format!("{subject} "));
    Some(format!("{subject}{}: {remedy}", first.evidence))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::doctor::About;
    use crate::lxd::command::{Client, Container, PLACEHOLDER};

    #[test]
    fn the_first_thing_that_fails_is_told_and_of_a_container_each_command_once() {
        let lxd = Container { client: Client::Lxc, name: PLACEHOLDER, gid: Some(992) };
        let kfd = lxd.add_node(Path::new("/dev/kfd"));
        let gpu = lxd.add_node(Path::new("/dev/dri/renderD128"));
        let about = |subject: &str| About::one("nodes", subject);
        for (checks, expected) in [
            (vec![about("/dev/kfd").ok("fine")], None),
            (
                vec![
                    About::all("nodes").warning("a warning", "look"),
                    about("/dev/kfd").failed("is not there", "modprobe amdgpu"),
                    About::all("nodes").failed("another", "another"),
                ],
                Some("/dev/kfd is not there: modprobe amdgpu".to_owned()),
            ),
            (
                vec![
                    about("passthrough").failed("none of them in /dev", vec![kfd.clone(), gpu.clone()]),
                    about("/dev/kfd").failed("is not there", vec![kfd.clone()]),
                    about("/dev/dri/renderD129").warning("is not there", "look"),
                ],
                Some(format!("none of them in /dev: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("/dev/kfd").failed("is not there", vec![kfd.clone()]),
                    about("passthrough").failed("none of them in /dev", vec![gpu.clone()]),
                    about("GPU 1").failed("cannot be opened", "on the host: see to its group"),
                ],
                Some(format!("/dev/kfd is not there: on the host: {kfd} && {gpu}")),
            ),
        ] {
            assert_eq!(told(&checks), expected);
        }
    }
}
