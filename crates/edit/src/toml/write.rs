//! Values as TOML writes them.

use serde_json::Value as Json;
use toml_edit::{Array, InlineTable, Value};

use crate::Fault;

/// On one line, tables in braces.
pub(super) fn value(value: &Json) -> Result<String, Fault> {
    let value = of_json(value).ok_or_else(|| Fault {
        line: 1,
        problem: "TOML has no null and no number of this size, and one is to be written".to_owned(),
    });
    Ok(value?.to_string())
}

fn of_json(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(is) => (*is).into(),
        Json::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().filter(|_| number.is_f64())?.into(),
        },
        Json::String(text) => text.into(),
        Json::Array(list) => list.iter().map(of_json).collect::<Option<Array>>()?.into(),
        Json::Object(table) => {
            let entries = table.iter().map(|(name, value)| Some((name, of_json(value)?)));
            entries.collect::<Option<InlineTable>>()?.into()
        }
    })
}
