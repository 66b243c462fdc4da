//! What a container was given, as it is kept in /run/rocworker.
//!
//! serde_json reads it, here as in the product: a lone surrogate is refused. And as serde does, a list stands for an
//! object whose fields it has in their order; nobody writes one, and root's own files are all that is read.

use std::path::Path;

use allocation::document::Document as _;
use allocation::record::Record;
use lease::store::{Key, valid_id};
use serde_json::Value;

use crate::assert_fit_for_a_log;

/// The text of a record.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let record = match Record::parse(text) {
        Ok(record) => record,
        Err(error) => return assert_fit_for_a_log(&error.to_string()),
    };
    assert!(record.schema_version <= Record::SCHEMA_VERSION);
    let written = record.to_json().expect("every record can be written");
    assert_eq!(Record::parse(&written).expect("what was written reads again"), record);
    assert!(written.ends_with("}\n") && written.lines().count() == 1, "one line: {written}");
    let (before, after) = (tree(text), tree(&written));
    assert!(before.is_object(), "read, though it is no object: {text}");
    for key in ["schema_version", "id", "root", "gids", "env", "env_unless_set", "memlock_bytes"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_eq!(fields(&before["creator"], &["pid", "start_time", "boot_id"]), values(&after["creator"]));
    let gpus = |tree: &Value| tree["gpus"].as_array().expect("a list").clone();
    assert_eq!(gpus(&before).len(), record.gpus.len());
    for (before, after) in gpus(&before).iter().zip(gpus(&after)) {
        is_the_gpu(before, &after);
    }
    is_one_containers(&record);
}

/// A record is the one of its root and id, and of no other, and so is the file that it is found by.
fn is_one_containers(record: &Record) {
    let key = Key { root: Path::new(&record.root), id: &record.id };
    assert!(key.is_of(record));
    let longer = format!("{}x", record.id);
    let shorter = record.id.get(1..).unwrap_or("x");
    for other in [longer.as_str(), shorter] {
        assert!(!Key { id: other, ..key }.is_of(record), "{other:?} has the record of {:?}", record.id);
    }
    let elsewhere = format!("{}/x", record.root);
    assert!(!Key { root: Path::new(&elsewhere), ..key }.is_of(record));
    if valid_id(record.id.as_bytes()) == Some(&record.id) {
        let name = key.file_name();
        let (root, id) = name.split_once('@').expect("an @ between root and id");
        assert_eq!((decoded(root), id), (record.root.clone().into_bytes(), &*record.id), "{name}");
        assert!(name.bytes().all(|byte| byte != b'/' && byte != 0), "{name}");
    }
}

/// What percent-encoding stands for.
fn decoded(name: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), name.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        (bytes, rest) = match first {
            b'%' => {
                let digits = std::str::from_utf8(&behind[..2]).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                (bytes, &behind[2..])
            }
            byte => {
                bytes.push(*byte);
                (bytes, behind)
            }
        };
    }
    bytes
}

/// A GPU by its index, card and render node: of the last two another spelling may stand in the text.
pub(crate) fn is_the_gpu(before: &Value, after: &Value) {
    let before = fields(before, &["index", "pci", "render"]);
    assert_eq!(before[0], after["index"]);
    let lower = |value: &Value| value.as_str().map(str::to_ascii_lowercase);
    match (lower(&before[1]), lower(&after["pci"])) {
        (None, None) => {}
        (Some(before), Some(after)) => assert!(address(&before) == address(&after), "{before} and {after}"),
        (before, after) => panic!("{before:?} became {after:?}"),
    }
    let render = |value: &Value| {
        let text = value.as_str().expect("a text");
        text.strip_prefix("/dev/dri/").unwrap_or(text).to_owned()
    };
    assert_eq!(render(&before[2]), render(&after["render"]));
}

/// An address without what may be left out of it.
fn address(text: &str) -> (String, String) {
    let (domain, rest) = text.split_once(':').expect("a colon");
    match rest.contains(':') {
        true => (domain.trim_start_matches('0').to_owned(), rest.to_owned()),
        false => (String::new(), text.to_owned()),
    }
}

/// The fields of an object, or of the list that serde takes for it. One that is absent is null.
pub(crate) fn fields(value: &Value, keys: &[&str]) -> Vec<Value> {
    match value.as_array() {
        Some(list) => list.clone(),
        None => keys.iter().map(|key| value[*key].clone()).collect(),
    }
}

/// The fields of a creator that the product wrote, which has these keys and no others.
fn values(creator: &Value) -> Vec<Value> {
    assert_eq!(creator.as_object().map(serde_json::Map::len), Some(3));
    fields(creator, &["pid", "start_time", "boot_id"])
}

pub(crate) fn tree(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
