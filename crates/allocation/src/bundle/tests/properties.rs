//! Properties of every injection into every bundle.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json, value::RawValue};

use super::*;

/// A member that is left out, null, or has a value.
fn member(value: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![2 => Just(None), 1 => Just(Some(Value::Null)), 6 => value.prop_map(Some)]
}

fn object(members: Vec<(&'static str, BoxedStrategy<Option<Value>>)>) -> impl Strategy<Value = Value> {
    let (keys, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let extra = prop::collection::btree_map(
        "[xyz]{1,2}",
        prop_oneof![Just(json!(1.5)), Just(json!(["é", {}]))],
        0..2,
    );
    (values, extra).prop_map(move |(values, extra)| {
        let mut map = Map::new();
        for (key, value) in keys.iter().zip(values) {
            map.extend(value.map(|value| ((*key).to_owned(), value)));
        }
        map.extend(extra);
        Value::Object(map)
    })
}

fn some_of(values: Vec<Value>) -> BoxedStrategy<Option<Value>> {
    let most = values.len();
    member(prop::collection::vec(prop::sample::select(values), 0..=most).prop_map(Value::Array)).boxed()
}

fn bundles() -> impl Strategy<Value = Value> {
    let devices = some_of(vec![
        json!({"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}),
        json!({"path": "/dev/kfd", "type": "c", "major": 511, "minor": 0, "fileMode": 438}),
        json!({"path": "/dev/dri//renderD128", "type": "c", "major": 226, "minor": 128}),
    ]);
    let rules = some_of(vec![
        json!({"allow": false, "access": "rwm"}),
        json!({"allow": true, "type": "c", "major": 226, "minor": 128, "access": "rw"}),
        json!({"allow": true, "type": "c", "major": 511, "minor": 0, "access": "rwm"}),
    ]);
    let env =
        some_of(vec![json!("PATH=/bin"), json!("A=\u{1}\"é"), json!("B=1"), json!("B=2"), json!("odd")]);
    let gids = some_of(vec![json!(44), json!(992), json!(0)]);
    let resources = member(object(vec![("devices", rules)])).boxed();
    let user = member(object(vec![("additionalGids", gids)])).boxed();
    let linux = member(object(vec![("devices", devices), ("resources", resources)])).boxed();
    let process = member(object(vec![("user", user), ("env", env)])).boxed();
    object(vec![("process", process), ("linux", linux)])
}

fn injections() -> impl Strategy<Value = Injection<'static>> {
    let nodes = prop::sample::subsequence(
        vec![kfd(), render_node(), Node { path: "/dev/dri/card0", minor: 0, access: "rwm", ..render_node() }],
        0..=3,
    );
    let gids = prop::sample::subsequence(vec![992, 44, 5], 0..=3);
    let env = prop::sample::subsequence(vec!["B=2", "C=\"x\"\n", "odd"], 0..=3);
    (nodes, gids, env).prop_map(|(nodes, gids, env)| {
        let process = ProcessEdits { gids, env, ..ProcessEdits::default() };
        Injection { nodes, process, ..Injection::default() }
    })
}

/// The JSON of a value with space and escapes strewn in, as `choices` have it.
fn write(value: &Value, choices: &mut impl Iterator<Item = u8>, out: &mut String) {
    let mut space =
        |out: &mut String| out.push_str(["", "", " ", "\n\t"][usize::from(choices.next().unwrap() % 4)]);
    space(out);
    match value {
        Value::Object(map) => {
            out.push('{');
            for (at, (key, value)) in map.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                let choice = choices.next().unwrap();
                let key = if choice.is_multiple_of(5) { key.to_uppercase() } else { key.clone() };
                let escape = usize::from(choice) % (key.len() + 3);
                out.push('"');
                for (at, c) in key.chars().enumerate() {
                    if at == escape { out.push_str(&format!("\\u{:04x}", u32::from(c))) } else { out.push(c) }
                }
                out.push_str("\":");
                write(value, choices, out);
            }
            out.push_str(["", " "][usize::from(choices.next().unwrap() % 2)]);
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                // Entries are written plainly: serde_json reads them, in no other case and spelling.
                match value {
                    Value::Object(_) => out.push_str(&value.to_string()),
                    value => write(value, choices, out),
                }
            }
            out.push_str([" ", ""][usize::from(choices.next().unwrap() % 2)]);
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// Undoes what [`write`] does to keys, so that the reference need not know of it.
fn lower_keys(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let known = ["process", "linux", "user", "env", "additionalGids", "devices", "resources"];
            let name = |key: String| match known.iter().find(|known| known.eq_ignore_ascii_case(&key)) {
                Some(known) => (*known).to_owned(),
                None => key.to_lowercase(),
            };
            Value::Object(map.into_iter().map(|(key, value)| (name(key), lower_keys(value))).collect())
        }
        other => other,
    }
}

/// Edits a bundle as `inject` does, by a tree of values instead of raw text: the oracle of these tests.
fn reference(mut bundle: Value, injection: &Injection<'_>) -> Value {
    fn at<'v>(value: &'v mut Value, key: &str, empty: Value) -> &'v mut Value {
        let place = &mut value[key];
        if place.is_null() {
            *place = empty;
        }
        place
    }
    if bundle.get("process").is_some_and(Value::is_object) {
        for gid in &injection.process.gids {
            let user = at(&mut bundle["process"], "user", json!({}));
            let gids = at(user, "additionalGids", json!([])).as_array_mut().unwrap();
            if !gids.contains(&json!(gid)) {
                gids.push(json!(gid));
            }
        }
        for entry in &injection.process.env {
            let key = |entry: &str| entry.split('=').next().unwrap().to_owned();
            let env = at(&mut bundle["process"], "env", json!([])).as_array_mut().unwrap();
            if !env.iter().any(|present| key(present.as_str().unwrap()) == key(entry)) {
                env.push(json!(entry));
            }
        }
    }
    for node in &injection.nodes {
        let linux = at(&mut bundle, "linux", json!({}));
        let same_path = |device: &Value| device["path"].as_str().unwrap().replace("//", "/") == node.path;
        if !linux
            .get("devices")
            .and_then(Value::as_array)
            .is_some_and(|devices| devices.iter().any(same_path))
        {
            let mut device = json!({"path": node.path, "type": "c", "major": node.major, "minor": node.minor,
                "fileMode": node.file_mode & 0o777});
            for (key, id) in [("uid", node.uid), ("gid", node.gid)] {
                if let Some(id) = id {
                    device[key] = json!(id);
                }
            }
            at(linux, "devices", json!([])).as_array_mut().unwrap().push(device);
        }
        let allows = |rule: &Value| {
            rule["allow"] == json!(true)
                && (rule["major"].clone(), rule["minor"].clone()) == (json!(node.major), json!(node.minor))
                && node.access.chars().all(|c| rule["access"].as_str().unwrap().contains(c))
        };
        let rules = linux.get("resources").and_then(|resources| resources.get("devices"));
        let rules = rules.and_then(Value::as_array).cloned().unwrap_or_default();
        if !rules.iter().rev().take_while(|rule| rule["allow"] != json!(false)).any(allows) {
            let rule = json!({"allow": true, "type": "c", "major": node.major, "minor": node.minor,
                "access": node.access});
            let resources = at(linux, "resources", json!({}));
            at(resources, "devices", json!([])).as_array_mut().unwrap().push(rule);
        }
    }
    bundle
}

/// The members of an object, each as it is written.
fn raw_members(text: &str) -> BTreeMap<String, String> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
    members.into_iter().map(|(key, value)| (key.to_lowercase(), value.get().to_owned())).collect()
}

/// Whether `part` is a subsequence of `whole`.
fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut whole = whole.bytes();
    part.bytes().all(|b| whole.any(|other| other == b))
}

proptest! {
    #[test]
    fn an_injection_is_the_plain_edit_and_twice_is_once(
        bundle in bundles(),
        injection in injections(),
        choices in prop::collection::vec(any::<u8>(), 64),
    ) {
        let mut text = String::new();
        write(&bundle, &mut choices.iter().copied().cycle(), &mut text);
        let injected = inject(&text, &injection).unwrap();
        let result = injected.clone().unwrap_or_else(|| text.clone());

        let read = lower_keys(serde_json::from_str(&result).unwrap());
        prop_assert_eq!(&read, &reference(lower_keys(bundle.clone()), &injection), "{}", &text);
        prop_assert_eq!(inject(&result, &injection), Ok(None), "{}", &result);
        if injected.is_none() {
            prop_assert_eq!(read, lower_keys(bundle));
        }
    }

    #[test]
    fn every_byte_that_is_not_edited_stays(
        bundle in bundles(),
        injection in injections(),
        choices in prop::collection::vec(any::<u8>(), 64),
    ) {
        let mut text = String::new();
        write(&bundle, &mut choices.iter().copied().cycle(), &mut text);
        let Some(result) = inject(&text, &injection).unwrap() else { return Ok(()) };

        // Only a null gives way to a list or an object.
        if !text.contains("null") {
            prop_assert!(is_subsequence(&text, &result), "{text}\n{result}");
        }
        let after = raw_members(&result);
        for (key, value) in raw_members(&text) {
            if key != "process" && key != "linux" {
                prop_assert_eq!(after.get(&key), Some(&value), "{}", key);
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = inject(&text, &gpu());
    }
}
