//! Which machines get the unit, and what stands in it.

use std::fs;

use crate::daemon::running::applied;
use crate::setup::laid::{Laid, stands_where_it_can_run};

const UNIT: &str = "etc/systemd/system/rocworker.service";

#[test]
fn there_is_a_unit_where_systemd_starts_the_machine_and_the_program_stays() {
    stands_where_it_can_run(UNIT, "daemon");
}

#[test]
fn it_may_write_where_the_configuration_has_its_files_and_begins_anew_with_no_gpu_that_goes() {
    let laid = Laid::started(true, true, "cdi: {path: /srv/cdi/amd.json}\n");
    laid.run(&["apply"]).success();
    let text = laid.text(UNIT);
    assert!(text.contains("\nReadWritePaths=-/srv/cdi\n"), "{text}");
    let recorded = laid.text("capture.json");
    laid.put("capture.json", &recorded.replace("/dev/dri/renderD", "/dev/dri/renderX"));
    let planned = laid.json(&["plan"]);
    let changes = planned["changes"].as_array().unwrap();
    assert!(changes.iter().any(|it| it["path"] == "/srv/cdi/amd.json"), "{planned:#}");
    assert!(!changes.iter().any(|it| it["path"] == format!("/{UNIT}")), "{planned:#}");
}

#[test]
fn a_unit_that_its_owner_has_disabled_is_an_applys_to_enable_again() {
    let laid = Laid::started(true, true, "");
    let running = applied(&laid);
    let links = ["rocworker.service", "rocworker-boot.service"]
        .map(|unit| format!("etc/systemd/system/multi-user.target.wants/{unit}"));
    for link in &links {
        fs::remove_file(laid.path(link)).unwrap();
    }
    let said = running.until("it says so", |daemon| daemon["differs"][1].is_object());
    assert!(said["differs"].as_array().unwrap().iter().all(|it| it["why"] == "apply"), "{said:#}");
    let said = running.look();
    assert_eq!((&said["counts"]["changes"], &said["contested"]), (&0.into(), &serde_json::json!([])));
    assert!(links.iter().all(|link| fs::symlink_metadata(laid.path(link)).is_err()));
    laid.run(&["apply"]).success();
    assert!(links.iter().all(|link| fs::symlink_metadata(laid.path(link)).is_ok()));
}

#[test]
fn a_template_that_runs_something_else_is_refused() {
    let laid = Laid::started(true, true, "");
    laid.put("etc/rocworker/templates/systemd/rocworker.service", "[Service]\nExecStart=/bin/true serve\n");
    let (code, said) = laid.fails(&["plan"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("gives a unit that does not run `/usr/bin/rocworker serve`; mend the template"),
        "{said}"
    );
}

#[test]
fn times_that_make_no_sense_are_refused_with_their_line() {
    for (config, problem) in [
        (
            "tag: a\ndaemon:\n  interval-s: 5\n",
            "config.yaml:3: daemon.interval-s is 5; it takes 10 to 86400 seconds",
        ),
        ("daemon:\n  settle-s: 4000\n", "config.yaml:2: daemon.settle-s is 4000; it takes 0 to 3600 seconds"),
        ("daemon:\n  restart: often\n", "config.yaml:2: "),
    ] {
        let (code, said) = Laid::started(false, false, config).fails(&["plan"]);
        assert!(code == 2 && said.contains(problem), "{config}: {said}");
    }
}
