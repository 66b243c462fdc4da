//! What should be of a machine, as `rocworker::desired::host` has it.

use std::path::Path;

use ::host::facts::Facts;
use ::host::groups::Groups;
use config::Config;
use layout::{Machine, Nodes};
use reconcile::{Content, Desired, Kind};
use render::Templates;
use rocworker::desired::host;
use root::Root;

/// The gid of the group render on these machines.
pub(crate) const RENDER: u32 = 992;

/// What this configuration wants of the machine, which has a group render.
pub(crate) fn on(machine: &Machine, config: &str) -> Desired {
    with_group(machine, config, Some(RENDER))
}

pub(crate) fn with_group(machine: &Machine, config: &str, render_gid: Option<u32>) -> Desired {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    std::fs::create_dir_all(folder.path().join("etc")).unwrap();
    let line = render_gid.map_or_else(String::new, |gid| format!("render:x:{gid}:\n"));
    std::fs::write(folder.path().join("etc/group"), line).unwrap();
    let root = Root::open(folder.path()).unwrap();
    let (facts, groups) = (Facts::read(&root), Groups::read(&root));
    let config = Config::parse(Path::new("config.yaml"), config).unwrap();
    host::actions(&config, &facts, &Templates::built_in(), &groups, false).unwrap()
}

/// The text of the file that should stand there.
#[track_caller]
pub(crate) fn text(desired: &Desired, path: &str) -> String {
    let found = desired.actions.iter().find(|action| action.path == Path::new(path));
    match found.map(|action| &action.kind) {
        Some(Kind::Owned(Content::File { bytes, .. })) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{path} should be a file, and is {other:?}"),
    }
}
