use std::process::Command;

use serde_json::Value;

use super::{answer, refusal, rocworker};

fn json(arguments: &[&str]) -> Value {
    let value: Value = serde_json::from_str(&answer(&[arguments, &["-o", "json"]].concat())).unwrap();
    assert_eq!(value["schema_version"], 1);
    value
}

#[test]
fn the_eight_errors_are_explained() {
    let all: Vec<String> = (1..=8).map(|code: u8| answer(&["explain", &code.to_string()])).collect();
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn the_list_begins_with_the_kernel_and_hip_and_ends_with_the_eight_errors() {
    let list = answer(&["explain", "--list"]);
    insta::assert_snapshot!(list);
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
    let errors = answer(&["list-errors"]);
    let table = errors.lines().take(9).collect::<Vec<_>>().join("\n");
    assert!(list.trim_end().ends_with(&table), "{errors}");

    let json = json(&["explain", "--list"]);
    for group in ["messages", "codes", "errors"] {
        for entry in json[group].as_array().unwrap() {
            let name = entry["id"].as_str().or(entry["name"].as_str()).unwrap();
            assert!(entry["blame"].is_null() && group == "codes" || list.contains(name), "{entry}");
        }
    }
}

#[test]
fn each_name_of_a_kernel_message_in_the_list_is_explained() {
    let list = json(&["explain", "--list"]);
    let messages = list["messages"].as_array().unwrap();
    assert!(messages.iter().any(|message| message["class"] == "hang"));
    for message in messages {
        assert_eq!(&json(&["explain", message["id"].as_str().unwrap()])["message"], message);
    }
    let text = answer(&["explain", "ring-timeout"]);
    for sample in json(&["explain", "ring-timeout"])["samples"].as_array().unwrap() {
        let sample = sample.as_str().unwrap();
        assert!(text.contains(sample), "{text}");
        let of_line = json(&["explain", sample]);
        assert_eq!(of_line["matches"][0]["id"], "ring-timeout", "{sample}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn codes_of_libraries_are_explained_by_number_and_name() {
    insta::assert_snapshot!(
        ["hip:719", "hsa:0x1016", "amdsmi:2"].map(|code| answer(&["explain", code])).join("\n\n")
    );
    for (one, other) in [
        ("hip:719", "HIP:hipErrorLaunchFailure"),
        ("hip:719", "hip:0x2CF"),
        ("hip:719", "hipErrorLaunchFailure"),
        ("hip:2", "hip:hipErrorMemoryAllocation"),
        ("hsa:4118", "Hsa:HSA_STATUS_ERROR_EXCEPTION"),
        ("amdsmi:2", "amdsmi:amdsmi_status_not_supported"),
        ("hip:719", "hip 719"),
        ("hsa:0x1016", "HSA=0x1016"),
    ] {
        assert_eq!(answer(&["explain", one]), answer(&["explain", other]), "{other}");
    }
}

#[test]
fn json_has_the_same() {
    let one = json(&["explain", "7"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&one).unwrap());
    let list = json(&["explain", "--list"]);
    let errors = list["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[6]), (8, &one["error"]));
    assert_eq!(json(&["explain", "3"])["error"]["documentation"], Value::Null);

    let status = &json(&["explain", "hip:2"])["status"];
    let expected = serde_json::json!({
        "library": "hip", "number": 2, "name": "hipErrorOutOfMemory", "also": ["hipErrorMemoryAllocation"],
        "blame": "application", "meaning": "The GPU, or the host for pinned memory, has no room for an allocation.",
        "actions": [
            "Use less memory, for example with a smaller batch.",
            "See what else holds memory on the GPU: rocm-smi --showpids, rocworker metrics."
        ],
        "source": "hip/hip_runtime_api.h of ROCm 6.4.3"
    });
    assert_eq!(*status, expected);
    let success = &json(&["explain", "amdsmi:0"])["status"];
    assert_eq!((&success["blame"], &success["actions"]), (&Value::Null, &serde_json::json!([])));
}

#[test]
fn a_terminal_shows_severity_in_colour() {
    let coloured = |code: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
        command.args(["explain", code]).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    for (code, severity) in
        [("1", "\u{1b}[31mCritical\u{1b}[0m"), ("3", "\u{1b}[33mWarning\u{1b}[0m"), ("6", "Severity: Info\n")]
    {
        let text = coloured(code);
        assert!(text.contains(severity), "{text:?}");
        assert!(text.contains("\u{1b}[36m"), "the name is cyan: {text:?}");
        assert!(!answer(&["explain", code]).contains('\u{1b}'), "a pipe");
    }
}

#[test]
fn what_is_no_code_is_refused_in_a_sentence_that_says_what_to_do() {
    for (code, expected) in [
        (
            "719",
            "unknown ROCm error code: 719; there are 1 to 8, see rocworker explain --list; a library's code has its \
             prefix: hip:719",
        ),
        (
            "0x1016",
            "unknown ROCm error code: 0x1016; there are 1 to 8, see rocworker explain --list; a library's code has \
             its prefix: hsa:0x1016",
        ),
        (
            "9",
            "unknown ROCm error code: 9; there are 1 to 8, see rocworker explain --list; a library's code has its \
             prefix: hip:9 or amdsmi:9",
        ),
        (
            "4294967297",
            "unknown ROCm error code: 4294967297; there are 1 to 8, see rocworker explain --list; a library's code \
             has its prefix: hip:, hsa:, amdsmi: or afid:",
        ),
        (
            "nvml:3",
            "nvml: is no prefix that rocworker knows: use hip:, hsa:, amdsmi: or afid:, as in hip:719",
        ),
        ("foo:1", "foo: is no prefix that rocworker knows: use hip:, hsa:, amdsmi: or afid:, as in hip:719"),
        (
            "hip:99999",
            "hip:99999 is unknown: this version of rocworker has the codes of hip/hip_runtime_api.h of ROCm 6.4.3",
        ),
        (
            "amdsmi:57",
            "amdsmi:57 is unknown: this version of rocworker has the codes of amd_smi/amdsmi.h of AMD SMI 10.1",
        ),
        ("hip:", "hip: names no code: add a number or a name, as in hip:1 or hip:hipErrorInvalidValue"),
        (
            "hip:-1",
            "hip:-1 is unknown: this version of rocworker has the codes of hip/hip_runtime_api.h of ROCm 6.4.3",
        ),
        ("afid:x", "afid:x names no AFID: one is a number, as in afid:24"),
        ("afid:", "afid: names no AFID: one is a number, as in afid:24"),
    ] {
        assert_eq!(refusal(&["explain", code]), expected);
        assert_eq!(refusal(&["explain", code, "-o", "json"]), expected);
    }
    let both = rocworker(&["explain", "--since", "yesterday", "1"]);
    let stderr = String::from_utf8_lossy(&both.stderr);
    assert!(both.status.code() == Some(2) && stderr.contains("--since"), "{stderr}");
    let nothing = refusal(&["explain"]);
    assert!(nothing.contains("hip:719") && nothing.contains("--journal"), "{nothing}");
}

#[test]
fn an_unknown_code_does_not_steer_the_terminal() {
    let said = refusal(&["explain", "hip:\u{1b}[31m"]);
    assert!(said.starts_with("hip:\\u{1b}[31m is unknown"), "{said}");
}
