//! Real files of containerd with a few lines and characters of them changed.

use std::fs;
use std::path::{Path, PathBuf};

use edit::{Edit, Format, Key, Set};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

const SECTIONS: [&str; 3] = ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"];

fn corpus() -> Vec<String> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines/configs")];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 30, "{files:#?}");
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

fn ours(section: &str) -> Edit {
    let key = |at: &[&str], set| Key { path: at.iter().map(|name| (*name).to_owned()).collect(), set };
    let runtimes = ["plugins", section, "containerd", "runtimes"];
    let at = |rest: &[&'static str]| [&runtimes[..], rest].concat();
    let amd = json!({"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/w"}});
    let keys = vec![
        key(&["version"], Set::Needed(2.into())),
        key(&["imports"], Set::Member("/etc/containerd/conf.d/rocworker*.toml".into())),
        key(&["plugins", section, "enable_cdi"], Set::Value(true.into())),
        key(&at(&["runc"]), Set::Needed(json!({"runtime_type": "r", "options": {"Root": ""}}))),
        key(
            &at(&["amd"]),
            Set::Entry {
                value: amd,
                identity: "options/BinaryName".to_owned(),
                instead: vec!["runtime_type".to_owned()],
            },
        ),
    ];
    Edit::new(Format::Toml, keys)
}

#[derive(Debug, Clone)]
enum Change {
    DropLine(Index),
    RepeatLine(Index, Index),
    Put(Index, &'static str),
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut text = text.to_owned();
    for change in changes {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        text = match change {
            _ if lines.is_empty() => text,
            Change::DropLine(line) => {
                lines.remove(line.index(lines.len()));
                lines.concat()
            }
            Change::RepeatLine(line, to) => {
                let line = lines[line.index(lines.len())];
                lines.insert(to.index(lines.len()), line);
                lines.concat()
            }
            Change::Put(at, what) => {
                let at = at.index(text.len() + 1);
                let at = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap();
                format!("{}{what}{}", &text[..at], &text[at..])
            }
        };
    }
    text
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let put =
        vec![" ", "\n", "\r\n", "#", "# c\n", "\"", "'", "]", "{", ",", "x = 1\n", "[x]\n", "\"\"\"", "é"];
    let change = prop_oneof![
        any::<Index>().prop_map(Change::DropLine),
        (any::<Index>(), any::<Index>()).prop_map(|(line, to)| Change::RepeatLine(line, to)),
        (any::<Index>(), select(put)).prop_map(|(at, what)| Change::Put(at, what)),
    ];
    proptest::collection::vec(change, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn files_as_engines_ship_them_go_back_to_what_they_were(
        start in select(corpus()),
        changes in changes(),
        section in select(SECTIONS.to_vec()),
    ) {
        let text = changed(&start, &changes);
        let edit = ours(section);
        let Ok(applied) = edit.apply(&text) else { return Ok(()) };
        prop_assert_eq!(&edit.apply(&applied).unwrap(), &applied);
        let back = edit.revert(&applied, Some(&text)).unwrap();
        prop_assert_eq!((back.text.as_deref(), back.left), (Some(text.as_str()), Vec::new()));
        let read = Format::Toml.read(&text).unwrap();
        let somebody = format!("{applied}\n# somebody\n");
        let back = edit.revert(&somebody, Some(&text)).unwrap().text.unwrap();
        prop_assert_eq!(Format::Toml.read(&back).unwrap(), read, "{}\n=>\n{}", somebody, back);
        // Which line stands where again, but for blank ones and the end of a list or of the file.
        let plain = |text: &str| -> Vec<String> {
            let lines = text.lines().map(|line| line.replace([',', ' ', '\u{feff}'], ""));
            lines.filter(|line| !line.is_empty() && line != "#somebody").collect()
        };
        prop_assert_eq!(plain(&back), plain(&text), "{}\n=>\n{}", somebody, back);
    }
}
