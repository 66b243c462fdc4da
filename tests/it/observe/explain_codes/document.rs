//! docs/explain.md: each command is run on a machine with two linked GPUs, and prints what the document says.

use std::fs;
use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use support::detect::scratch;
use support::document::text;

/// The fenced blocks of a document: the word behind the fence, and the lines.
fn fenced(document: &str) -> Vec<(&str, &str)> {
    let parts = document.split("```").skip(1).step_by(2);
    parts.map(|part| part.split_once('\n').unwrap()).collect()
}

/// A block's commands, each with what it prints.
fn commands(block: &str) -> impl Iterator<Item = (&str, &str)> {
    block.split("$ rocworker ").skip(1).map(|part| part.split_once('\n').unwrap())
}

/// What a command prints on this machine, without the folder that the machine is in.
fn said(root: &Path, arguments: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_rocworker")).parent().unwrap();
    let root = root.to_str().unwrap();
    let mut sh = Command::new("sh");
    sh.args([
        "-c",
        &format!("exec 2>&1; PATH={}:$PATH; rocworker --root {root} {arguments}", program.display()),
    ]);
    let said = String::from_utf8(sh.output().unwrap().stdout).unwrap();
    said.replace(&format!("--root {root} "), "").replace(root, "")
}

#[test]
fn each_command_prints_what_the_document_shows() {
    let document = text("docs/explain.md");
    let root = scratch();
    Machine::instinct_linked(2, 1).lay_out(root.path(), Nodes::Recorded).unwrap();
    let mut ran = Vec::new();
    for (kind, block) in fenced(&document) {
        if kind == "toml" {
            fs::create_dir_all(root.path().join("etc/rocworker")).unwrap();
            fs::write(root.path().join("etc/rocworker/afids.toml"), block).unwrap();
        } else {
            assert_eq!(kind, "console", "{block}");
            for (arguments, expected) in commands(block) {
                assert_eq!(said(root.path(), arguments), expected, "{arguments}");
                ran.push(arguments);
            }
        }
    }
    for arguments in ["explain 1", "explain 7", "list-errors", "explain hip:719"] {
        assert!(ran.contains(&arguments), "{arguments} is not in the document: {ran:?}");
    }
}
