//! What the wrapper writes into a bundle, from real device nodes, and what it says where it cannot.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic, reason = "a test lays out files")]

mod real;
mod stage;

use stage::{Outcome, Stage, config, policy, renders, spec};

const ASKING: &[&str] = &["AMD_VISIBLE_DEVICES=0"];

#[test]
fn real_a_request_counts_however_its_letters_are_written() {
    let Some(_) = real::require(&["root", "mknod"]) else { return };
    let stage = Stage::with_nodes();
    stage.policy("all", "none");
    for (from, to) in [
        ("\"AMD_VISIBLE_DEVICES=0\"", r#""\u0041MD_VISIBLE_DEVICES=0""#),
        ("\"AMD_VISIBLE_DEVICES=0\"", r#""AMD\u005fVISIBLE_DEVICE\u0053=\u0030""#),
        ("\"process\"", r#""proces\u0073""#),
        ("\"env\"", r#""\u0065nv""#),
        ("\"env\"", "\"ENV\""),
        ("\"linux\"", r#""\u006cinux""#),
    ] {
        let text = config(ASKING);
        assert!(text.contains(from));
        let outcome = stage.create(text.replacen(from, to, 1));
        assert!(outcome.runs() && outcome.log.is_empty(), "{to}: {outcome:?}");
        let edited = String::from_utf8(stage.config()).unwrap();
        assert!(edited.contains("/dev/dri/renderD128") && edited.contains(to), "{to}: {edited}");
        std::fs::remove_file(stage.record_path("c1")).unwrap();
    }
}

#[test]
fn real_all_that_is_not_edited_stays_byte_for_byte() {
    let Some(_) = real::require(&["root", "mknod"]) else { return };
    let stage = Stage::with_nodes();
    stage.policy("all", "none");
    let odd = "{ \"x\\u0079\" : 1.000e+02 ,\n\t\"linux\":{ \"netDevices\" :{\"eth0\":{ }}, \"memoryPolicy\":null},\
               \"process\": {\"env\":[\"AMD_VISIBLE_DEVICES=0\"] , \"new\":18446744073709551617 } }\n";
    let outcome = stage.create(odd);
    assert!(outcome.runs(), "{outcome:?}");
    let edited = String::from_utf8(stage.config()).unwrap();
    assert_eq!(renders(edited.as_bytes()), ["renderD128"]);
    for part in
        ["{ \"x\\u0079\" : 1.000e+02 ,\n\t", "\"netDevices\" :{\"eth0\":{ }}", "\"new\":18446744073709551617"]
    {
        assert!(edited.contains(part), "{part} in {edited}");
    }
}

#[test]
fn real_a_path_that_is_another_device_already_is_refused_by_name() {
    let Some(_) = real::require(&["root", "mknod"]) else { return };
    let stage = Stage::with_nodes();
    stage.policy("all", "none");
    let with = |major: u32, minor: u32| {
        let device = format!(
            r#""linux":{{"devices":[{{"path":"/dev/dri/../dri/renderD128","type":"c","major":{major},"minor":{minor}}}],"#
        );
        config(ASKING).replacen("\"linux\":{", &device, 1)
    };
    let outcome = stage.create(with(226, 7));
    let said = outcome.messages("error").concat();
    assert!(!outcome.runs() && said.contains("renderD128") && said.contains("226:7"), "{outcome:?}");
    let outcome = stage.create(with(1, 5));
    assert!(outcome.runs(), "{outcome:?}");
    assert_eq!(renders(&stage.config()), ["renderD128"], "the same device is kept, not doubled");
}
