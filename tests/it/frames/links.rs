//! Links to links, and links to nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fleet::script::Wanted;
use layout::Machine;
use root::{Error, Root};

use crate::frames::{machines, shells};

/// What a Root says of a path, but for times.
fn said(root: &Root, path: &str, top: &Path) -> String {
    fn text<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
        answer.map_or_else(|error| error.to_string(), |it| format!("{it:?}"))
    }
    let all = [
        text(root.lstat(path).map(|meta| (meta.kind, meta.mode, meta.uid))),
        text(root.stat(path).map(|meta| (meta.kind, meta.mode, meta.uid))),
        text(root.read(path, 99)),
        text(root.read_trusted(path, 99)),
        text(root.list(path)),
        format!("{} {}", root.exists(path), root.is_there(path)),
    ];
    all.join("\n").replace(&format!("{}/", top.display()), "/")
}

#[test]
fn each_link_of_a_chain_stays_one_and_a_dangling_one_leads_nowhere() {
    let folder = machines::laid_out(&Machine::new());
    let top = folder.path();
    let specs = top.join("etc/cdi");
    fs::create_dir_all(&specs).unwrap();
    fs::create_dir_all(top.join("etc/crio")).unwrap();
    fs::write(specs.join("c.json"), "{}").unwrap();
    for (link, target) in [
        ("etc/cdi/a.json", "b.json"),
        ("etc/cdi/b.json", "../cdi/c.json"),
        ("etc/cdi/0.json", "a.json"),
        // To nothing, to a link to nothing, and in a circle.
        ("etc/crio/crio.conf", "gone.conf"),
        ("etc/default", "also/gone"),
        ("run/cdi", "cdi"),
    ] {
        fs::create_dir_all(top.join(link).parent().unwrap()).unwrap();
        symlink(target, top.join(link)).unwrap();
    }
    let local = Root::open(top).unwrap();
    for shell in shells::all() {
        let remote = Root::of_files(shell.read(top, Wanted::Doctor).files);
        for path in [
            "/etc/cdi/0.json",
            "/etc/cdi/a.json",
            "/etc/cdi/b.json",
            "/etc/cdi/c.json",
            "/etc/crio/crio.conf",
            "/etc/default",
            "/run/cdi",
        ] {
            assert_eq!(said(&remote, path, top), said(&local, path, top), "{}: {path}", shell.name);
        }
        assert!(remote.not_read().is_empty(), "{:?}", remote.not_read());
    }
}
