use super::*;
use crate::Reverted;

fn reverted(text: &str, left: &[&str]) -> Reverted {
    Reverted {
        text: Some(text.to_owned()),
        left: left.iter().map(|name| (*name).to_owned()).collect(),
        ..Reverted::default()
    }
}

#[test]
fn a_file_that_was_not_there_goes_unless_somebody_else_wrote_into_it() {
    let ours = docker().apply("").unwrap();
    assert_eq!(docker().revert(&ours, None).unwrap(), Reverted::default());
    assert_eq!(docker().revert(&ours, Some("")).unwrap(), reverted("", &[]));
    // Sorted and packed by a program that knows nothing of how it was written.
    let sorted =
        "{\"features\":{\"cdi\":true},\"runtimes\":{\"amd\":{\"path\":\"/usr/bin/runc-amd-wrapper\"}}}";
    assert_eq!(docker().revert(sorted, None).unwrap().text, None);
    assert_eq!(docker().revert(sorted, Some(" \n")).unwrap().text.as_deref(), Some(" \n"));
    assert_eq!(docker().revert("", None).unwrap().text, None);

    let theirs = ours.replacen("{\n", "{\n    \"debug\": true,\n", 1);
    assert_eq!(docker().revert(&theirs, None).unwrap(), reverted("{\n    \"debug\": true\n}\n", &[]));
}

#[test]
fn only_ours_goes_where_somebody_else_has_written_since() {
    let cases = [
        // Before, what stands there now, what should be left.
        ("{\"debug\": true}", "{\"debug\": false, \"features\": {\"cdi\": true}}", "{\"debug\": false}"),
        (
            "{\"features\": {\"cdi\": false}}",
            "{\"mtu\": 1, \"features\": {\"cdi\": true}}",
            "{\"mtu\": 1, \"features\": {\"cdi\": false}}",
        ),
        // A table that was there stays, as it was; one that was made goes unless it is used.
        (
            "{\"features\": { }}",
            "{\"mtu\": 1, \"features\": {\"cdi\": true}}",
            "{\"mtu\": 1, \"features\": { }}",
        ),
        ("{\"features\": null}", "{\"features\": {\"cdi\": true}, \"a\":1}", "{\"features\": null, \"a\":1}"),
        (
            "{\"a\": 1}",
            "{\n \"features\": {\n  \"cdi\": true,\n  \"buildkit\": true\n },\n \"a\": 1\n}",
            "{\n \"features\": {\n  \"buildkit\": true\n },\n \"a\": 1\n}",
        ),
        (
            "{\"features\": {\"x\": 1}}",
            "{\"features\": {\"cdi\": true}, \"a\": 1}",
            "{\"features\": {}, \"a\": 1}",
        ),
        // Taken out by its owner already: what was made for it goes too.
        ("{\"a\": 1}", "{\"a\": 1, \"features\": {}, \"b\": 2}", "{\"a\": 1, \"b\": 2}"),
        ("{\"a\": 1}", "{\"b\": 2}", "{\"b\": 2}"),
        ("{\"a\": 1}", "{}", "{}"),
        // Put back by its owner.
        (
            "{\"features\": {\"cdi\": false}}",
            "{\"features\": {\"cdi\":  false}, \"b\": 2}",
            "{\"features\": {\"cdi\":  false}, \"b\": 2}",
        ),
        ("{\"a\": 1}", "{\"a\": 1, \"features\": true}", "{\"a\": 1, \"features\": true}"),
    ];
    for (before, text, expected) in cases {
        assert_eq!(cdi().revert(text, Some(before)).unwrap(), reverted(expected, &[]), "{before} {text}");
    }
}

#[test]
fn what_was_right_before_us_stays() {
    let before = "{\"features\": {\"cdi\": true}}";
    let text = "{\"features\": {\"cdi\": true}, \"debug\": true}";
    assert_eq!(cdi().revert(text, Some(before)).unwrap(), reverted(text, &[]));
    let before = "{\"cdi-spec-dirs\": [\"/srv/cdi\"]}";
    let text = "{\"cdi-spec-dirs\": [\"/srv/cdi\", \"/b\"]}";
    assert_eq!(dirs().revert(text, Some(before)).unwrap(), reverted(text, &[]));
}

#[test]
fn a_key_that_somebody_has_changed_is_unmanaged_and_is_reported() {
    let text = "{\"features\": {\"cdi\": false}, \"runtimes\": {\"amd\": {\"path\": \"/theirs\"}}}";
    let names = ["runtimes.amd", "features.cdi"];
    assert_eq!(docker().revert(text, Some("{\"debug\": true}")).unwrap(), reverted(text, &names));
    let odd = edit([value(&["a b", "c.d"], json!(1))]);
    let text = "{\"a b\": {\"c.d\": 2}}";
    assert_eq!(odd.revert(text, None).unwrap(), reverted(text, &["\"a b\".\"c.d\""]));
}

#[test]
fn a_member_of_a_list_goes_and_the_others_stay() {
    let cases = [
        (Some("{}"), "{\"cdi-spec-dirs\": [\"/srv/cdi\"], \"a\": 1}", "{\"a\": 1}"),
        (Some("{}"), "{\"cdi-spec-dirs\": [\"/srv/cdi\", \"/b\"]}", "{\"cdi-spec-dirs\": [\"/b\"]}"),
        (None, "{\"cdi-spec-dirs\": [\"/b\", \"/srv/cdi\"]}", "{\"cdi-spec-dirs\": [\"/b\"]}"),
        (
            Some("{\"cdi-spec-dirs\": [ ]}"),
            "{\"a\": 1, \"cdi-spec-dirs\": [\"/srv/cdi\"]}",
            "{\"a\": 1, \"cdi-spec-dirs\": [ ]}",
        ),
        (
            Some("{\"cdi-spec-dirs\": [\"/a\"]}"),
            "{\"cdi-spec-dirs\": [\"/srv/cdi\"]}",
            "{\"cdi-spec-dirs\": []}",
        ),
        (
            Some("{\"cdi-spec-dirs\": [\"/a\"]}"),
            "{\"cdi-spec-dirs\": [\"/c\"]}",
            "{\"cdi-spec-dirs\": [\"/c\"]}",
        ),
    ];
    for (before, text, expected) in cases {
        assert_eq!(dirs().revert(text, before).unwrap(), reverted(expected, &[]), "{before:?} {text}");
    }
}

#[test]
fn a_list_that_begins_with_what_it_replaces_goes_unless_somebody_has_added_to_it() {
    let set = Set::Beside { member: json!("m"), default: vec![json!("a"), json!("b")] };
    let edit = edit([key(&["l"], set)]);
    let cases = [
        (Some("{}"), r#"{"x": 1, "l": ["a", "b", "m"]}"#, r#"{"x": 1}"#),
        (Some(r#"{"l": [ ]}"#), r#"{"x": 1, "l": ["a", "b", "m"]}"#, r#"{"x": 1, "l": [ ]}"#),
        (Some("{}"), r#"{"l": ["a", "b", "m", "c"]}"#, r#"{"l": ["a", "b", "c"]}"#),
        (Some(r#"{"l": null}"#), r#"{"l": ["c", "a", "b", "m"]}"#, r#"{"l": ["c", "a", "b"]}"#),
        // Somebody has taken one of them out, or given them another order, which says who wins.
        (Some("{}"), r#"{"l": ["b", "m"]}"#, r#"{"l": ["b"]}"#),
        (Some("{}"), r#"{"l": ["b", "a", "m"]}"#, r#"{"l": ["b", "a"]}"#),
        // The whole list was there before the apply.
        (Some(r#"{"l": ["a", "b"]}"#), r#"{"x": 1, "l": ["a", "b", "m"]}"#, r#"{"x": 1, "l": ["a", "b"]}"#),
        (Some(r#"{"l": ["c"]}"#), r#"{"x": 1, "l": ["c", "m"]}"#, r#"{"x": 1, "l": ["c"]}"#),
    ];
    for (before, text, expected) in cases {
        assert_eq!(edit.revert(text, before).unwrap(), reverted(expected, &[]), "{before:?} {text}");
    }
}

#[test]
fn what_the_rest_needs_goes_with_the_last_of_the_rest() {
    let edit = edit([key(&["version"], Set::Needed(json!(2))), value(&["features", "cdi"], json!(true))]);
    let ours = edit.apply("").unwrap();
    assert_eq!(edit.revert(&ours, None).unwrap().text, None);
    let theirs = "{\"version\": 2, \"features\": {\"cdi\": true}, \"a\": 1}";
    assert_eq!(edit.revert(theirs, None).unwrap(), reverted("{\"version\": 2, \"a\": 1}", &[]));
    assert_eq!(edit.revert("{\"version\":2,\"features\":{}}", None).unwrap().text, None);
    assert_eq!(edit.revert("{\"version\":3}", None).unwrap(), reverted("{\"version\":3}", &["version"]));
}

#[test]
fn a_text_that_cannot_be_read_is_left_alone() {
    let cases = [
        ("{\"features\": {\"cdi\": true}", "line 1: this is not JSON: EOF while parsing an object"),
        ("[]", "line 1: the file holds a list and not an object"),
    ];
    for (text, expected) in cases {
        assert_eq!(cdi().revert(text, None).unwrap_err().to_string(), expected);
    }
    let fault = cdi().revert("{\"features\": {\"cdi\": true}}", Some("{")).unwrap_err().to_string();
    assert_eq!(
        fault,
        "line 1: (in the file before the first edit) this is not JSON: EOF while parsing an object"
    );
}
