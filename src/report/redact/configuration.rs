//! Configurations, written anew with the plain values of known keys ([`super::value`]). Comments go: they hold anything.

use engines::{Format, Keys};
use host::env_file::{self, EnvFile};
use host::unit;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use super::Redactor;
use super::keys::{ENVIRONMENT, UNIT};
use super::value::{
    arguments, has_known, is_known, is_name, is_of_environment, is_secret, name, redacted, removed, variable,
};

impl Redactor {
    /// A configuration with the plain values of its known keys alone.
    pub(crate) fn configuration(&self, format: Format, text: &str) -> String {
        let written = match format {
            Format::Json(keys) => json(keys, text),
            Format::Yaml(keys) => yaml(keys, text),
            Format::Toml(keys) => toml(keys, text),
            Format::Env => Some(env(text)),
            Format::Unit => Some(of_unit(text)),
        };
        // With open brackets, so that a program that reads it fails as it did with the original.
        let unread = || format!("[{{ {} that cannot be read\n", removed("text", text));
        self.identities(&written.unwrap_or_else(unread))
    }
}

fn json(keys: Keys<'_>, text: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    judge(keys, &[], &mut value);
    Some(format!("{value:#}\n"))
}

fn yaml(keys: Keys<'_>, text: &str) -> Option<String> {
    // Unlike JSON's, this Value refuses a key that is there twice.
    let whole: yaml_serde::Value = yaml_serde::from_str(text).ok()?;
    let mut value: Value = yaml_serde::from_value(whole).ok()?;
    judge(keys, &[], &mut value);
    if value.is_null() { Some(String::new()) } else { yaml_serde::to_string(&value).ok() }
}

fn toml(keys: Keys<'_>, text: &str) -> Option<String> {
    let mut value = edit::Format::Toml.read(text).ok()?;
    judge(keys, &[], &mut value);
    let Value::Object(map) = value else { return None };
    let mut written = DocumentMut::new();
    *written.as_table_mut() = table(map)?;
    Some(written.to_string())
}

fn table(map: Map<String, Value>) -> Option<Table> {
    let mut table = Table::new();
    table.set_implicit(!map.is_empty() && map.values().all(Value::is_object));
    for (key, value) in map {
        let item = match value {
            Value::Object(map) => Item::Table(self::table(map)?),
            // Without a table in it, a value is written in TOML as in JSON.
            other => Item::Value(other.to_string().parse().ok()?),
        };
        table.insert(&key, item);
    }
    Some(table)
}

/// Replaces values that are not plain, values of unknown keys, and tables without a known key. `place`: the keys above.
fn judge(keys: Keys<'_>, place: &[&str], value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(_) if is_known(keys, place) => {}
        Value::Number(number) => *value = removed("number", &number.to_string()).into(),
        Value::String(text) => *value = redacted(keys, place, text).into(),
        Value::Array(items) => {
            // An option's value can be the next item.
            let option = items.iter().position(|item| item.as_str().is_some_and(is_secret));
            for (nth, item) in items.iter_mut().enumerate() {
                let is_behind = option.is_some_and(|option| nth > option);
                judge(if is_behind { &[] } else { keys }, place, item);
            }
        }
        Value::Object(map) if has_known(keys, place) => {
            let judged = std::mem::take(map).into_iter().enumerate().map(|(nth, (key, mut value))| {
                judge(keys, &[place, &[key.as_str()]].concat(), &mut value);
                (if is_name(&key) { key } else { format!("{} {nth}", removed("name", &key)) }, value)
            });
            *map = judged.collect();
        }
        Value::Object(_) => *value = removed("table", &value.to_string()).into(),
    }
}

fn env(text: &str) -> String {
    let EnvFile { variables, ignored } = EnvFile::parse(text);
    let variables = variables.iter().map(|(name, value)| {
        let line = env_file::line(name, &redacted(ENVIRONMENT, &[name], value));
        line.filter(|_| is_of_environment(name))
            .unwrap_or_else(|| format!("# {}", removed("line", &format!("{name}={value}"))))
    });
    let ignored = ignored.iter().map(|it| format!("# {}", removed("line", it)));
    variables.chain(ignored).map(|line| line + "\n").collect()
}

fn of_unit(text: &str) -> String {
    let (mut written, mut inside) = (String::new(), String::new());
    for (section, key, value) in unit::lines(text) {
        if section != inside {
            written += &format!("[{}]\n", name(&section));
            inside = section;
        }
        // systemd's settings are words with capitals: NoNewPrivileges, X-Owner.
        if !is_name(&key) || !key.starts_with(|c: char| c.is_ascii_uppercase()) {
            written += &format!("# {}\n", removed("line", &format!("{key}={value}")));
            continue;
        }
        let value = match key.as_str() {
            _ if value.is_empty() => value,
            "Environment" | "UnsetEnvironment" => {
                quoted(unit::words(&value).iter().map(|word| variable(word)))
            }
            key if key.starts_with("Exec") => {
                let command = value.trim_start_matches(['@', '-', ':', '+', '!', '|']);
                let flags = value.strip_suffix(command).unwrap_or_default();
                format!("{flags}{}", quoted(arguments(&unit::words(command)).into_iter()))
            }
            key => redacted(UNIT, &[key], &value),
        };
        written += &format!("{key}={value}\n");
    }
    written
}

/// Words as a unit has them.
fn quoted(words: impl Iterator<Item = String>) -> String {
    let quoted =
        words.map(|word| if word.is_empty() || word.contains(' ') { format!("\"{word}\"") } else { word });
    quoted.collect::<Vec<_>>().join(" ")
}
