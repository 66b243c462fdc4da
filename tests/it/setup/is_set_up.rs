//! Whether a machine is set up, which every command answers alike: an apply has run here, and no undo since.

use crate::setup::laid::Laid;

const WITHOUT_WAIT: &str = "boot: {wait-s: 0}\n";
const RULES: &str = "etc/udev/rules.d/70-amdgpu.rules";

/// What has been run on a machine, and whether it is set up then.
fn machines() -> Vec<(&'static str, bool, Laid)> {
    let demo = || Laid::demo(WITHOUT_WAIT);
    let after = |commands: &[&[&str]]| {
        let laid = demo();
        for arguments in commands {
            laid.run(arguments).success();
        }
        laid
    };
    let left = after(&[&["apply"]]);
    left.put(RULES, &(left.text(RULES) + "# mine\n"));
    assert_eq!(left.run(&["undo"]).get_output().status.code(), Some(1), "the rules stay");
    vec![
        ("a fresh one", false, demo()),
        ("one with a spec of cdi generate", false, after(&[&["cdi", "generate"]])),
        ("an applied one", true, after(&[&["apply"]])),
        ("one with a spec of cdi generate, applied", true, after(&[&["cdi", "generate"], &["apply"]])),
        ("one that was taken back", false, after(&[&["apply"], &["undo"]])),
        ("one that was taken back but for a file", false, left),
        (
            "one that was taken back, with a spec of cdi generate",
            false,
            after(&[&["apply"], &["undo"], &["cdi", "generate"]]),
        ),
    ]
}

#[test]
fn every_command_has_one_answer_to_whether_a_machine_is_set_up() {
    for (name, is_set_up, laid) in machines() {
        let booted = laid.json(&["boot"]);
        assert_eq!(booted["set_up"], is_set_up, "{name}: boot: {booted:#}");
        // A plan by another configuration tells of an earlier apply, where there was one.
        laid.put("root/other.yaml", "gpu-device-ids: 0\n");
        let other = laid.path("root/other.yaml").display().to_string();
        let planned = laid.json(&["--config", &other, "plan"]);
        let notes = planned["notes"].as_array().unwrap();
        let tells =
            notes.iter().any(|note| note["text"].as_str().unwrap().starts_with("the last apply was by"));
        assert_eq!(tells, is_set_up, "{name}: plan: {planned:#}");
        // A package that is upgraded renews what was applied, and nothing else.
        let renewed = laid.run(&["deb", "renew"]).success();
        let said = String::from_utf8(renewed.get_output().stdout.clone()).unwrap();
        assert_eq!(said.contains("already in sync with this version"), is_set_up, "{name}: {said}");
        // An emptied configuration is followed by nobody where the last one said something; here it is of no interest.
        laid.put("etc/rocworker/config.yaml", "");
        let status = laid.run(&["status"]);
        let said = String::from_utf8(status.get_output().stderr.clone()).unwrap();
        assert_eq!(said.contains("is empty or not there"), is_set_up, "{name}: status: {said}");
    }
}
