//! Whatever a command asks a machine for, the script has read, listed, or found missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::files::{Content, Entry, Files};

use crate::{answers, machines, shells};

/// What only the contents of another file name, and what a test alone has.
const LEFT_OUT: [&str; 2] = ["/capture.json", "/"];

/// Whether what is at a path is known, if only that nothing is there.
fn is_known(files: &Files, path: &Path) -> bool {
    let entry = files.entries.get(path);
    if entry.is_some_and(|entry| !matches!(entry.content, Content::Unread(_))) {
        return true;
    }
    // A folder on the way is missing, or lists no such name.
    path.ancestors().zip(path.ancestors().skip(1)).any(|(below, above)| {
        let lists = |entry: &Entry| match (&entry.content, below.file_name()) {
            (Content::Folder(names), Some(name)) => !names.iter().any(|it| it == name),
            (Content::Failed(_), _) => true,
            _ => false,
        };
        files.entries.get(above).is_some_and(lists)
    })
}

#[test]
fn everything_that_a_command_asks_for_is_read() {
    let shell = &shells::all()[0];
    let mut missing = BTreeMap::<PathBuf, String>::new();
    for (name, machine) in machines::all() {
        let folder = machines::laid_out(&machine);
        for wanted in answers::COMMANDS {
            let reading = answers::with_nodes(shell.read(folder.path(), wanted), folder.path());
            for path in answers::asked(folder.path(), wanted) {
                let is_left_out = LEFT_OUT.iter().any(|it| path == Path::new(it));
                if !is_left_out && !is_known(&reading.files, &path) {
                    missing.entry(path).or_insert_with(|| format!("{wanted:?} of {name}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} are not read: {missing:#?}", missing.len());
}
