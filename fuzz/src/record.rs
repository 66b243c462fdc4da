//! What a container was given, as it is kept in /run/rocworker.

use allocation::record::{Record, SCHEMA_VERSION};
use serde_json::Value;

/// The text of a record.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let record = match Record::parse(text) {
        Ok(record) => record,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(record.schema_version <= SCHEMA_VERSION);
    let written = record.to_json().expect("every record can be written");
    assert_eq!(Record::parse(&written).expect("what was written reads again"), record);
    let (before, after) = (tree(text), tree(&written));
    assert!(before.is_object(), "read, though it is no object: {text}");
    for key in ["schema_version", "id", "root", "gids", "env", "creator"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let indexes = |tree: &Value| {
        let gpus = tree["gpus"].as_array().expect("a list");
        gpus.iter().map(|gpu| gpu["index"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(indexes(&before), indexes(&after));
}

fn tree(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
