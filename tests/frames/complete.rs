//! Whatever a command asks a machine for, the script has read, listed, or found missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocworker::fleet::script::Wanted;
use root::{Error, Root};

use crate::{answers, machines, shells};

/// What a test alone has.
const LEFT_OUT: [&str; 1] = ["/capture.json"];

#[test]
fn everything_that_a_command_asks_for_is_read() {
    let shell = &shells::all()[0];
    let mut missing = BTreeMap::<PathBuf, String>::new();
    for (name, machine) in machines::all() {
        let folder = machines::laid_out(&machine);
        for wanted in answers::COMMANDS {
            let reading = answers::with_nodes(shell.read(folder.path(), wanted), folder.path());
            let root = Root::of_files(reading.files);
            answers::answer(&root, wanted, folder.path());
            for path in root.not_read() {
                if LEFT_OUT.iter().all(|it| path != Path::new(it)) {
                    missing.entry(path).or_insert_with(|| format!("{wanted:?} of {name}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} are not read: {missing:#?}", missing.len());
}

#[test]
fn what_is_known_only_by_a_first_answer_is_read_in_a_further_connection() {
    let shell = &shells::all()[0];
    let lacking = [
        (Wanted::Doctor, "/opt/gpu/imports/amd.toml"),
        (Wanted::Readings, "/sys/class/drm/renderD145/device/xcp/xcp_metrics"),
    ];
    for ((name, machine), (wanted, path)) in machines::in_several_connections().into_iter().zip(lacking) {
        let folder = machines::laid_out(&machine);
        let first = Root::of_files(shell.read(folder.path(), wanted).files);
        assert!(
            matches!(first.read(path, 1 << 16), Err(Error::NotRead { .. })),
            "{name}: {:?}",
            first.read(path, 1 << 16)
        );
        assert!(answers::whole(shell, folder.path(), wanted).read(path, 1 << 16).is_ok(), "{name}");
    }
}
