//! A table that rocworker manages by one key of it, which others may add to.

use super::*;
use crate::Reverted;

fn runtime() -> Edit {
    edit([entry(&["runtimes", "amd"], "/w")])
}

fn gone(text: &str, went: &[&str]) -> Reverted {
    let went = went.iter().map(|name| (*name).to_owned()).collect();
    Reverted { text: Some(text.to_owned()), went, ..Reverted::default() }
}

#[test]
fn what_others_add_to_it_stays_while_it_is_there_and_goes_with_it_and_is_reported() {
    let before = "{\"debug\": true}";
    let ours = runtime().apply(before).unwrap();
    assert_eq!(ours, "{\"debug\": true, \"runtimes\": {\"amd\": {\"path\": \"/w\"}}}");
    let theirs = ours.replace("\"/w\"", "\"/w\",  \"runtimeArgs\": [ \"--debug\" ]");
    assert_eq!(runtime().apply(&theirs).unwrap(), theirs);
    assert_eq!(
        runtime().revert(&theirs, Some(before)).unwrap(),
        gone(before, &["runtimes.amd (with runtimeArgs)"])
    );
    // The path is somebody else's program: so is the entry.
    for other in [
        theirs.replace("/w", "/opt/runsc"),
        theirs.replace("\"path\": \"/w\"", "\"runtimeType\": \"io.containerd.runsc.v1\""),
    ] {
        let left =
            Reverted { text: Some(other.clone()), left: vec!["runtimes.amd".to_owned()], went: Vec::new() };
        assert_eq!(runtime().revert(&other, Some(before)).unwrap(), left);
    }
}

#[test]
fn one_that_names_no_program_any_more_is_ours_and_broken() {
    let before = "{\"debug\": true}";
    let ours = runtime().apply(before).unwrap();
    for (broken, went) in [
        (ours.replace("\"path\": \"/w\"", ""), &[][..]),
        (ours.replace("/w", ""), &[]),
        (ours.replace("\"path\": \"/w\"", "\"runtimeArgs\": []"), &["runtimes.amd (with runtimeArgs)"]),
    ] {
        assert_eq!(runtime().revert(&broken, Some(before)).unwrap(), gone(before, went), "{broken}");
        let mended = Format::Json.read(&runtime().apply(&broken).unwrap()).unwrap();
        assert_eq!(mended["runtimes"]["amd"]["path"], "/w", "{broken}");
    }
}

#[test]
fn one_that_was_there_gets_our_identity_and_goes_back_to_what_it_was() {
    let before = "{\"runtimes\": {\"amd\": {\"path\":\"/old\", \"runtimeArgs\":[]}}}";
    let ours = runtime().apply(before).unwrap();
    assert_eq!(ours, before.replace("/old", "/w"));
    let theirs = ours.replace("[]", "[\"-x\"]").replacen('{', "{\"debug\":true, ", 1);
    let reverted = runtime().revert(&theirs, Some(before)).unwrap();
    assert_eq!(reverted, gone(&theirs.replace("/w", "/old"), &[]));
    // Somebody had written it before us.
    let named = "{\"runtimes\": {\"amd\": {\"path\":\"/w\"}}}";
    assert_eq!(runtime().apply(named).unwrap(), named);
    let theirs = named.replace("\"/w\"", "\"/w\",\"runtimeArgs\":[]");
    assert_eq!(runtime().revert(&theirs, Some(named)).unwrap(), gone(&theirs, &[]));
}

#[test]
fn a_table_is_needed() {
    let fault = runtime().apply("{\n\"runtimes\": {\"amd\": 7}}").unwrap_err();
    assert_eq!(fault.to_string(), "line 2: runtimes.amd is a number where an object is needed");
    assert_eq!(
        runtime().apply("{\"runtimes\": {\"amd\": null}}").unwrap(),
        "{\"runtimes\": {\"amd\": {\"path\": \"/w\"}}}"
    );
}

#[test]
fn an_entry_whose_identity_changes_keeps_what_others_added() {
    let (old, new) = (runtime(), edit([entry(&["runtimes", "amd"], "/new")]));
    let held = old.apply("{}").unwrap().replace("\"/w\"", "\"/w\", \"runtimeArgs\": [1]");
    let base = old.given_up_for(&new).revert(&held, Some("{}")).unwrap();
    assert_eq!(base, gone(&held, &[]));
    assert_eq!(new.apply(&held).unwrap(), held.replace("/w", "/new"));
    // Under another name it goes.
    let other = edit([entry(&["runtimes", "gpu"], "/w")]);
    assert_eq!(old.given_up_for(&other), old);
}

#[test]
fn a_receipt_holds_it() {
    let text = r#"{"entry":{"value":{"path":"/w"},"identity":"path","instead":["runtimeType"]}}"#;
    let set: Set = serde_json::from_str(text).unwrap();
    let expected = Set::Entry {
        value: json!({"path": "/w"}),
        identity: "path".to_owned(),
        instead: vec!["runtimeType".to_owned()],
    };
    assert_eq!(set, expected);
    assert_eq!(serde_json::to_value(&set).unwrap(), serde_json::from_str::<Value>(text).unwrap());
}
