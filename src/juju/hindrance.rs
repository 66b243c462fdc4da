//! Why no GPU can be used, and the one thing to do about it: as doctor finds it.

use reconcile::command::Programs;
use root::Root;

use crate::config::Config;
use crate::doctor::{self, Check, Status};
use crate::facts::Facts;
use crate::lxd::on_host::OnHost;

/// Some five lines of a terminal, with three commands or four. Juju keeps a status of any length; the table of `juju status`
/// shows 120 letters of it (juju/cmd/juju/status/output_tabular.go), and `--format=yaml` all.
const READABLE: usize = 400;

/// In a line; `None` where doctor finds nothing wrong. In a container to which nodes were not passed, all of the
/// commands that pass them, for one alone makes no GPU usable; where they are many, what prints them.
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
    // A path or an address is a thing, and evidence reads on from it; another subject is a heading.
    let thing = first.subject.as_ref().filter(|subject| subject.contains(['/', ':']));
    let subject = thing.map_or_else(String::new, |subject| format!("{subject} "));
    let said = |remedy: &str| format!("{subject}{}: {remedy}", first.evidence);
    let Some(on_host) = &first.on_host else { return first.remedy.as_deref().map(said) };
    let alike = checks.iter().filter(|check| check.status == first.status);
    let all =
        alike.filter_map(|check| check.on_host.as_deref().cloned()).fold(OnHost::clone(on_host), OnHost::and);
    let whole = said(&all.to_string());
    Some(if whole.chars().count() > READABLE { said(&all.in_brief()) } else { whole })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::doctor::About;
    use crate::lxd::command::{Client, Command, Container, PLACEHOLDER};

    #[test]
    fn the_first_thing_that_fails_is_told_and_of_a_container_each_command_once() {
        let lxd = Container { client: Client::Lxc, name: PLACEHOLDER, gid: Some(992) };
        let kfd = lxd.add_node(Path::new("/dev/kfd"));
        let gpu = lxd.add_node(Path::new("/dev/dri/renderD128"));
        let about = |subject: &str| About::one("nodes", subject);
        let on_host = |commands: &[&Command]| {
            OnHost::new(&lxd, commands.iter().map(|command| (*command).clone()).collect())
        };
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
                    about("passthrough").failed("none of them in /dev", on_host(&[&kfd, &gpu])),
                    about("/dev/kfd").failed("is not there", on_host(&[&kfd])),
                    about("/dev/dri/renderD129").warning("is not there", "look"),
                ],
                Some(format!("none of them in /dev: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("/dev/kfd").failed("is not there", on_host(&[&kfd])),
                    about("passthrough").failed("none of them in /dev", on_host(&[&gpu])),
                    about("GPU 1").failed("cannot be opened", "on the host: see to its group"),
                ],
                Some(format!("/dev/kfd is not there: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("passthrough").warning("right, if the other is another's", on_host(&[&gpu])),
                    about("/dev/kfd").ok("fine"),
                ],
                Some(format!("right, if the other is another's: on the host: {gpu}")),
            ),
        ] {
            assert_eq!(told(&checks), expected);
        }
    }

    #[test]
    fn more_commands_than_can_be_read_are_told_by_what_prints_them() {
        for (name, called) in
            [(PLACEHOLDER, "CONTAINER"), ("c1", "c1 (its hostname, and likely its name there)")]
        {
            let lxd = Container { client: Client::Lxc, name, gid: Some(992) };
            let kfd = lxd.add_node(Path::new("/dev/kfd"));
            let renders =
                (128..136).map(|minor| lxd.add_node(Path::new(&format!("/dev/dri/renderD{minor}"))));
            let commands = std::iter::once(kfd.clone()).chain(renders).collect();
            let check =
                About::one("virtualization", "passthrough").failed("none", OnHost::new(&lxd, commands));
            let expected = format!(
                "none: on the host: rocworker lxd advise --container {called} prints the 9 commands, and so does rocworker \
                 doctor in here; the first is {kfd}"
            );
            assert_eq!(told(&[check]), Some(expected));
        }
    }
}
