//! Bundles that no engine writes.

use super::*;

#[test]
fn what_is_not_one_object_is_refused() {
    let table = [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        ("\u{feff}{}", "not JSON: expected value at line 1 column 1"),
        ("\0{}", "not JSON: expected value at line 1 column 1"),
        ("[]", "expected an object, found a list (line 1, column 1)"),
        ("null", "expected an object, found \"null\" (line 1, column 1)"),
        ("{} {}", "not JSON: trailing characters at line 1 column 4"),
        ("{}\0", "not JSON: trailing characters at line 1 column 3"),
        (r#"{"process":{"env":["A=1"]}"#, "not JSON: EOF while parsing an object at line 1 column 26"),
        (r#"{"process":{"env":["A=1"#, "not JSON: EOF while parsing a string at line 1 column 23"),
        (
            "{\"process\":{\"env\":[\"A=\0\"]}}",
            "not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 22",
        ),
        (r#"{"a":01}"#, "not JSON: invalid number at line 1 column 7"),
    ];
    for (text, expected) in table {
        let refused = Bundle::parse(text).map(drop).unwrap_err().to_string();
        assert_eq!(refused, expected, "{text:?}");
    }
}

/// Members that the wrapper does not look at may hold any JSON.
#[test]
fn what_is_no_json_inside_is_not_edited() {
    for text in [
        r#"{"mounts":[1 2],"process":{}}"#,
        r#"{"process":{"args":[tru],"env":[]}}"#,
        r#"{"linux":{"seccomp":{"a" 1},"devices":[}}}"#,
        r#"{"linux":{"devices":[],"x":{"a":[}]}}"#,
        "{\"process\":{\"args\":[\"\n\"]}}",
        r#"{"linux":{"seccomp":{"a":"\q"}}}"#,
        r#"{"hooks":{,},"linux":{}}"#,
    ] {
        assert!(Bundle::parse(text).unwrap_err().to_string().starts_with("not JSON: "), "{text}");
    }
}

#[test]
fn no_depth_of_what_is_not_edited_is_too_much() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for (before, after) in
        [("{\"a\":", "}"), ("{\"linux\":{\"seccomp\":", "}}"), ("{\"hooks\":{\"prestart\":", "}}")]
    {
        let text = format!("{before}{deep}{after}");
        let edited = inject(&text, &gpu()).unwrap().unwrap();
        assert!(edited.contains(&deep) && edited.contains("renderD128"), "{before}");
    }
    let refused = inject(&format!("{{\"linux\":{{\"devices\":{deep}}}}}"), &gpu()).unwrap_err();
    assert!(refused.to_string().starts_with("the key linux.devices cannot be read: "), "{refused}");
}

/// A runtime's decoder decides which of two equal keys counts, so neither is edited.
#[test]
fn a_key_that_stands_twice_is_refused_by_its_name() {
    let table = [
        (r#"{"process":{"env":[]},"process":{}}"#, "process"),
        (r#"{"process":{},"Process":null}"#, "process"),
        (r#"{"process":{},"\u0070roce\u017fs":{}}"#, "process"),
        (r#"{"process":{"env":[],"ENV":[]}}"#, "process.env"),
        (r#"{"process":{"user":{},"user":{}}}"#, "process.user"),
        (r#"{"process":{"user":{"additionalGids":[],"additionalgids":[]}}}"#, "process.user.additionalGids"),
        (r#"{"linux":{},"\u006cinux":{}}"#, "linux"),
        (r#"{"linux":{"devices":[],"Devices":[]}}"#, "linux.devices"),
        (r#"{"linux":{"resources":{},"resources":{}}}"#, "linux.resources"),
        (r#"{"linux":{"resources":{"devices":[],"devices":[]}}}"#, "linux.resources.devices"),
        (r#"{"linux":{"gidMappings":[],"gidmappings":[]}}"#, "linux.gidMappings"),
        (r#"{"linux":{"uidMappings":[],"uidmappings":[]}}"#, "linux.uidMappings"),
        (r#"{"linux":{"namespaces":[],"nameſpaceſ":[]}}"#, "linux.namespaces"),
        (r#"{"annotations":{},"annotations":{}}"#, "annotations"),
        (r#"{"mounts":[],"mounts":[]}"#, "mounts"),
    ];
    for (text, key) in table {
        let refused = Bundle::parse(text).unwrap_err().to_string();
        let expected =
            format!("the key \"{}\" appears twice (line 1, column ", key.rsplit('.').next().unwrap());
        assert!(refused.starts_with(&expected), "{text}: {refused}");
    }
}

#[test]
fn keys_that_do_not_matter_may_stand_twice() {
    let text = r#"{"hostname":"a","hostname":"b","process":{"args":[],"args":[]},"linux":{"seccomp":{},"seccomp":{}}}"#;
    Bundle::parse(text).unwrap();
}

#[test]
fn a_wrong_type_is_refused_where_it_stands() {
    let table = [
        (r#"{"process":[]}"#, "expected an object, found a list (line 1, column 12)"),
        (r#"{"process":{"env":{}}}"#, "expected a list, found an object (line 1, column 19)"),
        (r#"{"process":{"env":["A=1",5]}}"#, "expected a string, found \"5\" (line 1, column 26)"),
        (r#"{"process":{"env":[null]}}"#, "expected a string, found \"null\" (line 1, column 20)"),
        (r#"{"process":{"user":"root"}}"#, "expected an object, found \"root\" (line 1, column 20)"),
        (r#"{"process":{"user":{"additionalGids":7}}}"#, "expected a list, found \"7\" (line 1, column 38)"),
        (r#"{"linux":"x"}"#, "expected an object, found \"x\" (line 1, column 10)"),
        (r#"{"linux":{"devices":{}}}"#, "expected a list, found an object (line 1, column 21)"),
        (r#"{"linux":{"resources":[]}}"#, "expected an object, found a list (line 1, column 23)"),
        (
            r#"{"linux":{"resources":{"devices":true}}}"#,
            "expected a list, found \"true\" (line 1, column 34)",
        ),
        (r#"{"annotations":[]}"#, "expected an object, found a list (line 1, column 16)"),
    ];
    for (text, expected) in table {
        assert_eq!(Bundle::parse(text).unwrap_err().to_string(), expected, "{text}");
    }
}

/// Lists that must be looked into: what cannot be understood there is refused, not guessed at.
#[test]
fn an_entry_that_cannot_be_read_is_refused_with_its_list() {
    let table = [
        (r#"{"process":{"user":{"additionalGids":[-1]}}}"#, "process.user.additionalGids"),
        (r#"{"process":{"user":{"additionalGids":[4294967296]}}}"#, "process.user.additionalGids"),
        (r#"{"process":{"user":{"additionalGids":[1e2]}}}"#, "process.user.additionalGids"),
        (r#"{"linux":{"devices":[5]}}"#, "linux.devices"),
        (r#"{"linux":{"devices":[null]}}"#, "linux.devices"),
        (r#"{"linux":{"devices":[{"Paths":"/dev/kfd","type":"c"}]}}"#, "linux.devices"),
        (r#"{"linux":{"devices":[{"path":"/a","path":"/b","type":"c"}]}}"#, "linux.devices"),
        (r#"{"linux":{"devices":[{"path":"/a","type":"c","major":99999999999999999999}]}}"#, "linux.devices"),
        (r#"{"linux":{"resources":{"devices":[{"ALLOW":1}]}}}"#, "linux.resources.devices"),
        // To Go's decoder these are /dev/b, a denial, and another number.
        (r#"{"linux":{"devices":[{"path":"/a","type":"c","Path":"/dev/b"}]}}"#, "linux.devices"),
        (r#"{"linux":{"resources":{"devices":[{"allow":true,"Allow":false}]}}}"#, "linux.resources.devices"),
        (
            r#"{"linux":{"resources":{"devices":[{"allow":true,"major":1,"maJor":226,"minor":128}]}}}"#,
            "linux.resources.devices",
        ),
    ];
    for (text, key) in table {
        let refused = inject(text, &gpu()).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("the key {key} cannot be read: ")), "{text}: {refused}");
    }
}

/// Go's decoder gives this container a user namespace.
#[test]
fn a_namespace_whose_type_stands_in_two_spellings_is_refused() {
    let text = r#"{"linux":{"namespaces":[{"type":"pid","t\u0059pe":"user"}]}}"#;
    let refused = Bundle::parse(text).unwrap().user_namespace().unwrap_err().to_string();
    assert_eq!(
        refused,
        "the key linux.namespaces cannot be read: the key \"type\" appears twice (line 1, column 39)"
    );
}

#[test]
fn a_message_repeats_little_of_a_hostile_bundle_and_nothing_that_a_terminal_obeys() {
    let text = format!(r#"{{"linux":{{"devices":["\u001b[2J{}"]}}}}"#, "x".repeat(100_000));
    let message = inject(&text, &gpu()).unwrap_err().to_string();
    assert!(message.len() < 300, "{}", message.len());
    assert!(!message.contains('\u{1b}'), "{message}");
}

#[test]
fn numbers_and_unknown_fields_stay_as_they_were_written() {
    let text =
        r#"{"big":123456789012345678901234567890,"small":1.10E-07,"linux":{"new":{"x":-0}},"z":"\u00e9\/"}"#;
    let injected = inject(text, &gpu()).unwrap().unwrap();
    let (before, after) = injected.split_once(r#","devices""#).unwrap();
    assert_eq!(before, r#"{"big":123456789012345678901234567890,"small":1.10E-07,"linux":{"new":{"x":-0}"#);
    assert!(after.ends_with(r#"},"z":"\u00e9\/"}"#), "{after}");
}

#[test]
fn the_cgroups_path_is_the_one_that_gos_decoder_ends_with() {
    for (members, expected) in [
        (r#""cgroupsPath":"/a""#, Some("/a")),
        (r#""cgroupsPath":"/a","CgroupsPath":"/b""#, Some("/b")),
        (r#""cgroupsPath":"/a","cgroupsPath":null"#, Some("/a")),
        (r#""cgroupsPath":null"#, None),
        ("", None),
    ] {
        let text = format!(r#"{{"linux":{{{members}}}}}"#);
        let path = Bundle::parse(&text).unwrap().cgroups_path().unwrap();
        assert_eq!(path.as_deref(), expected, "{text}");
    }
}
