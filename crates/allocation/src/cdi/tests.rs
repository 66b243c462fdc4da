use super::*;
use crate::Render;

/// What rocworker writes for one card and one card in two partitions: the shape of DESIGN's CDI section.
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
fn reads_what_rocworker_writes_without_copying_it() {
    let spec = Spec::parse(AMD).unwrap();
    assert_eq!(spec.faults(), []);
    assert_eq!(spec.minimum_version(), "0.5.0");
    let place = |name: &str| spec.devices.iter().position(|device| device.name == name);
    assert_eq!((place("1"), place("2")), (Some(2), None));
    let node = &spec.devices[0].edits.device_nodes[1];
    assert!(matches!(node.path, Cow::Borrowed("/dev/dri/renderD128")));
    assert_eq!((node.host(), node.access()), ("/dev/dri/renderD128", "rw"));
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
    assert_eq!((node.host(), node.access()), ("/dev/b", ""));
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
        ("", "the text ends where a value should be"),
        ("[]", "expected an object, found a list"),
        (r#"{"kind":5}"#, "expected a string, found \"5\" (line 1, column 9)"),
        (r#"{"kind":"a/b","kind":"a/b"}"#, "the key \"kind\" appears twice (line 1, column 15)"),
        (&AMD[..AMD.len() / 2], "the text ends where "),
        (&spec_with(r#"{"deviceNodes":[{"path":"/a","path":"/b"}]}"#, ""), "the key \"path\" appears twice"),
        (
            &spec_with(r#"{"deviceNodes":[{"path":"/a","major":"1"}]}"#, ""),
            "expected a whole number in its range, found \"1\"",
        ),
        (&spec_with(r#"{"deviceNodes":[null]}"#, ""), "expected an object, found \"null\""),
        (&format!("{AMD} x"), "not JSON, expected the end of the text (line 14, column 3)"),
    ];
    for (text, expected) in table {
        let message = Spec::parse(text).unwrap_err().to_string();
        assert!(message.starts_with("not a CDI spec: ") && message.contains(expected), "{message}");
    }
}

#[test]
fn every_fault_is_found_and_said_where_it_is() {
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

#[test]
fn a_grant_has_each_edit_once_and_the_global_ones_first() {
    let spec = Spec::parse(AMD).unwrap();
    let table: [(&[usize], &[&str]); 4] = [
        (&[], &[]),
        (&[2], &["/dev/kfd", "/dev/dri/renderD129"]),
        (&[0, 1], &["/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD128"]),
        (&[2, 0, 2], &["/dev/kfd", "/dev/dri/renderD129", "/dev/dri/card1", "/dev/dri/renderD128"]),
    ];
    for (devices, expected) in table {
        let grant = spec.grant(devices.iter().copied()).unwrap();
        let paths: Vec<&str> = grant.nodes.iter().map(|node| &*node.path).collect();
        assert_eq!(paths, expected, "{devices:?}");
    }
}

#[test]
fn what_cannot_be_granted_is_refused_by_name() {
    let conflict = AMD.replace("/dev/dri/renderD129\"", "/dev/dri/card1\", \"hostPath\": \"/dev/dri/card2\"");
    let table = [
        (AMD.to_owned(), 3, "the spec has no devices[3]"),
        (conflict, 2, "two devices have different nodes for \"/dev/dri/card1\""),
        (
            spec_with(r#"{"netDevices":[]}"#, ""),
            0,
            "the device \"a\" wants the edit \"netDevices\", which this version cannot make",
        ),
        (
            spec_with("{}", r#""containerEdits":{"new":1},"#),
            0,
            "containerEdits wants the edit \"new\", which this version cannot make",
        ),
    ];
    for (text, device, expected) in table {
        let spec = Spec::parse(&text).unwrap();
        assert_eq!(spec.grant([0, device]).unwrap_err().to_string(), expected, "{text}");
    }
}

/// The parts of [`AMD`] that an outline has.
#[test]
fn an_outline_tells_the_names_and_render_nodes_and_reads_the_rest_when_it_is_wanted() {
    let outline = Outline::parse(AMD).unwrap();
    let devices: Vec<(&str, Vec<String>)> = outline
        .devices()
        .map(|(name, renders)| (name, renders.iter().map(ToString::to_string).collect()))
        .collect();
    let (d128, d129) = (vec!["renderD128".to_owned()], vec!["renderD129".to_owned()]);
    assert_eq!(devices, [("0", d128.clone()), ("GPU-0123456789abcdef", d128), ("1", d129)]);
    assert_eq!(outline.only([0, 1, 2]).unwrap(), Spec::parse(AMD).unwrap());
    let one = outline.only([2]).unwrap();
    assert_eq!((one.devices.len(), &*one.devices[0].name), (1, "1"));
    assert_eq!((one.faults(), one.edits.device_nodes.len()), (vec![], 1));
}

#[test]
fn what_is_wrong_with_a_device_matters_to_those_who_want_it() {
    let wrong = AMD
        .replace(r#"{"path": "/dev/dri/renderD129", "permissions": "rw"}"#, r#"{"path": "x", "major": "1"}"#);
    assert!(Spec::parse(&wrong).is_err());
    let outline = Outline::parse(&wrong).unwrap();
    assert_eq!(outline.only([0]).unwrap().faults(), []);
    let message = outline.only([2]).unwrap_err().to_string();
    assert!(
        message.contains("expected a whole number in its range, found \"1\" (line 11, column "),
        "{message}"
    );
    let twice = AMD.replace(r#""name": "1""#, r#""name": "0""#);
    let fault = Outline::parse(&twice).unwrap().fault().unwrap().to_string();
    assert_eq!(fault, "devices[2]: the name \"0\" appears twice, which voids the whole spec");
    let other = AMD.replace("amd.com/gpu", "nvidia.com/gpu");
    let fault = Outline::parse(&other).unwrap().fault().unwrap().to_string();
    assert_eq!(fault, "kind: \"nvidia.com/gpu\" is not amd.com/gpu: these are not AMD's GPUs");
    let spelt = AMD.replace("/dev/dri/renderD129", "/dev//dri/renderD129");
    let fault = Outline::parse(&spelt).unwrap().fault().unwrap().to_string();
    assert_eq!(
        fault,
        "devices[2]: the wrapper does not read the path \"/dev//dri/renderD129\": write it as \"/dev/dri/renderD129\""
    );
    for no_spec in
        ["", "[]", r#"{"devices":{}}"#, r#"{"devices":[{"containerEdits":{"deviceNodes":[{"path":1}]}}]}"#]
    {
        assert!(Outline::parse(no_spec).is_err(), "{no_spec}");
    }
}

/// The spelling that is read at once must mean what it means when it is read key by key, and only it.
#[test]
fn a_node_as_rocworker_writes_it_is_what_it_is_in_any_other_spelling() {
    let spec = |node: &str| {
        format!(
            r#"{{"cdiVersion":"0.5.0","kind":"amd.com/gpu","devices":[{{"name":"0","containerEdits":{{"deviceNodes":[{node}]}}}}]}}"#
        )
    };
    let written = r#"{ "path": "/dev/dri/renderD128", "fileMode": 432, "gid": 992, "permissions": "rw" }"#;
    let nodes =
        |text: &str| Spec::parse(&spec(text)).map(|spec| format!("{:?}", spec.devices[0].edits.device_nodes));
    let other = r#"{"path":"/dev/dri/renderD128","fileMode":432,"gid":992,"permissions":"rw"}"#;
    assert_eq!(nodes(written).unwrap(), nodes(other).unwrap());
    assert!(nodes(&format!("{written}, {written}")).is_ok());
    for (from, to, accepted) in [
        ("renderD128", r"renderD\u0031", true),
        ("432", "0", true),
        ("432", "4294967295", true),
        ("432", "4294967296", false),
        ("432", "0432", false),
        ("432", "", false),
        ("432", "432.0", false),
        ("432", "-1", false),
        ("992", "0", true),
        ("992", "4294967295", true),
        ("992", "4294967296", false),
        ("992", "0992", false),
        ("992", "", false),
        ("992", "-1", false),
        (", \"gid\": 992", "", true),
        ("rw\" }", "rw\", \"path\": \"/x\" }", false),
        ("rw\" }", "rw\", \"hostPath\": \"/x\" }", true),
        ("rw\" }", "rw\" ", false),
        ("\"path\": \"/dev/dri/renderD128\"", "\"path\": \"\u{1}\"", false),
    ] {
        let text = written.replace(from, to);
        assert_ne!(text, written);
        assert_eq!(nodes(&text).is_ok(), accepted, "{text}");
        let compact = text.replace("{ ", "{").replace(" }", "}").replace(", ", ",");
        assert_eq!(nodes(&text).ok(), nodes(&compact).ok(), "{text}");
    }
}

/// A device with two nodes, by the template's own lines.
fn as_the_template_has_it(name: &str) -> String {
    let template = include_str!("../../../../templates/cdi/amd.json");
    let (_, text) = template.split_once("{% for device in devices %}\n    ").unwrap();
    let (head, text) = text.split_once("{% for node in device.nodes %}\n").unwrap();
    let (node, text) = text.split_once("{% if not loop.last %}").unwrap();
    let (_, text) = text.split_once("{% endfor %}\n").unwrap();
    let (tail, _) = text.split_once("{% if not loop.last %}").unwrap();
    let head = head.replace("{{ device.name }}", &format!("\"{name}\""));
    let node = |path: &str, gid: &str| {
        node.replace("{{ node.path }}", path).replace("{{ node.mode }}", "432").replace("{{ node.gid }}", gid)
    };
    format!(
        "{head}{},\n{}\n{tail}",
        node(r#""/dev/dri/card1""#, "44"),
        node(r#""/dev/dri/renderD128""#, "992")
    )
}

/// Whatever is changed in a device as the template has it, it is refused or means what it means key by key.
#[test]
fn a_device_as_rocworker_writes_it_is_what_it_is_in_any_other_spelling() {
    let device = as_the_template_has_it("0");
    let behind = as_the_template_has_it("1");
    let mut accepted = 0;
    let mut compare = |device: &str| {
        let text = format!(
            "{{\"cdiVersion\":\"0.5.0\",\"kind\":\"amd.com/gpu\",\"devices\":[\n    {device},\n    {behind}]}}"
        );
        let read = Outline::parse(&text).and_then(|outline| {
            let renders = |(_, renders): (&str, &[Render])| renders.to_vec();
            Ok((outline.devices().map(renders).collect::<Vec<_>>(), outline.only([0, 1])?))
        });
        match (read, Spec::parse(&text)) {
            (Ok((renders, only)), Ok(spec)) => {
                assert_eq!(only, spec, "{text}");
                let named = |device: &Device<'_>| -> Vec<Render> {
                    device.edits.device_nodes.iter().filter_map(|node| Render::parse(node.host())).collect()
                };
                assert_eq!(renders, spec.devices.iter().map(named).collect::<Vec<_>>(), "{text}");
                accepted += 1;
            }
            (read, spec) => assert!(read.is_err() && spec.is_err(), "{text}"),
        }
    };
    for at in 0..device.len() {
        for other in ["", "0", " ", "\"", "\\", "}", "]", ",", "\u{1}", "x", "\n"] {
            compare(&format!("{}{other}{}", &device[..at], &device[at + 1..]));
            compare(&format!("{}{other}{}", &device[..at], &device[at..]));
        }
    }
    let (first, second) = device.split_once(",\n          {").unwrap();
    for number in ["0", "00", "0432", "43", "4321", "999999999", "4294967295", "4294967296", "", "-1", "1e1"]
    {
        compare(&format!("{first},\n          {{{}", second.replace("432", number)));
        compare(&device.replace("432", number));
        compare(&device.replace("992", number));
        compare(&device.replace("44", number));
    }
    assert!(accepted > 1000, "{accepted}");
}

/// What is compared as a line says the same as when it is read key by key; other spellings are left to that.
#[test]
fn a_node_in_one_line_is_the_node_that_its_keys_say() {
    let line = r#"{ "path": "/dev/dri/renderD128", "fileMode": 432, "gid": 0, "permissions": "rw" }"#;
    let (read, rest) = super::read::in_one_line(line).unwrap();
    assert_eq!((read.node(), rest), (crate::json::whole(line).unwrap(), ""));
    for (from, to) in [
        ("renderD128", r"renderD128\u0000"),
        ("renderD128", "renderD\n128"),
        ("432", "0432"),
        ("432", "4294967296"),
        ("432", "-1"),
        ("432", ""),
        ("\"rw\"", "\"rwm\""),
        (" }", ", \"uid\": 5 }"),
        ("{ ", "{"),
    ] {
        let other = line.replacen(from, to, 1);
        assert!(super::read::in_one_line(&other).is_none(), "{other}");
    }
}
