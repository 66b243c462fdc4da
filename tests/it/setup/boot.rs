//! What `rocworker boot` changes and what it leaves to apply, beneath a Root: with a real systemd it is in real_boot.rs.

use crate::setup::laid::{Laid, stands_where_it_can_run};
use crate::setup::program::Program;

const SPEC: &str = "etc/cdi/amd.json";
const UNIT: &str = "etc/systemd/system/rocworker-boot.service";
const RULES: &str = "etc/udev/rules.d/70-amdgpu.rules";
const WITHOUT_WAIT: &str = "boot: {wait-s: 0}\n";

/// A node of the demo's first GPU that is not there any more.
fn lose_a_node(laid: &Laid) {
    let recorded = laid.text("capture.json");
    assert!(recorded.contains("/dev/dri/renderD129\""), "{recorded}");
    laid.put("capture.json", &recorded.replace("/dev/dri/renderD129\"", "/dev/dri/renderD229\""));
}

fn paths(list: &serde_json::Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap_or_else(|| it.as_str().unwrap()))
        .collect()
}

#[test]
fn engines_are_told_of_what_is_there_and_the_rest_is_applys() {
    let laid = Laid::demo(WITHOUT_WAIT);
    laid.run(&["apply"]).success();
    lose_a_node(&laid);
    laid.put("etc/rocworker/config.yaml", &format!("{WITHOUT_WAIT}module-options: {{noretry: 0}}\n"));
    let booted = laid.json(&["boot"]);
    assert_eq!(paths(&booted["changes"]), ["/etc/cdi/amd.json", "/etc/rocworker/wrapper.json"]);
    assert_eq!(paths(&booted["differs"]), ["/etc/modprobe.d/rocworker-amdgpu.conf"]);
    assert_eq!(booted["missing"][0]["gpu"], "GPU 0 (0000:03:00.0)");
    let spec = laid.text(SPEC);
    assert!(!spec.contains("renderD129") && spec.contains("renderD130"), "{spec}");
    assert_eq!(laid.run(&["boot"]).get_output().status.code(), Some(1), "a GPU is missing");

    let times = laid.times();
    let again = laid.json(&["boot"]);
    assert_eq!(paths(&again["changes"]), [""; 0]);
    assert_eq!(laid.times(), times, "where nothing is to be changed, nothing is written");
}

/// An older wrapper refuses a newer policy.
#[test]
fn real_the_policy_is_not_renewed_before_the_copy_of_the_wrapper_that_reads_it() {
    if !support::real::require_root(&["chattr"]) {
        return;
    }
    const COPY: &str = "usr/local/lib/rocworker/runc-amd-wrapper";
    const POLICY: &str = "etc/rocworker/wrapper.json";
    const OLDER: &str = "{\"schema_version\": 1, \"requests\": \"all\"}\n";
    let (laid, program) = (Laid::demo(WITHOUT_WAIT), Program::new());
    std::fs::remove_file(laid.path("usr/lib/rocworker/runc-amd-wrapper")).unwrap();
    assert_eq!(program.run(&laid, &["apply"]).0, 0);
    let (policy, older) = (laid.text(POLICY), std::fs::read(laid.path(COPY)).unwrap());

    laid.put(POLICY, OLDER);
    program.renew_wrapper();
    let folder = laid.path("usr/local/lib/rocworker");
    let flag = |option: &str| {
        assert!(std::process::Command::new("chattr").arg(option).arg(&folder).status().unwrap().success())
    };
    flag("+i");
    let (code, said) = program.run(&laid, &["apply"]);
    flag("-i");
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("it needs /usr/local/lib/rocworker/runc-amd-wrapper, which could not be written"),
        "{said}"
    );
    assert_eq!(laid.text(POLICY), OLDER, "{said}");

    let (_, said) = program.run(&laid, &["boot"]);
    assert_eq!(laid.text(POLICY), policy, "{said}");
    assert_ne!(std::fs::read(laid.path(COPY)).unwrap(), older, "{said}");
}

/// The unit names no configuration: what another one withholds is not given at the next start.
#[test]
fn a_start_goes_by_the_configuration_of_the_last_apply() {
    let laid = Laid::demo(WITHOUT_WAIT);
    let other = laid.path("other.yaml");
    laid.put("other.yaml", &format!("{WITHOUT_WAIT}gpu-device-ids: 0000:03:00.0\n"));
    laid.run(&["--config", other.to_str().unwrap(), "apply"]).success();
    let spec = laid.text(SPEC);
    assert!(!spec.contains("renderD130"), "{spec}");
    laid.run(&["boot"]).success();
    assert_eq!(laid.text(SPEC), spec);
    std::fs::remove_file(&other).unwrap();
    let (code, said) = laid.fails(&["boot"]);
    assert!(code == 2 && said.contains("other.yaml"), "{said}");
    assert_eq!(laid.text(SPEC), spec);
}

/// What an undo had to leave names the unit still, which starts this.
#[test]
fn a_start_sets_nothing_up_that_was_taken_back_or_was_never_applied() {
    let laid = Laid::demo(WITHOUT_WAIT);
    let never = laid.json(&["boot"]);
    assert_eq!((&never["set_up"], paths(&never["changes"])), (&false.into(), vec![]));
    laid.run(&["apply"]).success();
    let rules = laid.text(RULES) + "# mine\n";
    laid.put(RULES, &rules);
    assert_eq!(laid.run(&["undo"]).get_output().status.code(), Some(1), "the rules stay");
    let times = laid.times();
    let after = laid.json(&["boot"]);
    assert_eq!((&after["set_up"], paths(&after["changes"])), (&false.into(), vec![]));
    assert_eq!(laid.times(), times);
    laid.run(&["boot"])
        .success()
        .stdout("nothing is set up here, and nothing was changed: rocworker apply sets it up\n");
}

/// What is remembered says nothing about nodes: one that is gone is not offered for that.
#[test]
fn a_start_that_cannot_read_what_is_remembered_leaves_what_is_true_and_nothing_else() {
    let laid = Laid::demo(WITHOUT_WAIT);
    laid.run(&["apply"]).success();
    lose_a_node(&laid);
    laid.put("var/lib/rocworker/memory.json", "{");
    let (code, said) = laid.fails(&["boot"]);
    assert!(code != 0 && said.contains("memory.json cannot be read"), "{code}: {said}");
    let spec = laid.text(SPEC);
    assert!(!spec.contains("renderD129") && spec.contains("renderD130"), "{spec}");
}

#[test]
fn of_what_a_killed_undo_has_left_a_start_offers_nothing_that_is_gone() {
    let laid = Laid::demo(WITHOUT_WAIT);
    laid.run(&["apply"]).success();
    let memory = laid.text("var/lib/rocworker/memory.json");
    laid.put("var/lib/rocworker/memory.json", &memory.replacen('{', "{\n  \"undone\": true,", 1));
    lose_a_node(&laid);
    let after = laid.json(&["boot"]);
    assert_eq!(after["set_up"], false, "{after:#}");
    let spec = laid.text(SPEC);
    assert!(!spec.contains("renderD129") && spec.contains("renderD130"), "{spec}");
}

#[test]
fn a_card_that_was_chosen_and_is_gone_leaves_no_spec_of_the_last_start() {
    let laid = Laid::demo(&format!("{WITHOUT_WAIT}gpu-device-ids: 0000:03:00.0\n"));
    laid.run(&["apply"]).success();
    assert!(laid.text(SPEC).contains("renderD129"));
    std::fs::remove_file(laid.path("sys/bus/pci/devices/0000:03:00.0")).unwrap();
    let policy = laid.text("etc/rocworker/wrapper.json");
    let (code, said) = laid.fails(&["boot"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("gpu-device-ids names \"0000:03:00.0\""), "{said}");
    assert!(!laid.path(SPEC).exists());
    // The policy names cards by their PCI address, which the wrapper holds against sysfs.
    assert_eq!(laid.text("etc/rocworker/wrapper.json"), policy);
}

#[test]
fn there_is_a_unit_where_systemd_starts_the_machine_and_the_program_stays() {
    stands_where_it_can_run(UNIT, "boot");
    let wait = Laid::started(true, true, "boot: {wait-s: 5}");
    wait.run(&["apply"]).success();
    assert!(wait.text(UNIT).contains("\nTimeoutStartSec=125\n"), "{}", wait.text(UNIT));
    wait.put(
        "etc/rocworker/templates/systemd/rocworker-boot.service",
        "[Service]\nExecStart=/bin/true boot\n",
    );
    let (code, said) = wait.fails(&["plan"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("gives a unit that does not run `/usr/bin/rocworker boot`; mend the template"),
        "{said}"
    );
}
