//! The bundle after an injection, case by case.

use super::*;

const DEVICE: &str =
    r#"{"path":"/dev/dri/renderD128","type":"c","major":226,"minor":128,"fileMode":432,"uid":0,"gid":992}"#;
const RULE: &str = r#"{"allow":true,"type":"c","major":226,"minor":128,"access":"rw"}"#;

fn one_node() -> Injection<'static> {
    Injection { nodes: vec![render_node()], ..Injection::default() }
}

#[test]
fn makes_what_is_missing_and_leaves_the_rest() {
    let table = [
        ("{}", r#"{"linux":{"devices":[D],"resources":{"devices":[R]}}}"#),
        (" { } ", r#" {"linux":{"devices":[D],"resources":{"devices":[R]}} } "#),
        (r#"{"a":1e0}"#, r#"{"a":1e0,"linux":{"devices":[D],"resources":{"devices":[R]}}}"#),
        (r#"{"linux":null,"a":1}"#, r#"{"linux":{"devices":[D],"resources":{"devices":[R]}},"a":1}"#),
        (r#"{"linux":{}}"#, r#"{"linux":{"devices":[D],"resources":{"devices":[R]}}}"#),
        (r#"{"linux":{"resources":null}}"#, r#"{"linux":{"resources":{"devices":[R]},"devices":[D]}}"#),
        (
            r#"{"linux":{"devices":null,"resources":{"devices":null,"cpu":{}}}}"#,
            r#"{"linux":{"devices":[D],"resources":{"devices":[R],"cpu":{}}}}"#,
        ),
        (
            "{\"linux\":{\"devices\" : [\n],\"resources\":{\"devices\":[ {\"allow\":false} ]}}}",
            "{\"linux\":{\"devices\" : [D\n],\"resources\":{\"devices\":[ {\"allow\":false},R ]}}}",
        ),
        // Keys are edited where they stand, however they are written: Go reads them so.
        (
            r#"{"\u006cinux":{"DEVICES":[],"re\u0073ource\u017f":{}}}"#,
            r#"{"\u006cinux":{"DEVICES":[D],"re\u0073ource\u017f":{"devices":[R]}}}"#,
        ),
    ];
    for (text, expected) in table {
        let expected = expected.replace("[D", &format!("[{DEVICE}")).replace('R', RULE);
        assert_eq!(inject(text, &one_node()), Ok(Some(expected)), "{text}");
    }
}

#[test]
fn adds_a_rule_unless_it_is_there_behind_every_denial() {
    let rules =
        |rules: &str| format!(r#"{{"linux":{{"devices":[{DEVICE}],"resources":{{"devices":[{rules}]}}}}}}"#);
    let deny = r#"{"allow":false,"access":"rwm"}"#;
    let wide = r#"{"allow":true,"type":"c","major":226,"minor":128,"access":"mwr"}"#;
    let read_only = r#"{"allow":true,"type":"c","major":226,"minor":128,"access":"r"}"#;
    let other = r#"{"allow":true,"type":"c","major":226,"minor":129,"access":"rw"}"#;
    let block = r#"{"allow":true,"type":"b","major":226,"minor":128,"access":"rw"}"#;
    let table = [
        (RULE.to_owned(), false),
        (format!("{deny},{RULE}"), false),
        (format!("{deny},{wide},{other}"), false),
        (format!("{RULE},{deny}"), true),
        (format!("{deny},{read_only}"), true),
        (format!("{deny},{other}"), true),
        (format!("{deny},{block}"), true),
        (deny.to_owned(), true),
    ];
    for (present, added) in table {
        let expected = added.then(|| rules(&format!("{present},{RULE}")));
        assert_eq!(inject(&rules(&present), &one_node()), Ok(expected), "{present}");
    }
}

#[test]
fn keeps_a_device_that_is_the_same_and_refuses_another_one() {
    let bundle = |path: &str, kind: &str, major: i32, minor: i32| {
        let device = format!(r#"{{"path":"{path}","type":"{kind}","major":{major},"minor":{minor}}}"#);
        format!(r#"{{"linux":{{"devices":[{device}],"resources":{{"devices":[{RULE}]}}}}}}"#)
    };
    for path in ["/dev/dri/renderD128", "//dev/./dri/../dri/renderD128/", "dev/dri/renderD128"] {
        assert_eq!(inject(&bundle(path, "c", 226, 128), &one_node()), Ok(None), "{path}");
        assert_eq!(inject(&bundle(path, "u", 226, 128), &one_node()), Ok(None), "{path}");
        for (kind, major, minor) in [("c", 226, 129), ("c", 10, 128), ("b", 226, 128), ("p", 226, 128)] {
            let refused = inject(&bundle(path, kind, major, minor), &one_node()).unwrap_err().to_string();
            let expected = format!(
                "\"/dev/dri/renderD128\" is already the device \"{kind} {major}:{minor}\" in linux.devices, and \
                 the GPU's is c 226:128: take it out, or do not ask for this GPU"
            );
            assert_eq!(refused, expected);
        }
    }
    let elsewhere = inject(&bundle("/dev/dri/renderD1280", "c", 1, 2), &one_node()).unwrap().unwrap();
    assert!(elsewhere.contains(DEVICE), "{elsewhere}");
}

#[test]
fn one_path_is_one_device_and_one_number_is_one_rule() {
    let twin = Node { path: "/dev//dri/renderD128", ..render_node() };
    let alias = Node { path: "/dev/gpu", ..render_node() };
    let injection = Injection { nodes: vec![render_node(), twin, alias], ..Injection::default() };
    let injected = inject("{}", &injection).unwrap().unwrap();
    assert_eq!(injected.matches("\"path\"").count(), 2, "{injected}");
    assert_eq!(injected.matches("\"allow\"").count(), 1, "{injected}");

    let other = Node { minor: 129, ..twin };
    let contradiction = Injection { nodes: vec![render_node(), other], ..Injection::default() };
    assert_eq!(
        inject("{}", &contradiction).unwrap_err().to_string(),
        "\"/dev//dri/renderD128\" would be the device c 226:128 and the device c 226:129 at once"
    );
}

#[test]
fn a_node_without_access_gets_no_rule() {
    let node = Node { access: "", ..kfd() };
    let injected = inject("{}", &Injection { nodes: vec![node], ..Injection::default() });
    let expected =
        r#"{"linux":{"devices":[{"path":"/dev/kfd","type":"c","major":511,"minor":0,"fileMode":432}]}}"#;
    assert_eq!(injected, Ok(Some(expected.to_owned())));
}

#[test]
fn a_process_gets_gids_and_environment_once() {
    let process =
        ProcessEdits { gids: vec![992, 44, 992], env: vec!["B=2", "A=1"], ..ProcessEdits::default() };
    let injection = Injection { process, ..Injection::default() };
    let table = [
        (
            r#"{"process":{}}"#,
            Some(r#"{"process":{"user":{"additionalGids":[992,44]},"env":["B=2","A=1"]}}"#),
        ),
        (
            r#"{"process":{"user":null,"env":null}}"#,
            Some(r#"{"process":{"user":{"additionalGids":[992,44]},"env":["B=2","A=1"]}}"#),
        ),
        (
            r#"{"process":{"user":{"uid":0,"additionalGids":[ 44 ]},"env":["A=9","C=", "A=1", "AB=2"]}}"#,
            Some(
                r#"{"process":{"user":{"uid":0,"additionalGids":[ 44,992 ]},"env":["A=9","C=", "A=1", "AB=2","B=2"]}}"#,
            ),
        ),
        (r#"{"process":{"user":{"additionalGids":[44,5,992]},"env":["\u0041=1","B=2"]}}"#, None),
        // A bundle without a process has nothing that could use a GPU.
        (r#"{"process":null}"#, None),
        ("{}", None),
    ];
    for (text, expected) in table {
        assert_eq!(inject(text, &injection), Ok(expected.map(str::to_owned)), "{text}");
    }
}

#[test]
fn nothing_to_inject_changes_nothing() {
    for text in ["{}", r#"{"process":{},"linux":{"devices":[{"path":5}]}}"#] {
        assert_eq!(inject(text, &Injection::default()), Ok(None), "{text}");
    }
}
