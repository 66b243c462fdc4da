//! Keys and values as TOML writes them.

use serde_json::Value as Json;
use toml_edit::{Key, Value};

use crate::Fault;

pub(super) fn key(name: &str) -> String {
    Key::new(name).display_repr().into_owned()
}

/// `plugins."io.containerd.grpc.v1.cri".enable_cdi`
pub(super) fn path(path: &[String]) -> String {
    path.iter().map(|name| key(name)).collect::<Vec<_>>().join(".")
}

/// On one line, tables in braces.
pub(super) fn value(value: &Json) -> Result<String, Fault> {
    let each = |list: Vec<Result<String, Fault>>| list.into_iter().collect::<Result<Vec<_>, _>>();
    Ok(match value {
        Json::Null => {
            return Err(Fault { line: 1, problem: "TOML has no null, which is to be written".to_owned() });
        }
        Json::Bool(is) => is.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => Value::from(text.as_str()).to_string(),
        Json::Array(list) => format!("[{}]", each(list.iter().map(self::value).collect())?.join(", ")),
        Json::Object(table) if table.is_empty() => "{}".to_owned(),
        Json::Object(table) => {
            let entry =
                |(name, inner): (&String, &Json)| Ok(format!("{} = {}", key(name), self::value(inner)?));
            format!("{{ {} }}", each(table.iter().map(entry).collect())?.join(", "))
        }
    })
}
