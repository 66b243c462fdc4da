//! Configurations, written anew with what may be told of them ([`super::allow`]). Comments go: they hold anything.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

use super::allow::{arguments, is_of_environment, is_of_unit, name, removed, told, variable};
use super::keys::{CDI, CONTAINERD, DOCKER, ENVIRONMENT, Keys, ROCWORKER, UNIT};
use super::{Redacted, is_secret};
use crate::engines::env_file::{self, EnvFile};
use crate::engines::unit;

/// How a configuration is written, and which keys of it are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    syntax: Syntax,
    keys: &'static Keys,
}

#[derive(Debug, Clone, Copy)]
enum Syntax {
    Json,
    Yaml,
    Toml,
    Env,
    Unit,
}

impl Format {
    pub(crate) const CONTAINERD: Self = Self { syntax: Syntax::Toml, keys: &CONTAINERD };
    pub(crate) const DOCKER: Self = Self { syntax: Syntax::Json, keys: &DOCKER };
    pub(crate) const CDI_JSON: Self = Self { syntax: Syntax::Json, keys: &CDI };
    pub(crate) const CDI_YAML: Self = Self { syntax: Syntax::Yaml, keys: &CDI };
    pub(crate) const CONFIG: Self = Self { syntax: Syntax::Yaml, keys: &ROCWORKER };
    pub(crate) const POLICY: Self = Self { syntax: Syntax::Json, keys: &ROCWORKER };
    pub(crate) const ENV: Self = Self { syntax: Syntax::Env, keys: &ENVIRONMENT };
    pub(crate) const UNIT: Self = Self { syntax: Syntax::Unit, keys: &UNIT };
}

pub(super) fn redacted(format: Format, text: &str) -> Redacted {
    let mut places = 0;
    let keys = format.keys;
    let written = match format.syntax {
        Syntax::Json => json(keys, text, &mut places),
        Syntax::Yaml => yaml(keys, text, &mut places),
        Syntax::Toml => toml(keys, text, &mut places),
        Syntax::Env => Some(env(keys, text, &mut places)),
        Syntax::Unit => Some(of_unit(keys, text, &mut places)),
    };
    match written {
        Some(text) => Redacted { text, places },
        // Open brackets: it cannot be read here either.
        None => Redacted {
            text: format!("[{{ {} that cannot be read\n", removed("text", text)),
            places: places + 1,
        },
    }
}

fn json(keys: &Keys, text: &str, places: &mut usize) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let bytes = |text: &str| {
        let mut bytes: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        bytes.sort_unstable();
        bytes
    };
    // Of two values under one key a reader sees one, and the file holds both.
    let is_whole = bytes(text) == bytes(&value.to_string());
    judge(keys, &[], &mut value, places);
    Some(if *places == 0 && is_whole { text.to_owned() } else { format!("{value:#}\n") })
}

fn yaml(keys: &Keys, text: &str, places: &mut usize) -> Option<String> {
    // This one refuses a key that stands twice.
    let whole: yaml_serde::Value = yaml_serde::from_str(text).ok()?;
    let mut value: Value = yaml_serde::from_value(whole.clone()).ok()?;
    judge(keys, &[], &mut value, places);
    let uncommented: String = text.lines().map(|line| format!("{}\n", uncommented(line))).collect();
    // The lines keep their numbers where they hold nothing but what was judged.
    let is_same = yaml_serde::from_str::<yaml_serde::Value>(&uncommented).is_ok_and(|it| it == whole);
    if *places == 0 && is_same && !uncommented.contains(['&', '!', '%', '*', '|', '>', '#']) {
        let is_as_it_was = uncommented.lines().eq(text.lines());
        return Some(if is_as_it_was { text.to_owned() } else { uncommented });
    }
    if value.is_null() {
        return Some(String::new());
    }
    yaml_serde::to_string(&value).ok()
}

fn uncommented(line: &str) -> &str {
    let begins =
        |at: usize| line.get(..at).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']));
    let comment = line.match_indices('#').map(|(at, _)| at).find(|at| begins(*at));
    comment.and_then(|at| line.get(..at)).unwrap_or(line).trim_end()
}

fn toml(keys: &Keys, text: &str, places: &mut usize) -> Option<String> {
    let mut value = edit::Format::Toml.read(text).ok()?;
    judge(keys, &[], &mut value, places);
    let mut written = DocumentMut::new();
    let Value::Object(map) = value else { return None };
    *written.as_table_mut() = table(map);
    Some(written.to_string())
}

fn table(map: Map<String, Value>) -> Table {
    let mut table = Table::new();
    table.set_implicit(!map.is_empty() && map.values().all(Value::is_object));
    for (key, value) in map {
        table.insert(
            &key,
            match value {
                Value::Object(map) => Item::Table(self::table(map)),
                other => Item::Value(toml_value(other)),
            },
        );
    }
    table
}

fn toml_value(value: Value) -> toml_edit::Value {
    match value {
        Value::Null => "".into(),
        Value::Bool(truth) => truth.into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Value::String(text) => text.into(),
        Value::Array(items) => items.into_iter().map(toml_value).collect::<Array>().into(),
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key, toml_value(value))).collect::<InlineTable>().into()
        }
    }
}

/// Takes out of a value what may not be told. `place`: the keys above it.
fn judge(keys: &Keys, place: &[&str], value: &mut Value, places: &mut usize) {
    let key = place.last().copied().unwrap_or_default();
    let instead = match value {
        Value::Null | Value::Bool(_) => None,
        Value::Number(number) => (!keys.is_known(place)).then(|| removed("number", &number.to_string())),
        Value::String(text) => match key {
            "env" => Some(variable(text)),
            _ => Some(told(keys, place, text).unwrap_or_else(|| removed("text", text))),
        },
        Value::Array(items)
            if matches!(key, "args" | "runtimeArgs") && items.iter().all(Value::is_string) =>
        {
            let words: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            let said = arguments(&words);
            *places += said.iter().zip(&words).filter(|(said, word)| said != word).count();
            *items = said.into_iter().map(Value::from).collect();
            None
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| judge(keys, place, item, places));
            None
        }
        Value::Object(map) => {
            for (nth, (key, mut value)) in std::mem::take(map).into_iter().enumerate() {
                let place = [place, &[key.as_str()][..]].concat();
                let mut said = name(&key);
                if said != key {
                    *places += 1;
                    said.push_str(&format!(" {nth}"));
                }
                // Beneath such a key a known one is no configuration.
                if is_secret(&key) && !keys.is_known(&place) && (value.is_object() || value.is_array()) {
                    *places += 1;
                    value = Value::from(removed(
                        if value.is_object() { "table" } else { "list" },
                        &value.to_string(),
                    ));
                } else {
                    judge(keys, &place, &mut value, places);
                }
                map.insert(said, value);
            }
            None
        }
    };
    if let Some(instead) = instead.filter(|instead| value.as_str() != Some(instead)) {
        *places += 1;
        *value = Value::from(instead);
    }
}

fn env(keys: &Keys, text: &str, places: &mut usize) -> String {
    let EnvFile { variables, ignored } = EnvFile::parse(text);
    let mut written = String::new();
    for (key, value) in variables {
        let said = told(keys, &[&key], &value).unwrap_or_else(|| removed("text", &value));
        let line = env_file::line(&key, &said).filter(|_| is_of_environment(&key));
        *places += usize::from(said != value || line.is_none());
        written
            .push_str(&line.unwrap_or_else(|| format!("# {}", removed("line", &format!("{key}={value}")))));
        written.push('\n');
    }
    for key in ignored {
        *places += 1;
        // As systemd ignores it, so does whoever reads this.
        let exported = key.strip_prefix("export ").filter(|key| is_of_environment(key));
        let line =
            exported.map_or_else(|| format!("# {}", removed("line", &key)), |key| format!("export {key}="));
        written.push_str(&format!("{line}\n"));
    }
    written
}

fn of_unit(keys: &Keys, text: &str, places: &mut usize) -> String {
    let (mut written, mut inside) = (String::new(), String::new());
    for (section, key, value) in unit::lines(text) {
        if section != inside {
            written.push_str(&format!("[{}]\n", name(&section)));
            inside = section;
        }
        let said = match key.as_str() {
            _ if value.is_empty() => String::new(),
            "Environment" | "UnsetEnvironment" => {
                quoted(unit::words(&value).iter().map(|word| variable(word)))
            }
            key if key.starts_with("Exec") => {
                let begin = value.find(|c| !"@-:+!|".contains(c)).unwrap_or(value.len());
                let (flags, command) = value.split_at(begin);
                format!("{flags}{}", quoted(arguments(&unit::words(command)).into_iter()))
            }
            key => told(keys, &[key], &value).unwrap_or_else(|| removed("text", &value)),
        };
        if is_of_unit(&key) {
            *places += said.matches("[removed: ").count();
            written.push_str(&format!("{key}={said}\n"));
        } else {
            *places += 1;
            written.push_str(&format!("# {}\n", removed("line", &format!("{key}={value}"))));
        }
    }
    written
}

/// Words as a unit has them.
fn quoted(words: impl Iterator<Item = String>) -> String {
    let quoted =
        words.map(|word| if word.is_empty() || word.contains(' ') { format!("\"{word}\"") } else { word });
    quoted.collect::<Vec<_>>().join(" ")
}
