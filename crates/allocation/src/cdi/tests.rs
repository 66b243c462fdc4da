use super::*;

/// rocworker's spec for one card and one card in two partitions, in the shape that DESIGN's CDI section
/// requires.
const AMD: &str = r#"{
  "cdiVersion": "0.5.0",
  "kind": "amd.com/gpu",
  "devices": [
    {"name": "0", "containerEdits": {"deviceNodes": [
      {"path": "/dev/dri/card1", "fileMode": 432, "gid": 44, "permissions": "rw"},
      {"path": "/dev/dri/renderD128", "fileMode": 432, "gid": 992, "permissions": "rw"}]}},
    {"name": "GPU-0123456789abcdef", "containerEdits": {"deviceNodes": [
      {"path": "/dev/dri/card1", "fileMode": 432, "gid": 44, "permissions": "rw"},
      {"path": "/dev/dri/renderD128", "fileMode": 432, "gid": 992, "permissions": "rw"}]}},
    {"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/dri/renderD129", "permissions": "rw"}]}}
  ],
  "containerEdits": {"deviceNodes": [{"path": "/dev/kfd", "fileMode": 438, "gid": 992, "permissions": "rw"}]}
}"#;

/// A spec whose one device has these edits, and what else it is to have.
fn spec_with(edits: &str, more: &str) -> String {
    format!(
        r#"{{"cdiVersion":"1.1.0","kind":"amd.com/gpu",{more}"devices":[{{"name":"a","containerEdits":{edits}}}]}}"#
    )
}

fn faults(text: &str) -> Vec<String> {
    Spec::parse(text).unwrap().faults().iter().map(Fault::to_string).collect()
}

#[test]
fn reads_what_rocworker_writes() {
    let spec = Spec::parse(AMD).unwrap();
    assert_eq!(spec.faults(), []);
    assert_eq!(spec.minimum_version(), "0.5.0");
    let place = |name: &str| spec.devices.iter().position(|device| device.name == name);
    assert_eq!((place("1"), place("2")), (Some(2), None));
    let node = &spec.devices[0].edits.device_nodes[1];
    assert_eq!((node.host(), node.permissions.as_deref()), ("/dev/dri/renderD128", Some("rw")));
    assert_eq!((node.file_mode, node.gid), (Some(0o660), Some(992)));
    assert_eq!((&node.kind, node.major, node.minor), (&None, None, None));
}

#[test]
fn reads_every_key_of_a_node_a_mount_and_a_hook() {
    let text = spec_with(
        r#"{"deviceNodes":[{"path":"/dev/a","hostPath":"/dev/b","type":"c","major":1,"minor":5,"fileMode":384,
            "permissions":"none","uid":7,"gid":8}],
            "mounts":[{"hostPath":"/a","containerPath":"/b\u002fc","options":["ro"],"type":"bind"}],
            "hooks":[{"hookName":"poststop","path":"/h","args":["h"],"env":["A=1"],"timeout":3}],
            "env":["K=V"],"additionalGids":[44]}"#,
        "",
    );
    let spec = Spec::parse(&text).unwrap();
    assert_eq!(spec.faults(), []);
    let edits = &spec.devices[0].edits;
    let node = &edits.device_nodes[0];
    assert_eq!((node.host(), node.permissions.as_deref()), ("/dev/b", Some("none")));
    assert_eq!((node.major, node.minor, node.uid, node.gid), (Some(1), Some(5), Some(7), Some(8)));
    assert_eq!((&*edits.mounts[0].container_path, edits.mounts[0].kind.as_deref()), ("/b/c", Some("bind")));
    assert_eq!((&*edits.hooks[0].name, edits.hooks[0].timeout), ("poststop", Some(3)));
    assert_eq!((&edits.env[..], &edits.additional_gids[..]), (&["K=V".into()][..], &[44][..]));
}

#[test]
fn null_is_as_good_as_absent() {
    let text = spec_with(r#"{"env":null,"deviceNodes":[{"path":"/dev/a","type":null,"gid":null}]}"#, "");
    assert_eq!(faults(&text), Vec::<String>::new());
    assert!(Spec::parse(&spec_with("{}", r#""containerEdits":null,"#)).unwrap().edits.is_empty());
}

#[test]
fn what_is_no_spec_is_refused_with_the_reason() {
    let table = [
        ("", "EOF while parsing a value"),
        ("[]", "invalid type: sequence, expected struct Spec"),
        (r#"{"kind":5}"#, "invalid type: integer `5`, expected a string at line 1 column 9"),
        (r#"{"kind":"a/b","kind":"a/b"}"#, "duplicate field `kind` at line 1 column 20"),
        (&AMD[..AMD.len() / 2], "EOF while parsing"),
        (&spec_with(r#"{"deviceNodes":[{"path":"/a","path":"/b"}]}"#, ""), "duplicate field `path`"),
        (
            &spec_with(r#"{"deviceNodes":[{"path":"/a","major":"1"}]}"#, ""),
            "invalid type: string \"1\", expected i64",
        ),
        (&spec_with(r#"{"deviceNodes":[null]}"#, ""), "invalid type: null"),
        (&format!("{AMD} x"), "trailing characters at line 14 column 3"),
    ];
    for (text, expected) in table {
        let message = Spec::parse(text).unwrap_err().to_string();
        assert!(message.starts_with("not a CDI spec: ") && message.contains(expected), "{message}");
    }
}

#[test]
fn every_fault_is_found_and_reported_where_it_is() {
    let node = r#"{"deviceNodes":[{"path":"/dev/a"}]}"#;
    let table = [
        (AMD.replace("0.5.0", "0.4.9"), r#"cdiVersion: "0.4.9" is no version of CDI"#),
        (
            AMD.replace("0.5.0", "0.4.0"),
            "cdiVersion: 0.4.0 is too low for what the spec has in it, which needs 0.5.0",
        ),
        (AMD.replace("amd.com/gpu", "gpu"), r#"kind: "gpu": it is not of the form vendor/class"#),
        (
            AMD.replace("amd.com/gpu", "1.com/gpu"),
            r#"kind: "1.com/gpu": the vendor must begin with a letter, end with a letter or digit, and have only those, _, - and ."#,
        ),
        (
            AMD.replace("amd.com/gpu", "amd.com/gpu/x"),
            r#"kind: "amd.com/gpu/x": the class must begin with a letter, end with a letter or digit, and have only those, _, - and ."#,
        ),
        (
            AMD.replace(r#""name": "1""#, r#""name": "0""#),
            r#"devices[2]: the name "0" is taken by devices[0], which voids the whole spec"#,
        ),
        (
            AMD.replace(r#""name": "1""#, r#""name": "-1""#),
            r#"devices[2]: the name "-1" is not letters and digits, and between them also _, -, . and :"#,
        ),
        (r#"{"cdiVersion":"0.5.0","kind":"a/b","devices":[]}"#.into(), "devices: there must be at least one"),
        (spec_with("{}", ""), "devices[0]: containerEdits must have something in it"),
        (spec_with(node, r#""future":1,"#), r#"the spec: CDI has no key "future" here"#),
        (
            spec_with(r#"{"deviceNode":[],"env":["A=1"]}"#, ""),
            r#"devices[0].containerEdits: CDI has no key "deviceNode" here"#,
        ),
        (
            spec_with(r#"{"env":["=1"]}"#, ""),
            r#"devices[0].containerEdits: the environment "=1" is not KEY=VALUE"#,
        ),
        (
            spec_with(r#"{"deviceNodes":[{"path":"dev/a"}]}"#, ""),
            r#"devices[0].containerEdits.deviceNodes[0]: the path "dev/a" is not an absolute path"#,
        ),
        (
            spec_with(r#"{"deviceNodes":[{"path":"/a","hostPath":""}]}"#, ""),
            r#"devices[0].containerEdits.deviceNodes[0]: the hostPath "" is not an absolute path"#,
        ),
        (
            spec_with(r#"{"deviceNodes":[{"path":"/a","type":"x"}]}"#, ""),
            r#"devices[0].containerEdits.deviceNodes[0]: the type "x" is none of b, c, u and p"#,
        ),
        (
            spec_with(r#"{"deviceNodes":[{"path":"/a","minor":-1}]}"#, ""),
            "devices[0].containerEdits.deviceNodes[0]: the minor -1 is negative",
        ),
        (
            spec_with(r#"{"deviceNodes":[{"path":"/a","permissions":"rwx"}]}"#, ""),
            r#"devices[0].containerEdits.deviceNodes[0]: the permissions "rwx" are not some of rwm"#,
        ),
        (
            spec_with(r#"{"deviceNodes":[{"path":"/a","mode":1}]}"#, ""),
            r#"devices[0].containerEdits.deviceNodes[0]: CDI has no key "mode" here"#,
        ),
        (
            spec_with(r#"{"mounts":[{"hostPath":"a","containerPath":"/b"}]}"#, ""),
            r#"devices[0].containerEdits.mounts[0]: the hostPath "a" is not an absolute path"#,
        ),
        (
            spec_with(r#"{"mounts":[{"hostPath":"","containerPath":"/b","type":"tmpfs"}]}"#, ""),
            "devices[0].containerEdits.mounts[0]: the hostPath is empty",
        ),
        (
            spec_with(r#"{"hooks":[{"hookName":"later","path":"/a"}]}"#, ""),
            r#"devices[0].containerEdits.hooks[0]: the hookName "later" is none of prestart, createRuntime, createContainer, startContainer, poststart, poststop"#,
        ),
        (
            spec_with(r#"{"hooks":[{"hookName":"poststop","path":"/a","timeout":0}]}"#, ""),
            "devices[0].containerEdits.hooks[0]: the timeout 0 is not above 0",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(faults(&text), [expected], "{text}");
    }
}

#[test]
fn the_lowest_version_is_that_of_the_newest_thing_in_it() {
    let node = r#"{"deviceNodes":[{"path":"/dev/a"}]}"#;
    let table = [
        (spec_with(node, ""), "0.3.0"),
        (spec_with(r#"{"mounts":[{"hostPath":"/a","containerPath":"/b","type":"bind"}]}"#, ""), "0.4.0"),
        (spec_with(r#"{"deviceNodes":[{"path":"/dev/a","hostPath":"/dev/b"}]}"#, ""), "0.5.0"),
        (spec_with(node, "").replace(r#""a""#, r#""0a""#), "0.5.0"),
        (spec_with(node, r#""annotations":{},"#), "0.3.0"),
        (spec_with(node, r#""annotations":{"a":"b"},"#), "0.6.0"),
        (spec_with(node, "").replace("amd.com/gpu", "amd.com/g.pu"), "0.6.0"),
        (spec_with(r#"{"additionalGids":[44]}"#, ""), "0.7.0"),
        (spec_with(r#"{"intelRdt":{}}"#, ""), "0.7.0"),
        (spec_with(node, r#""containerEdits":{"netDevices":[{}]},"#), "1.1.0"),
    ];
    for (text, expected) in table {
        assert_eq!(Spec::parse(&text).unwrap().minimum_version(), expected, "{text}");
    }
}
