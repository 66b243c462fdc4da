//! What the hook remove takes back, and what it leaves: another's work stays, and what is managed is not forgotten.

use support::real;

use crate::charm::machines::worker;
use crate::charm::unit::Unit;

const CONFIG: &str = "etc/rocworker/config.yaml";
const RULES: &str = "etc/udev/rules.d/70-amdgpu.rules";
const PACKAGE: &str = "var/lib/rocworker/charm-package";
const STATE: &str = "var/lib/rocworker/charm.json";

#[test]
fn real_a_charm_that_could_not_apply_leaves_what_somebody_else_has_set_up() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    for (configuration, options, status) in [
        (Some("permissions: open\n"), "{}", "Set up by rocworker apply on the machine"),
        (None, r#"{"restart":"soon"}"#, "Config failed: restart is \"soon\"; it takes never, drain or now"),
        (None, r#"{"gpu-device-ids":"7"}"#, "Set up by rocworker apply on the machine"),
    ] {
        let (laid, unit) = (worker(), Unit::new());
        if let Some(text) = configuration {
            laid.put(CONFIG, text);
        }
        Unit::by_hand(laid.top(), &["apply"]).well();
        assert!(laid.path("etc/cdi/amd.json").exists());
        let by_hand = laid.tree();
        unit.options(options);
        for path in ["hooks/install", "hooks/config-changed"] {
            let told = unit.run(laid.top(), path).status();
            assert!(told.starts_with(&format!("blocked: {status}")), "{told}");
        }
        for _ in 0..2 {
            let told = unit.run(laid.top(), "hooks/remove").well();
            let says_so = told
                .iter()
                .any(|call| call.words().iter().any(|it| it.contains("applied without the charm")));
            assert!(says_so, "{status}: {told:?}");
            assert_eq!(laid.tree(), by_hand, "{status}");
            assert!(!laid.path(STATE).exists(), "{status}");
        }
        Unit::by_hand(laid.top(), &["status"]).well();
    }
}

#[test]
fn real_a_removal_that_leaves_something_of_ours_fails_until_it_is_put_right() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    let before = laid.tree();
    unit.run(laid.top(), "hooks/install").well();
    let rules = laid.text(RULES) + "# mine\n";
    laid.put(RULES, &rules);
    for _ in 0..2 {
        let ran = unit.run(laid.top(), "hooks/remove");
        ran.said.badly();
        let told = ran.calls.iter().rfind(|call| call.name() == "status-set").unwrap().words().join(" ");
        for part in [
            "blocked Removal failed: /etc/udev/rules.d/70-amdgpu.rules: somebody has changed it since",
            "rocworker undo --force reverts it all the same; put that right on the machine, then juju resolved rocworker/0",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(laid.path(STATE).exists() && laid.path(CONFIG).exists());
        assert_eq!(laid.text(RULES), rules);
        assert!(!laid.path("etc/cdi/amd.json").exists(), "the rest is taken back");
    }
    Unit::by_hand(laid.top(), &["undo", "--force"]).well();
    unit.run(laid.top(), "hooks/remove").well();
    assert_eq!(laid.tree(), before);
    assert!(!laid.path(STATE).exists());
}

#[test]
fn real_what_an_undo_by_action_has_left_is_told_until_it_is_gone() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.run(laid.top(), "hooks/install").well();
    let rules = laid.text(RULES);
    laid.put(RULES, &(rules.clone() + "# mine\n"));
    for path in ["actions/undo", "hooks/update-status", "hooks/config-changed"] {
        let told = unit.run(laid.top(), path).status();
        let begin = "blocked: Reverted by the action undo, but for /etc/udev/rules.d/70-amdgpu.rules: somebody has changed";
        assert!(told.starts_with(begin), "{path}: {told}");
        assert!(!laid.path("etc/cdi/amd.json").exists());
    }
    laid.put(RULES, &rules);
    for _ in 0..2 {
        let told = unit.run(laid.top(), "hooks/update-status").status();
        assert_eq!(told, "blocked: Reverted by the action undo: juju run rocworker/0 apply sets it up again");
        assert!(!laid.path(RULES).exists());
    }
}

#[test]
fn real_what_was_set_up_before_the_charm_came_stays_as_it_is_until_the_action_apply() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    for takes_over in [false, true] {
        let (laid, unit) = (worker(), Unit::new());
        let before = laid.tree();
        Unit::by_hand(laid.top(), &["apply"]).well();
        let by_hand = laid.tree();
        unit.options(r#"{"gpu-device-ids":"0","tag":"mine"}"#);
        for path in ["hooks/install", "hooks/config-changed", "hooks/update-status"] {
            let told = unit.run(laid.top(), path).status();
            let begin = "blocked: Set up by rocworker apply on the machine, and left as it is: juju run rocworker/0 apply ";
            assert!(told.starts_with(begin), "{path}: {told}");
            assert_eq!(laid.tree(), by_hand, "{path}");
        }
        if takes_over {
            let told = unit.run(laid.top(), "actions/apply").status();
            assert!(told.starts_with("active: "), "{told}");
            assert_ne!(laid.tree(), by_hand);
            let told = unit.run(laid.top(), "hooks/update-status").status();
            assert!(told.starts_with("active: "), "{told}");
        }
        let told = unit.run(laid.top(), "hooks/remove").well();
        let says_so =
            told.iter().any(|call| call.words().iter().any(|it| it.contains("applied without the charm")));
        assert_eq!(says_so, !takes_over, "{told:?}");
        assert_eq!(laid.tree(), if takes_over { before } else { by_hand });
        assert!(!laid.path(STATE).exists());
    }
}

/// What another configuration withholds is not given by the next hook.
#[test]
fn real_an_apply_by_another_configuration_is_not_overridden_by_a_hook() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.run(laid.top(), "hooks/install").well();
    laid.put("root/closed.yaml", "wrapper: {requests: deny}\n");
    let other = laid.path("root/closed.yaml").display().to_string();
    Unit::by_hand(laid.top(), &["--config", &other, "apply"]).well();
    let by_hand = laid.tree();
    for path in ["hooks/update-status", "hooks/config-changed"] {
        let told = unit.run(laid.top(), path).status();
        let begin = format!(
            "blocked: Set up by rocworker --config {other} apply on the machine, and left as it is: "
        );
        assert!(told.starts_with(&begin), "{path}: {told}");
        assert_eq!(laid.tree(), by_hand, "{path}");
    }
    let told = unit.run(laid.top(), "actions/apply").status();
    assert!(told.starts_with("active: "), "{told}");
    assert_ne!(laid.tree(), by_hand);
}

#[test]
fn real_what_somebody_applies_after_the_action_undo_stays_until_they_are_asked() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.run(laid.top(), "hooks/install").well();
    unit.run(laid.top(), "actions/undo").well();
    Unit::by_hand(laid.top(), &["apply"]).well();
    let by_hand = laid.tree();
    for path in ["hooks/update-status", "hooks/config-changed"] {
        let told = unit.run(laid.top(), path).status();
        let begin =
            "blocked: Reverted by the action undo, and set up since by rocworker apply on the machine: ";
        assert!(told.starts_with(begin), "{path}: {told}");
        assert_eq!(laid.tree(), by_hand, "{path}");
    }
    unit.run(laid.top(), "actions/undo").well();
    let told = unit.run(laid.top(), "hooks/update-status").status();
    assert!(told.starts_with("blocked: Reverted by the action undo: juju run"), "{told}");
    assert!(!laid.path("etc/cdi/amd.json").exists());

    Unit::by_hand(laid.top(), &["apply"]).well();
    let by_hand = laid.tree();
    unit.run(laid.top(), "hooks/remove").well();
    assert_eq!(laid.tree(), by_hand, "nor does the charm's end take it back");
}

/// A spec that somebody generated sets no worker up, before the charm comes and after its action undo.
#[test]
fn real_a_generated_spec_keeps_no_hook_from_applying_and_stays_after_an_undo() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    let generate = || Unit::by_hand(laid.top(), &["cdi", "generate"]).well();
    generate();
    for path in ["hooks/install", "hooks/update-status"] {
        assert_eq!(unit.run(laid.top(), path).status(), "active: Worker ready (GPU: 1x AMD)", "{path}");
    }
    assert!(laid.path(RULES).exists());
    unit.run(laid.top(), "actions/undo").well();
    assert!(!laid.path("etc/cdi/amd.json").exists() && !laid.path(RULES).exists());
    generate();
    for path in ["hooks/update-status", "hooks/config-changed"] {
        let told = unit.run(laid.top(), path).status();
        assert!(told.starts_with("blocked: Reverted by the action undo: "), "{path}: {told}");
        assert!(laid.path("etc/cdi/amd.json").exists(), "{path}");
    }
}

/// The charm's package would take the spec with it.
#[test]
fn real_a_generated_spec_of_a_charm_that_could_not_apply_keeps_the_package() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    laid.put(PACKAGE, "0.1.0-1\n");
    Unit::by_hand(laid.top(), &["cdi", "generate"]).well();
    unit.options(r#"{"gpu-device-ids":"7"}"#);
    unit.run(laid.top(), "hooks/install").well();
    unit.run(laid.top(), "hooks/remove").well();
    assert!(laid.path("etc/cdi/amd.json").exists() && !laid.path(PACKAGE).exists());
}

/// An undo that refuses to begin has undone nothing: later hooks try it again, and the charm's removal takes all away.
#[test]
fn real_an_undo_by_action_that_changed_nothing_is_tried_again_and_keeps_no_removal_from_undoing() {
    if !real::require_root(&["python3", "env", "unshare"]) {
        return;
    }
    for ends_by in ["hooks/update-status", "hooks/remove"] {
        let (laid, mut unit) = (worker(), Unit::new());
        let before = laid.tree();
        unit.run(laid.top(), "hooks/install").well();
        let set_up = laid.tree();
        unit.mount_over(&laid.path(RULES));
        for path in ["actions/undo", "hooks/update-status"] {
            let told = unit.run(laid.top(), path).status();
            assert!(
                told.starts_with(&format!("blocked: The action undo changed nothing: /{RULES}")),
                "{told}"
            );
            assert_eq!(laid.tree(), set_up, "{path}");
        }
        unit.unmount();
        unit.run(laid.top(), ends_by).well();
        assert!(!laid.path(RULES).exists(), "{ends_by}");
        unit.run(laid.top(), "hooks/remove").well();
        assert_eq!(laid.tree(), before, "{ends_by}");
    }
}
