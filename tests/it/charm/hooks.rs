//! Hooks and actions beneath a Root: what they tell Juju, and what they leave on the machine.

use std::fs;

use serde_json::json;
use support::captures;
use support::real;

use crate::charm::machines::{out, worker};
use crate::charm::record::golden;
use crate::charm::unit::Unit;

const CONFIG: &str = "etc/rocworker/config.yaml";
const READY: &str = "active: Worker ready (GPU: 1x AMD)";

#[test]
fn real_a_unit_from_install_to_remove_leaves_the_machine_as_it_was() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    let before = laid.tree();
    let hook = |path: &str| unit.run(laid.top(), path);
    unit.options(
        r#"{"mode":"auto","compute-runtime":"auto","gpu-device-ids":"all","tag":"linux","restart":"drain"}"#,
    );
    assert_eq!(hook("hooks/install").status(), READY);
    assert!(laid.path("etc/cdi/amd.json").exists());
    assert!(laid.text("etc/rocworker/concourse.env").contains("CONCOURSE_TAG=linux,gpu,"));

    // Nothing effective: nothing is written, and nothing but the status is told.
    let times = laid.times();
    for path in ["hooks/start", "hooks/config-changed", "hooks/update-status", "hooks/install"] {
        assert_eq!(hook(path).status(), READY, "{path}");
    }
    insta::assert_snapshot!("config-changed-nothing", golden(&hook("hooks/config-changed").well()));
    for path in ["hooks/stop", "hooks/host-relation-joined", "hooks/leader-elected"] {
        assert_eq!(hook(path).well(), [], "{path}");
    }
    assert_eq!(laid.times(), times, "a hook with nothing to do has written something");

    unit.options(r#"{"compute-runtime":"none","gpu-device-ids":"all"}"#);
    assert_eq!(
        hook("hooks/config-changed").status(),
        "active: Worker ready; the configuration leaves AMD's GPUs alone (compute-runtime: none)"
    );
    assert!(!laid.path("etc/cdi/amd.json").exists());
    unit.options(r#"{"compute-runtime":"rocm","gpu-device-ids":"0"}"#);
    assert_eq!(hook("hooks/config-changed").status(), READY);
    assert!(laid.path("etc/cdi/amd.json").exists());
    unit.options(r#"{"mode":"web"}"#);
    assert_eq!(hook("hooks/upgrade-charm").status(), "active: Web node: no GPU is set up here");
    assert!(!laid.path("etc/cdi/amd.json").exists());
    unit.options("{}");
    assert_eq!(hook("hooks/config-changed").status(), READY);

    for _ in 0..2 {
        hook("hooks/remove").well();
        assert_eq!(laid.tree(), before);
        assert!(!laid.path("var/lib/rocworker/charm.json").exists());
    }
}

#[test]
fn real_options_that_cannot_be_followed_are_the_units_status_and_change_nothing() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.run(laid.top(), "hooks/install").well();
    let tree = laid.tree();
    for (options, status) in [
        (
            r#"{"restart":"soon"}"#,
            "blocked: Config failed: restart is \"soon\"; it takes never, drain or now",
        ),
        (
            r#"{"gpu-device-ids":"7"}"#,
            "blocked: Config failed: gpu-device-ids names \"7\", and this machine's AMD GPUs are 0 (0000:64:00.0)",
        ),
        (
            r#"{"gpu-device-ids":"0000:09:00.0"}"#,
            "blocked: Config failed: gpu-device-ids names 0000:09:00.0, which is no AMD GPU but nvidia: it is left alone",
        ),
        (
            "{\"repository\":\"https://x/\\n\\\"\"}",
            "blocked: Config failed: repository: repositories.key \"https://x/\\n\\\"/rocm/rocm.gpg.key\" is no URL that begins with http:// or https:// or file://",
        ),
        (
            r#"{"tag":"a\nb","restart":"now"}"#,
            r#"blocked: Config failed: tag: the tag "a\nb" has a blank, a quote, a backslash or a $, which no tag can have"#,
        ),
    ] {
        unit.options(options);
        let ran = unit.run(laid.top(), "hooks/config-changed");
        let logged = ran.calls.iter().any(|call| {
            call.name() == "juju-log" && call.words().get(2).is_some_and(|level| level == "ERROR")
        });
        assert!(logged, "{options}");
        assert_eq!(ran.status(), status);
        assert_eq!(laid.tree().without(&[CONFIG]), tree.clone().without(&[CONFIG]), "{options}");
    }
    unit.options("{}");
    assert_eq!(unit.run(laid.top(), "hooks/update-status").status(), READY);
}

#[test]
fn real_a_worker_without_tags_is_blocked_until_the_option_says_whether_it_gets_some() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    const ASKED: &str = "blocked: Config failed: concourse-tags: set true or false, for this worker has no tags. true: it \
                         takes only steps with tags from then on. false: it goes on taking every step, and a step \
                         needs no tag to get GPUs";
    const ENVIRONMENT: &str = "etc/rocworker/concourse.env";
    let (laid, unit) = (worker(), Unit::new());
    let own = laid.text("var/lib/concourse-worker/worker-config.env");
    laid.put("var/lib/concourse-worker/worker-config.env", &own.replace("CONCOURSE_TAG=linux\n", ""));
    let before = laid.tree();
    for hook in ["hooks/install", "hooks/config-changed", "hooks/update-status"] {
        assert_eq!(unit.run(laid.top(), hook).status(), ASKED, "{hook}");
        assert!(!laid.path("etc/cdi/amd.json").exists(), "{hook}");
    }
    for (answer, has_tags) in [("false", false), ("true", true)] {
        unit.options(&format!("{{\"concourse-tags\":{answer}}}"));
        assert_eq!(unit.run(laid.top(), "hooks/config-changed").status(), READY);
        assert_eq!(laid.text(ENVIRONMENT).contains("CONCOURSE_TAG=gpu,"), has_tags, "{answer}");
    }
    // A worker that an earlier version of the charm tagged is asked nothing.
    unit.options("{}");
    assert_eq!(unit.run(laid.top(), "hooks/upgrade-charm").status(), READY);
    assert!(laid.text(ENVIRONMENT).contains("CONCOURSE_TAG=gpu,"));
    unit.run(laid.top(), "hooks/remove").well();
    assert_eq!(laid.tree(), before);
}

/// Taken for no options at all, `null` would offer the GPUs that `compute-runtime: none` withholds.
#[test]
fn real_a_hook_to_which_config_get_answers_null_fails_and_changes_nothing() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.options(r#"{"compute-runtime":"none"}"#);
    unit.run(laid.top(), "hooks/install").well();
    let tree = laid.tree();
    unit.options("null");
    for hook in ["hooks/config-changed", "hooks/update-status", "hooks/remove"] {
        let ran = unit.run(laid.top(), hook);
        let error = ran.said.badly();
        assert!(error.contains("config-get answers what is not its JSON: it is null"), "{error}");
        assert_eq!(laid.tree(), tree, "{hook}");
    }
    // An action without parameters is one without wishes.
    unit.options("{}");
    unit.parameters("null");
    unit.run(laid.top(), "actions/undo").well();
}

#[test]
fn real_a_configuration_by_hand_is_left_and_said() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    laid.put(CONFIG, "permissions: open\n");
    let status = unit.run(laid.top(), "hooks/install").status();
    assert!(
        status.starts_with("blocked: Config failed: ")
            && status.ends_with(
                "/etc/rocworker/config.yaml was written by hand and is left as it is: move it away, and the charm writes its \
                 own of its options"
            ),
        "{status}"
    );
    assert_eq!(laid.text(CONFIG), "permissions: open\n");
    assert!(!laid.path("etc/cdi/amd.json").exists());
    fs::rename(laid.path(CONFIG), laid.path("etc/mine.yaml")).unwrap();
    assert_eq!(unit.run(laid.top(), "hooks/update-status").status(), READY);
}

#[test]
fn real_without_a_usable_gpu_the_status_says_the_one_thing_to_do() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let none = out(&layout::Machine::new());
    none.put("sys/bus/pci/devices/.keep", "");
    let without_driver = out(&captures::phoenix());
    without_driver.put("dev/.keep", "");
    fs::remove_file(without_driver.path("capture.json")).ok();
    let lxd = out(&captures::phoenix());
    let several = out(&layout::Machine::demo());
    for lxd in [&lxd, &several] {
        lxd.put("dev/lxd/sock", "");
        lxd.put("run/systemd/container", "lxc\n");
        lxd.put("proc/sys/kernel/hostname", "juju-3f2a81-0\n");
        fs::remove_file(lxd.path("capture.json")).ok();
    }
    let machines = [("none", none), ("no-nodes", without_driver), ("lxd", lxd), ("lxd-several", several)];
    for (name, laid) in machines {
        let status = Unit::new().run(laid.top(), "hooks/install").status();
        insta::assert_snapshot!(format!("blocked-{name}"), status.replace(laid.top().to_str().unwrap(), ""));
    }
}

#[test]
fn real_a_units_role_is_its_option_else_what_of_concourse_is_there() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    const WEB: &str = "active: Web node: no GPU is set up here";
    let server = "etc/systemd/system/concourse-server.service";
    for (units, mode, status) in [
        (&[][..], "auto", READY),
        (
            &[],
            "worker",
            "waiting: Waiting for concourse-worker.service, which mode=worker says comes (GPU: 1x AMD)",
        ),
        (&[], "web", WEB),
        (&[server], "auto", WEB),
    ] {
        let (laid, unit) = (out(&captures::phoenix_beside_rtx4080()), Unit::new());
        for path in units {
            laid.put(path, "[Service]\nExecStart=/var/lib/concourse/bin/concourse web\n");
        }
        unit.options(&json!({ "mode": mode }).to_string());
        assert_eq!(unit.run(laid.top(), "hooks/install").status(), status, "{units:?} {mode}");
        assert_eq!(laid.path("etc/cdi/amd.json").exists(), status != WEB);
    }
}

#[test]
fn real_two_units_on_a_machine_take_back_with_the_last() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let laid = worker();
    let before = laid.tree();
    let (first, second) = (Unit::named("rocworker/0"), Unit::named("rocworker/1"));
    for (unit, agent) in [(&first, "unit-rocworker-0"), (&second, "unit-rocworker-1")] {
        fs::create_dir_all(laid.path("var/lib/juju/agents").join(agent)).unwrap();
        assert_eq!(unit.run(laid.top(), "hooks/install").status(), READY);
    }
    let told = golden(&first.run(laid.top(), "hooks/remove").well());
    assert_eq!(
        told,
        "juju-log --log-level INFO \"what is set up here stays: rocworker/1 is on this machine too\"\n"
    );
    assert!(laid.path("etc/cdi/amd.json").exists());
    // One that went without its hook does not count.
    first.run(laid.top(), "hooks/install").well();
    fs::remove_dir(laid.path("var/lib/juju/agents/unit-rocworker-0")).unwrap();
    second.run(laid.top(), "hooks/remove").well();
    fs::remove_dir_all(laid.path("var/lib/juju")).unwrap();
    assert_eq!(laid.tree(), before);
}

#[test]
fn real_another_charms_hook_is_told_the_status_and_sets_its_own() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::named("concourse-ci/0"));
    // As that charm has them.
    unit.options(
        r#"{"mode":"auto","compute-runtime":"rocm","gpu-device-ids":"all","tag":"","web-port":8080,"tls-enabled":false}"#,
    );
    let ran = unit.run_with(laid.top(), "hooks/start", &["install", "--guest"]);
    let told: Vec<_> = ran.calls.iter().map(|call| call.name().to_owned()).collect();
    assert_eq!(ran.said.well(), format!("{READY}\n"));
    assert!(!told.iter().any(|name| name == "status-set" || name == "application-version-set"), "{told:?}");
}

#[test]
fn real_without_hook_tools_it_is_said_which_one_is_missing() {
    if !real::require(&["env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    fs::remove_file(unit.folder().join("tools/config-get")).unwrap();
    let ran = unit.run(laid.top(), "hooks/install");
    let said = ran.said.badly();
    assert!(
        said.contains("config-get is not installed: it is in no folder of PATH; hook tools are there inside"),
        "{said}"
    );
    assert!(ran.calls.iter().all(|call| call.name() == "juju-log"), "the log says it too: {:?}", ran.calls);
}

#[test]
fn real_an_undo_by_action_holds_until_the_action_apply() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    let run = |path: &str| unit.run(laid.top(), path);
    run("hooks/install").well();
    unit.parameters(r#"{"force":false}"#);
    let reverted = "blocked: Reverted by the action undo: juju run rocworker/0 apply sets it up again";
    assert_eq!(run("actions/undo").status(), reverted);
    for path in ["hooks/update-status", "hooks/config-changed", "hooks/start", "hooks/upgrade-charm"] {
        assert_eq!(run(path).status(), reverted, "{path}");
        assert!(!laid.path("etc/cdi/amd.json").exists(), "{path}");
    }
    assert_eq!(run("actions/apply").status(), READY);
    assert!(laid.path("etc/cdi/amd.json").exists());
}

#[test]
fn real_an_actions_error_fails_the_action_alone() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let (laid, unit) = (worker(), Unit::new());
    unit.run(laid.top(), "hooks/install").well();
    laid.put(CONFIG, "restart: [\n");
    let told = golden(&unit.run(laid.top(), "actions/plan").well());
    assert!(told.starts_with("action-fail \"") && told.contains("config.yaml:"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    // What is managed is reported all the same.
    let told = golden(&unit.run(laid.top(), "actions/status").well());
    assert!(told.starts_with("action-set ") && told.contains("as-it-should-be=false"), "{told}");
    assert!(told.contains("problem=") && told.contains("config.yaml:") && !told.contains("ours=0"), "{told}");
    unit.parameters(r#"{"force":"maybe"}"#);
    let told = golden(&unit.run(laid.top(), "actions/undo").well());
    assert!(told.contains("action-fail") && laid.path("etc/cdi/amd.json").exists(), "{told}");
}
