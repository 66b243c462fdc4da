use proptest::prelude::*;

use super::*;
use crate::document::take_out;
use crate::json::Json;

/// JSON as people and programs write it: blanks anywhere, numbers and escapes in any spelling, managed keys among
/// them now and then.
fn text() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", "\n", "\r\n  ", "\t", "\n\n    "]);
    let scalar = prop::sample::select(vec![
        "true",
        "false",
        "null",
        "0",
        "-1.50",
        "1e3",
        "1E+300",
        "\"\"",
        "\"\\u00e9\\\\\"",
        "\"{[,:]}\"",
        "\"/srv/cdi\"",
    ]);
    let names = ["features", "cdi", "runtimes", "amd", "path", "cdi-spec-dirs", "a b", "", "{", "\u{e9}"];
    let value = scalar.prop_map(str::to_owned).prop_recursive(3, 24, 4, move |inner| {
        let blank = blank.clone();
        let item =
            (blank.clone(), inner.clone(), blank.clone()).prop_map(|(a, item, b)| format!("{a}{item}{b}"));
        let names = prop::sample::subsequence(names.to_vec(), 0..4).prop_shuffle();
        let member = (blank.clone(), blank.clone(), blank.clone(), inner, blank.clone());
        let object =
            (names, prop::collection::vec(member, 4), blank.clone()).prop_map(|(names, members, empty)| {
                let members = names
                    .iter()
                    .zip(&members)
                    .map(|(name, (a, b, c, value, d))| format!("{a}{}{b}:{c}{value}{d}", Value::from(*name)));
                let members: Vec<String> = members.collect();
                format!("{{{}{}}}", if members.is_empty() { empty } else { "" }, members.join(","))
            });
        let list = prop::collection::vec(item, 0..4).prop_map(|items| format!("[{}]", items.join(",")));
        prop_oneof![2 => object, 1 => list]
    });
    let around = prop::sample::select(vec![("", ""), ("", "\n"), ("\u{feff}", "\r\n"), (" ", "  ")]);
    (value, around).prop_map(|(value, (before, after))| format!("{before}{value}{after}"))
}

fn edits() -> impl Strategy<Value = Edit> {
    let keys = vec![
        value(&["features", "cdi"], json!(true)),
        value(&["runtimes", "amd"], json!({"path": "/w"})),
        key(&["cdi-spec-dirs"], Set::Member(json!("/srv/cdi"))),
        key(&["path"], Set::Beside { member: json!("/srv/cdi"), default: vec![json!(0), json!("")] }),
        value(&["a b"], json!(null)),
        value(&["", "{", "\u{e9}"], json!([1, {"x": {}}])),
        key(&["features", "a b"], Set::Needed(json!(2))),
        entry(&["cdi"], "/srv/cdi"),
    ];
    prop::sample::subsequence(keys, 0..=8).prop_map(edit)
}

fn semantic(text: &str) -> Option<Value> {
    // 1E+400 fits no number of serde_json's.
    let text = text.trim_start_matches('\u{feff}').replace("1E+300", "\"1E+400\"");
    serde_json::from_str(if text.trim().is_empty() { "{}" } else { &text }).ok()
}

/// The effect of [`Edit::apply`], as a function of values instead of bytes.
fn applied(keys: &[Key], mut value: Value) -> Value {
    for key in keys {
        let mut at = &mut value;
        let (last, way) = key.path.split_last().unwrap();
        for part in way {
            at = at.as_object_mut().unwrap().entry(part).or_insert(Value::Null);
            if at.is_null() {
                *at = json!({});
            }
        }
        let object = at.as_object_mut().unwrap();
        match &key.set {
            Set::Value(wanted) => drop(object.insert(last.clone(), wanted.clone())),
            Set::Needed(wanted) => drop(object.entry(last).or_insert_with(|| wanted.clone())),
            Set::Entry { value: wanted, identity, .. } => {
                let held = object.entry(last).or_insert(Value::Null);
                match held.as_object_mut() {
                    Some(held) => drop(held.insert(identity.clone(), wanted[identity.as_str()].clone())),
                    None => *held = wanted.clone(),
                }
            }
            Set::Member(wanted) | Set::Beside { member: wanted, .. } => {
                let list = object.entry(last).or_insert(Value::Null);
                if list.is_null() || *list == json!([]) {
                    *list = match &key.set {
                        Set::Beside { default, .. } => json!(default),
                        _ => json!([]),
                    };
                }
                let list = list.as_array_mut().unwrap();
                if !list.contains(wanted) {
                    list.push(wanted.clone());
                }
            }
        }
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn apply_means_what_it_says_and_does_so_once(text in text(), edit in edits()) {
        if let Ok(changed) = edit.apply(&text) {
            let expected = applied(&edit.keys, semantic(&text).unwrap());
            prop_assert_eq!(semantic(&changed).unwrap(), expected);
            prop_assert_eq!(edit.apply(&changed).unwrap(), changed);
        }
    }

    #[test]
    fn revert_gives_back_every_byte(text in text(), edit in edits()) {
        if let Ok(changed) = edit.apply(&text) {
            let reverted = edit.revert(&changed, Some(&text)).unwrap();
            prop_assert_eq!(reverted.text, Some(text));
            prop_assert!(reverted.left.is_empty() && reverted.went.is_empty());
        }
    }

    /// A text that nobody else has changed comes out equal by both ways, [`Edit::revert`]'s short one and the
    /// way for changed texts, unless a needed key is left.
    #[test]
    fn the_long_way_back_ends_at_the_same_place(text in text(), edit in edits()) {
        if edit.keys.iter().any(|key| matches!(key.set, Set::Needed(_))) {
            return Ok(());
        }
        if let Ok(changed) = edit.apply(&text) {
            let reverted = take_out::<Json>(&edit.keys, &changed, Some(&text), None).unwrap();
            prop_assert_eq!(reverted.text, Some(text));
            prop_assert!(reverted.left.is_empty() && reverted.went.is_empty());
        }
    }

    #[test]
    fn what_somebody_else_has_added_stays(text in text(), edit in edits(), first: bool) {
        let Ok(changed) = edit.apply(&text) else { return Ok(()) };
        // Another program writes the file anew, and keeps nothing of its form.
        let Some(Value::Object(mut theirs)) = semantic(&changed) else { return Ok(()) };
        theirs.insert(if first { "0" } else { "zz" }.to_owned(), json!({"cdi": false}));
        let theirs = serde_json::to_string_pretty(&theirs).unwrap();
        let reverted = edit.revert(&theirs, Some(&text)).unwrap();
        prop_assert!(reverted.left.is_empty());
        // What such a program makes of a number that fits no type is a change.
        prop_assert!(reverted.went.is_empty() || text.contains("1E+300"));
        let Some(Value::Object(mut left)) = semantic(&reverted.text.unwrap()) else { panic!("no object") };
        prop_assert_eq!(left.remove(if first { "0" } else { "zz" }), Some(json!({"cdi": false})));
        if !edit.keys.iter().any(|key| matches!(key.set, Set::Needed(_))) {
            prop_assert_eq!(Value::Object(left), semantic(&text).unwrap());
        }
    }

    #[test]
    fn nothing_makes_it_panic(text in "[{}\\[\\]\",:\\\\ \n a-c0-9\u{feff}]{0,40}", edit in edits()) {
        edit.apply(&text).ok();
        edit.revert(&text, None).ok();
        edit.revert("{\"features\": {\"cdi\": true}}", Some(&text)).ok();
    }
}
