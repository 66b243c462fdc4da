//! The program's command line.

use std::process::Command;

use crate::running::PROGRAM;

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM).args(arguments).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), text)
}

#[test]
fn wrong_arguments_end_in_a_sentence_and_exit_code_2() {
    let place = tempfile::tempdir().unwrap();
    let missing = place.path().join("missing");
    for (arguments, sentence) in [
        (&["--allocate=volumes"][..], "[possible values: devices, cdi]"),
        (&["--resource-names=many"], "[possible values: single, mixed]"),
        (&["--replicas=0"], "0 is not in 1..=64"),
        (&["--replicas=65"], "65 is not in 1..=64"),
        (&["--label-node="], "a node's name has lower case letters"),
        (&["--label-node=a/../b"], "a node's name has lower case letters"),
        (&["--labels=vram,colour"], "unknown variant `colour`, expected one of `vram`, `cu-count`"),
        (&["--root", missing.to_str().unwrap()], "No such file or directory"),
        (&["extra"], "unexpected argument 'extra'"),
    ] {
        let (code, text) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(sentence), "{arguments:?}: {text}");
    }
}

#[test]
fn help_names_each_option_and_version_the_program() {
    let (code, help) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for option in [
        "--root",
        "--kubelet-dir",
        "--allocate",
        "--resource-names",
        "--replicas",
        "--label-node",
        "--labels",
    ] {
        assert!(help.contains(option), "{option}: {help}");
    }
    assert_eq!(
        run(&["--version"]),
        (Some(0), format!("rocworker-device-plugin {}\n", env!("CARGO_PKG_VERSION")))
    );
    // AMD's plugin has the option by this name.
    assert_eq!(run(&["--resource_naming_strategy=single", "--version"]).0, Some(0));
}

#[test]
fn the_program_keeps_no_capability_and_can_gain_none() {
    let place = crate::lists::laid(&layout::Machine::instinct(1, 1));
    let kubelet = crate::kubelet::Kubelet::start(place.path());
    let running = crate::running::Running::start(place.path(), &[]);
    kubelet.plugin("amd.com/gpu");
    for task in std::fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        assert_eq!([field("CapEff:"), field("CapPrm:"), field("CapInh:")], ["0000000000000000"; 3]);
        assert_eq!(field("NoNewPrivs:"), "1");
    }
}
