use assert_cmd::Command;
use layout::Machine;
use serde_json::Value;
use support::captures;
use support::laid::Laid;

use super::eight;

fn top(laid: &Laid, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(laid.top()).arg("top").args(arguments);
    command
}

#[test]
fn once_prints_one_view_without_escapes() {
    let laid = eight();
    let output = top(&laid, &["--once"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
    insta::assert_snapshot!("top_once", text);
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let output = top(&laid, &["--once", "-o", "wide"]).assert().success().get_output().stdout.clone();
    insta::assert_snapshot!("top_once_wide", String::from_utf8(output).unwrap());
}

#[test]
fn once_as_json_is_the_overview_with_its_version() {
    let output = top(&eight(), &["--once", "-o", "json"]).assert().success().get_output().stdout.clone();
    let answer: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!((&answer["schema_version"], &answer["host"]), (&1.into(), &"gpu-host-1".into()));
    assert_eq!(answer["cards"].as_array().unwrap().len(), 8);
    assert_eq!(answer["cards"][0]["power_watts"], 431.0);
    assert_eq!(answer["cards"][0]["temperatures"]["junction"], 51.0);
    assert_eq!(answer["daemon"], Value::Null, "unknown is null");
    assert_eq!(answer["processes"][0]["pid"], 4711);
}

#[test]
fn a_machine_without_a_gpu_is_no_error() {
    let laid = Laid::out(&captures::a380());
    top(&laid, &["--once"]).assert().success().stdout("No AMD GPU was found.\n");
    // A wrong --root.
    let laid = Laid::out(&Machine::new().remove("/sys/bus"));
    let output = top(&laid, &["--once"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let unknown = "Which GPUs this machine has is not known.\n? no PCI device can be seen: ";
    assert!(text.starts_with(unknown) && text.contains("/sys/bus/pci/devices"), "{text}");
}

#[test]
fn a_card_that_no_container_can_use_says_why() {
    let laid = Laid::out(&Machine::instinct_with_readings(2, 1));
    let folder = "sys/bus/pci/devices/0000:05:00.0";
    std::fs::remove_file(laid.path(&format!("{folder}/driver"))).unwrap();
    let uevent = laid.text(&format!("{folder}/uevent")).replace("DRIVER=amdgpu\n", "");
    laid.put(&format!("{folder}/uevent"), &uevent);
    let output = top(&laid, &["--once"]).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert_eq!(text.matches(" not usable: no driver is bound to it").count(), 1, "{text}");
}

#[test]
fn without_a_terminal_a_sentence_names_once() {
    let laid = eight();
    for (arguments, why, instead) in [
        (&[][..], "top needs a terminal to watch the GPUs: say `rocworker", "top --once`\n"),
        (&["-o", "json"], "--output json prints one view: say `rocworker", "top --once -o json`\n"),
    ] {
        let output = top(&laid, arguments).assert().code(2).stdout("").get_output().stderr.clone();
        let said = String::from_utf8(output).unwrap();
        assert!(said.starts_with("rocworker: ") && said.contains(why), "{said}");
        assert!(said.ends_with(instead), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    for interval in ["0.1", "61", "nan", "x", "-1"] {
        top(&laid, &[&format!("--interval={interval}")]).assert().code(2).stdout("");
    }
}
