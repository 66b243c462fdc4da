//! Whatever a command asks a machine for, the script has read, listed, or found missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rocworker::fleet::script::Wanted;
use root::Root;

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

/// Two connections more: the configuration names a folder by a pattern, and its files are known once it was listed.
#[test]
fn what_only_a_files_text_names_is_read_once_that_is_known() {
    let folder = machines::laid_out(&machines::named_elsewhere());
    let local = answers::answer(&Root::open(folder.path()).unwrap(), Wanted::Doctor, folder.path());
    for shell in shells::all() {
        let (mut named, mut connections) = (Vec::new(), 0);
        let remote = loop {
            let reading = shell.read_named(folder.path(), Wanted::Doctor, &named);
            let root = Root::of_files(answers::with_nodes(reading, folder.path()).files);
            let remote = answers::answer(&root, Wanted::Doctor, folder.path());
            connections += 1;
            named.extend(root.not_read().into_iter().filter(|path| path != Path::new(LEFT_OUT[0])));
            if root.not_read().iter().all(|path| path == Path::new(LEFT_OUT[0])) {
                break remote;
            }
            assert!(connections < 4, "{}: {:?}", shell.name, root.not_read());
        };
        assert_eq!(remote, local, "{}", shell.name);
        assert!(connections > 1 && named.contains(&"/opt/gpu/imports/amd.toml".into()), "{named:?}");
    }
}
