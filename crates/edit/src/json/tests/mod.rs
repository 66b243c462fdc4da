mod apply;
mod entry;
mod properties;
mod revert;

use serde_json::{Value, json};

use crate::{Edit, Format, Key, Set};

fn key(path: &[&str], set: Set) -> Key {
    Key { path: path.iter().map(|part| (*part).to_owned()).collect(), set }
}

fn value(path: &[&str], value: Value) -> Key {
    key(path, Set::Value(value))
}

fn edit(keys: impl Into<Vec<Key>>) -> Edit {
    Edit::new(Format::Json, keys.into())
}

/// A table that is managed by its `path`.
fn entry(path: &[&str], program: &str) -> Key {
    key(
        path,
        Set::Entry {
            value: json!({"path": program}),
            identity: "path".to_owned(),
            instead: vec!["runtimeType".to_owned()],
        },
    )
}

/// The edit of docker's daemon.json.
fn docker() -> Edit {
    edit([
        value(&["features", "cdi"], json!(true)),
        value(&["runtimes", "amd"], json!({"path": "/usr/bin/runc-amd-wrapper"})),
    ])
}

fn cdi() -> Edit {
    edit([value(&["features", "cdi"], json!(true))])
}

fn dirs() -> Edit {
    edit([key(&["cdi-spec-dirs"], Set::Member(json!("/srv/cdi")))])
}
