use inventory::PciAddress;

use super::*;
use crate::Render;

mod edits;

const FULL: &str = r#"{"schema_version":2,"runtime":"/usr/bin/runc","requests":"all","default":"none","sharing":"shared",
    "gpus":[{"index":1,"names":["GPU-0123456789abcdef","0000:c1:00.0"],"card":"0000:C1:00.0","hive":"7","numa_node":1,
             "nodes":[{"path":"/dev/dri/card2","gid":44},{"path":"/dev/dri/renderD129","gid":992}]},
            {"index":0,"names":[],"card":"0000:64:00.0","nodes":[{"path":"/dev/dri/renderD128"}],"integrated":true}],
    "kfd":{"path":"/dev/kfd","gid":992},"wait_limit_s":0,"folders":[],"edits":{}}"#;

fn node(path: &str, gid: Option<u32>) -> Node {
    Node { path: path.to_owned(), gid }
}

#[test]
fn reads_every_key_and_orders_the_gpus() {
    let policy = Policy::parse(FULL).unwrap();
    let render = |name| Render::parse(name).unwrap();
    let expected = Policy {
        runtime: Some("/usr/bin/runc".into()),
        requests: Some(Requests::All),
        gpus: Some(vec![
            Gpu {
                card: PciAddress::parse("0000:64:00.0"),
                render: render("renderD128"),
                nodes: vec![node("/dev/dri/renderD128", None)],
                integrated: true,
                ..Gpu::default()
            },
            Gpu {
                index: 1,
                names: vec!["GPU-0123456789abcdef".into(), "0000:c1:00.0".into()],
                card: PciAddress::parse("0000:c1:00.0"),
                compute: None,
                render: render("renderD129"),
                nodes: vec![node("/dev/dri/card2", Some(44)), node("/dev/dri/renderD129", Some(992))],
                hive: Some("7".into()),
                numa_node: Some(1),
                integrated: false,
            },
        ]),
        kfd: node("/dev/kfd", Some(992)),
        ..Policy::default()
    };
    assert_eq!(policy, expected);
}

#[test]
fn exclusive_sharing_comes_with_a_wait_and_a_grace() {
    let policy =
        r#"{"schema_version":1,"requests":"all","sharing":"exclusive","wait_limit_s":60,"idle_grace_s":600}"#;
    let policy = Policy::parse(policy).unwrap();
    assert_eq!(
        (policy.sharing, policy.default, policy.wait_limit_s, policy.idle_grace_s),
        (Sharing::Exclusive, DefaultGrant::None, 60, Some(600))
    );
}

#[test]
fn quarantine_is_what_a_policy_has_to_say() {
    let has = |value: &str| {
        let text = format!(r#"{{"schema_version":1,"requests":"all","quarantine":{value}}}"#);
        Policy::parse(&text).map(|policy| policy.quarantine).map_err(|error| error.to_string())
    };
    assert_eq!([has("true"), has("false"), has("null")], [Ok(true), Ok(false), Ok(false)]);
    let problem = "not a policy: invalid type: string \"yes\", expected a boolean at line 1 column 55";
    assert_eq!(has("\"yes\""), Err(problem.to_owned()));
}

#[test]
fn what_is_left_out_is_the_closed_choice() {
    for (version, gpus) in [(1, None), (2, Some(vec![]))] {
        let text = format!(r#"{{"schema_version":{version},"requests":"named","gpus":null}}"#);
        let expected = Policy {
            requests: Some(Requests::Named),
            gpus,
            lacks_card_nodes: version == 1,
            kfd: node("/dev/kfd", None),
            ..Policy::default()
        };
        assert_eq!(Policy::parse(&text).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_policy_that_says_nothing_is_plain_runc() {
    let all = Request::All;
    for text in ["{}", r#"{"schema_version":1}"#, r#"{"schema_version":1,"default":"none","gpus":[]}"#] {
        let policy = Policy::parse(text).unwrap();
        assert!(policy.says_nothing(), "{text}");
        assert_eq!(policy.ask(Some(&all), Setting::default()), Ok(Ask::Nothing), "{text}");
    }
    assert!(!Policy::parse(r#"{"schema_version":1,"requests":"deny"}"#).unwrap().says_nothing());
}

#[test]
fn what_it_cannot_keep_is_refused_with_the_key() {
    let newer = "schema_version 3 belongs to a newer version (this one reads 2): update runc-amd-wrapper, or let \
                 this version of rocworker write the policy again";
    let table = [
        (r#""schema_version":2"#, r#""schema_version":3,"surprise":1"#, newer),
        (r#""schema_version":2"#, r#""schema_version":0"#, "schema_version: there never was a version 0"),
        (r#""schema_version":2,"#, "", "schema_version is missing: write \"schema_version\": 2"),
        (
            r#""sharing""#,
            r#""sharin""#,
            "not a policy: unknown field `sharin`, expected one of `schema_version`, ",
        ),
        (
            r#""hive":"7""#,
            r#""hivee":"7""#,
            "not a policy: gpus: unknown field `hivee`, expected one of `index`, ",
        ),
        (
            r#""requests":"all""#,
            r#""requests":"some""#,
            "not a policy: unknown variant `some`, expected one of `deny`, `named`, `count`, `all` at line 1 column ",
        ),
        (
            r#""requests":"all""#,
            r#""requests":"all","requests":"deny""#,
            "not a policy: duplicate field `requests` at line 1 column ",
        ),
        (
            r#""card":"0000:64:00.0""#,
            r#""card":"64""#,
            "not a policy: gpus: invalid value: string \"64\", expected a PCI address like 0000:64:00.0",
        ),
        (
            "/dev/dri/renderD128",
            "/dev/sda",
            "not a policy: gpus: the GPU 0 needs one render node like /dev/dri/renderD128",
        ),
        (
            "/dev/dri/card2",
            "/dev/dri/renderD130",
            "not a policy: gpus: the GPU 1 needs one render node like /dev/dri/renderD128",
        ),
        (r#""card":"0000:64:00.0","#, "", "not a policy: gpus: missing field `card`"),
        (r#""hive":"7""#, r#""hive":[]"#, "not a policy: gpus: invalid type: sequence, expected a string"),
        (r#""gpus":["#, r#""gpus":"all","x":["#, "not a policy: "),
        (
            r#""index":0"#,
            r#""index":1"#,
            "gpus: 1 (0000:c1:00.0, renderD129) and 1 (0000:64:00.0, renderD128) have the same index",
        ),
        (
            r#"renderD128""#,
            r#"renderD129""#,
            "gpus: 0 (0000:64:00.0, renderD129) and 1 (0000:c1:00.0, renderD129) have the same render node",
        ),
        (r#""/usr/bin/runc""#, r#""runc""#, "runtime: \"runc\" is not an absolute path"),
        (
            r#""default":"none","sharing":"shared""#,
            r#""default":"all","sharing":"exclusive""#,
            "default: all does not go with sharing: exclusive",
        ),
        (
            r#""wait_limit_s":0"#,
            r#""wait_limit_s":61"#,
            "wait_limit_s: 61 is more than the 60 that a create may wait",
        ),
        (
            r#""wait_limit_s":0"#,
            r#""wait_limit_s":0,"idle_grace_s":-1"#,
            "not a policy: invalid value: integer `-1`, expected u32",
        ),
        (FULL, "", "not a policy: EOF while parsing a value at line 1 column 0"),
        (FULL, " [1]", "not a policy: invalid type: sequence, expected an object"),
    ];
    for (from, to, expected) in table {
        let text = FULL.replacen(from, to, 1);
        assert_ne!(text, FULL, "{from} is not in the policy");
        let message = Policy::parse(&text).map(drop).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{to}: {message}");
    }
}

#[test]
fn each_kind_of_request_is_honoured_only_where_the_policy_says_so() {
    let list = Request::from_visible_devices("0-1").unwrap();
    let requests = [Request::All, list, Request::Count(2)];
    // For all, a list and a count.
    let table = [
        ("deny", [false, false, false]),
        ("named", [false, true, false]),
        ("count", [false, false, true]),
        ("all", [true, true, true]),
    ];
    for (requests_key, honoured) in table {
        let policy = format!(r#"{{"schema_version":1,"requests":"{requests_key}"}}"#);
        let policy = Policy::parse(&policy).unwrap();
        for (request, honoured) in requests.iter().zip(honoured) {
            let ask = policy.ask(Some(request), Setting::default());
            assert_eq!(ask.is_ok(), honoured, "{requests_key}: {request:?}");
            if honoured {
                assert_eq!(ask, Ok(Ask::Explicit(request)));
            }
            let kubernetes = Setting { kubernetes: true, ..Setting::default() };
            let refused = policy.ask(Some(request), kubernetes).unwrap_err().to_string();
            assert!(refused.contains("counts for nothing in Kubernetes"), "{refused}");
        }
        let nothing =
            policy.ask(Some(&Request::Nothing), Setting { kubernetes: true, concourse_resource: true });
        assert_eq!(nothing, Ok(Ask::Nothing));
    }
}

#[test]
fn pods_ask_by_a_key_of_their_own_and_get_no_default() {
    let kubernetes = Setting { kubernetes: true, ..Setting::default() };
    let list = Request::from_visible_devices("0-1").unwrap();
    for (pods, asks) in [
        (r#""all""#, [true, true]),
        (r#""named""#, [true, false]),
        (r#""count""#, [false, true]),
        (r#""deny""#, [false, false]),
        ("null", [false, false]),
    ] {
        // Whatever holds for others.
        for requests in ["deny", "all"] {
            let text =
                format!(r#"{{"schema_version":1,"requests":"{requests}","pods":{pods},"default":"all"}}"#);
            let policy = Policy::parse(&text).unwrap();
            for (request, asks) in [&list, &Request::Count(1)].into_iter().zip(asks) {
                assert_eq!(policy.ask(Some(request), kubernetes).is_ok(), asks, "{text} {request:?}");
                let other = policy.ask(Some(request), Setting::default());
                assert_eq!(other.is_ok(), requests == "all", "{text} {request:?}");
            }
            assert_eq!(policy.ask(None, kubernetes), Ok(Ask::Nothing), "{text}");
        }
    }
    let alone = Policy::parse(r#"{"schema_version":1,"pods":"all"}"#).unwrap();
    assert_eq!(alone.ask(Some(&list), kubernetes), Ok(Ask::Explicit(&list)));
    assert!(alone.ask(Some(&list), Setting::default()).is_err());
    let refused = Policy::parse(r#"{"schema_version":1,"pods":"scheduler"}"#).unwrap_err().to_string();
    assert!(refused.contains("unknown variant `scheduler`"), "{refused}");
}

#[test]
fn a_refused_request_is_reported_in_one_sentence() {
    let list = Request::from_visible_devices("0-1").unwrap();
    let table = [
        (
            "deny",
            &list,
            "the container asks for 2 GPUs by name, and the policy honours no requests (requests: deny)",
        ),
        (
            "named",
            &Request::All,
            "the container asks for all GPUs, and the policy honours only GPUs named in AMD_VISIBLE_DEVICES",
        ),
        (
            "count",
            &list,
            "the container asks for 2 GPUs by name, and the policy honours only a number in AMD_GPU_COUNT",
        ),
    ];
    for (requests, request, expected) in table {
        let policy = Policy::parse(&format!(r#"{{"schema_version":1,"requests":"{requests}"}}"#)).unwrap();
        let refusal = policy.ask(Some(request), Setting::default()).unwrap_err();
        assert_eq!(refusal.to_string(), expected);
    }
}

#[test]
fn the_default_is_for_those_who_say_nothing_and_could_use_a_gpu() {
    let setting = |kubernetes, concourse_resource| Setting { kubernetes, concourse_resource };
    let table = [
        ("all", None, setting(false, false), Ask::Default),
        ("all", None, setting(true, false), Ask::Nothing),
        ("all", None, setting(false, true), Ask::Nothing),
        ("all", Some(Request::Nothing), setting(false, false), Ask::Nothing),
        ("none", None, setting(false, false), Ask::Nothing),
    ];
    for (default, request, setting, expected) in table {
        let policy = format!(r#"{{"schema_version":1,"requests":"deny","default":"{default}"}}"#);
        let policy = Policy::parse(&policy).unwrap();
        assert_eq!(policy.ask(request.as_ref(), setting), Ok(expected), "{default} {request:?} {setting:?}");
    }
    // A default alone says nothing about requests, so they are denied.
    let policy = Policy::parse(r#"{"schema_version":1,"default":"all"}"#).unwrap();
    assert_eq!(policy.ask(None, Setting::default()), Ok(Ask::Default));
    let refused = policy.ask(Some(&Request::All), Setting::default()).unwrap_err().to_string();
    assert!(refused.ends_with("the policy honours no requests (requests: deny)"), "{refused}");
}

#[test]
fn the_runtime_is_known_whatever_else_is_wrong() {
    for (text, expected) in [
        (r#"{"schema_version":9,"later":[],"runtime":"/x"}"#, Some("/x")),
        (r#"{"r\u0075ntime":"/x","requests":5}"#, Some("/x")),
        (r#"{"runtime":"/x","r\u0075ntime":"/y"}"#, None),
        (r#"{"runtime":null}"#, None),
        ("[]", None),
    ] {
        assert_eq!(runtime(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_message_shows_foreign_text_harmless_and_short() {
    let long = "x".repeat(2000);
    let [red, long] = [r"\u001b[31m", &long].map(|key| format!(r#"{{"schema_version":2,"{key}":1}}"#));
    let message = |text: &str| Policy::parse(text).unwrap_err().to_string();
    assert!(message(&red).starts_with("not a policy: unknown field ` [31m`, "), "{}", message(&red));
    assert!(message(&long).chars().count() < 300, "{}", message(&long));
}
