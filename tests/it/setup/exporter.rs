//! rocm-exporter.service: which machines get it, what it runs, and another's unit of that name.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;

use crate::setup::laid::{Laid, stands_where_it_can_run};

const UNIT: &str = "etc/systemd/system/rocm-exporter.service";
const LINK: &str = "etc/systemd/system/multi-user.target.wants/rocm-exporter.service";
const ABOUT: &str = "exporter";
const REPLACE: &str = "exporter: {existing: replace}\n";

/// As the source of this product has it.
const FOREIGN: &str = "[Unit]
Description=ROCm SMI Prometheus Exporter
[Service]
ExecStart=/usr/local/bin/rocm_smi_exporter --web.listen-address=:9401
[Install]
WantedBy=multi-user.target
";

fn notes(said: &Value) -> Vec<&str> {
    let notes = said["notes"].as_array().unwrap().iter();
    notes.filter(|note| note["about"] == ABOUT).map(|note| note["text"].as_str().unwrap()).collect()
}

fn exec_start(laid: &Laid) -> String {
    let text = laid.text(UNIT);
    text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().to_owned()
}

#[test]
fn there_is_a_unit_where_systemd_starts_the_machine_and_the_program_stays() {
    stands_where_it_can_run(UNIT, ABOUT);
}

#[test]
fn without_the_exporter_there_is_one_note_and_no_unit() {
    let laid = Laid::started(true, true, "");
    fs::remove_file(laid.path("usr/bin/rocworker-exporter")).unwrap();
    let applied = laid.json(&["apply"]);
    let bin = laid.path("usr/local/bin");
    let note = format!(
        "rocm-exporter.service is not written: rocworker-exporter is not installed: run `install -D -m 755 -t {} \
         rocworker-exporter`, then apply again; or set `exporter: {{unit: false}}`",
        bin.display()
    );
    assert_eq!(notes(&applied), [note]);
    assert!(!laid.path(UNIT).exists() && fs::symlink_metadata(laid.path(LINK)).is_err());
}

#[test]
fn the_unit_runs_the_exporter_as_it_is_configured_and_a_change_restarts_it_once() {
    let laid = Laid::started(true, true, "");
    laid.run(&["apply"]).success();
    assert_eq!(exec_start(&laid), "/usr/bin/rocworker-exporter --listen 127.0.0.1:9401");
    assert!(!laid.text(UNIT).contains("SupplementaryGroups"), "{}", laid.text(UNIT));
    for (config, arguments) in [
        ("{listen: 0.0.0.0:9500, pcie_bw: true}", "--listen 0.0.0.0:9500 --pcie-bw"),
        (
            "{listen: \"[::]:9401\", web-config: /etc/rocworker/web.yaml}",
            "--listen [::]:9401 --web-config /etc/rocworker/web.yaml",
        ),
    ] {
        laid.put("etc/rocworker/web.yaml", "basic_auth_users: {}\n");
        laid.put("etc/rocworker/config.yaml", &format!("exporter: {config}\n"));
        let applied = laid.json(&["apply"]);
        assert_eq!(exec_start(&laid), format!("/usr/bin/rocworker-exporter {arguments}"));
        let effects = applied["effects"].as_array().unwrap().iter();
        let starts: Vec<_> = effects.filter(|it| it["effect"] == "start").collect();
        assert_eq!(starts.len(), 1, "{applied:#}");
        assert_eq!(starts[0]["unit"], "rocm-exporter.service");
        assert_eq!(laid.json(&["apply"])["changes"], serde_json::json!([]));
    }
    laid.run(&["undo"]).success();
    assert!(!laid.path(UNIT).exists() && fs::symlink_metadata(laid.path(LINK)).is_err());
}

#[test]
fn a_web_config_is_read_as_its_group_and_one_that_only_root_reads_is_a_problem() {
    const CONFIG: &str = "exporter: {web-config: /etc/rocworker/web.yaml}\n";
    let laid = Laid::started(true, true, CONFIG);
    let missing = laid.json(&["plan"]);
    let said = notes(&missing).join("\n");
    assert!(said.starts_with("exporter.web-config: ") && said.contains("web.yaml"), "{said}");
    laid.put("etc/rocworker/web.yaml", "basic_auth_users: {}\n");
    let file = laid.path("etc/rocworker/web.yaml");
    let set = |gid: u32, mode: u32| {
        std::os::unix::fs::chown(&file, None, Some(gid)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(fs::metadata(&file).map(|it| std::os::unix::fs::MetadataExt::gid(&it)).unwrap(), 0o600);
    let planned = laid.json(&["plan"]);
    let said = notes(&planned).join("\n");
    assert!(said.contains("and the exporter is not root: give it and its key to a group"), "{said}");
    assert_eq!(planned["notes"].as_array().unwrap().iter().filter(|it| it["problem"] == true).count(), 1);
    assert!(said.contains("`groupadd --system --force rocm-exporter-tls`"), "{said}");
    // A unit that can start is not replaced by one that cannot.
    laid.put("etc/rocworker/config.yaml", "");
    laid.run(&["apply"]).success();
    let before = laid.text(UNIT);
    laid.put("etc/rocworker/config.yaml", CONFIG);
    let unreadable = laid.json(&["apply"]);
    assert_eq!((laid.text(UNIT), &unreadable["changes"]), (before.clone(), &serde_json::json!([])));
    let (code, said) = laid.fails(&["status"]);
    assert!(
        code == 3 && said.ends_with("all in sync, and the machine is not: what is named above keeps it so\n"),
        "{said}"
    );
    laid.put("etc/rocworker/web.yaml", "");
    set(fs::metadata(&file).map(|it| std::os::unix::fs::MetadataExt::gid(&it)).unwrap(), 0o644);
    let empty = laid.json(&["apply"]);
    assert!(notes(&empty).join("\n").contains("web.yaml is empty and protects nothing"), "{empty:#}");
    assert_eq!((laid.text(UNIT), &empty["changes"]), (before, &serde_json::json!([])));
    laid.put("etc/rocworker/web.yaml", "basic_auth_users: {}\n");
    if !nix_is_root() {
        return;
    }
    set(117, 0o640);
    laid.run(&["apply"]).success();
    assert!(laid.text(UNIT).contains("\nSupplementaryGroups=117\n"), "{}", laid.text(UNIT));
    set(0, 0o644);
    laid.run(&["apply"]).success();
    assert!(!laid.text(UNIT).contains("SupplementaryGroups"), "{}", laid.text(UNIT));
}

/// Only root gives a file to any group.
fn nix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}

#[test]
fn another_ones_unit_stays_until_it_is_to_be_replaced_and_undo_restores_it() {
    type Put = fn(&Laid);
    let cases: [(&str, Put, &str); 3] = [
        ("enabled", |laid| enabled(laid, UNIT), "runs /usr/local/bin/rocm_smi_exporter"),
        ("not enabled", |laid| laid.put(UNIT, FOREIGN), "runs /usr/local/bin/rocm_smi_exporter"),
        (
            "a package's",
            |laid| enabled(laid, "usr/lib/systemd/system/rocm-exporter.service"),
            "runs /usr/local",
        ),
    ];
    for (what, put, said) in cases {
        let laid = Laid::started(true, true, "");
        put(&laid);
        let before = laid.tree();
        for command in ["plan", "apply", "status"] {
            let answer = laid.json(&[command]);
            let notes = notes(&answer);
            assert_eq!(notes.len(), 1, "{what}: {answer:#}");
            assert!(
                notes[0].contains(said) && notes[0].contains("`exporter: {existing: replace}`"),
                "{notes:?}"
            );
        }
        laid.run(&["undo"]).success();
        assert_eq!(laid.tree(), before, "{what}: left");

        laid.put("etc/rocworker/config.yaml", REPLACE);
        let before = laid.tree();
        let planned = laid.json(&["plan"]);
        assert!(notes(&planned)[0].contains("and undo restores it"), "{what}: {planned:#}");
        laid.run(&["apply"]).success();
        assert_eq!(exec_start(&laid), "/usr/bin/rocworker-exporter --listen 127.0.0.1:9401", "{what}");
        assert_eq!(fs::read_link(laid.path(LINK)).unwrap().to_str().unwrap(), format!("/{UNIT}"), "{what}");
        let again = laid.json(&["apply"]);
        assert_eq!(
            (&again["changes"], notes(&again).len()),
            (&serde_json::json!([]), 0),
            "{what}: {again:#}"
        );
        // What was replaced stays so without the key: undo restores it.
        laid.put("etc/rocworker/config.yaml", "");
        assert_eq!(laid.json(&["apply"])["changes"], serde_json::json!([]), "{what}");
        laid.put("etc/rocworker/config.yaml", REPLACE);
        laid.run(&["undo"]).success();
        assert_eq!(laid.tree(), before, "{what}: restored");
    }
}

#[test]
fn a_link_in_the_units_place_is_neither_replaced_nor_followed() {
    for (target, what) in
        [("/dev/null", "is masked"), ("/opt/exporter/x.service", "runs /usr/local/bin/rocm_smi")]
    {
        let laid = Laid::started(true, true, "");
        laid.put("opt/exporter/x.service", FOREIGN);
        link(&laid, target, UNIT);
        for (config, code) in [("", 0), (REPLACE, 1)] {
            laid.put("etc/rocworker/config.yaml", config);
            let applied = laid.run(&["apply", "--output", "json"]).get_output().clone();
            assert_eq!(applied.status.code(), Some(code), "{target}: {applied:?}");
            let applied: Value = serde_json::from_slice(&applied.stdout).unwrap();
            let note = notes(&applied)[0];
            assert!(note.contains(what) && note.contains("systemctl unmask rocm-exporter.service"), "{note}");
            assert_eq!(fs::read_link(laid.path(UNIT)).unwrap().to_str(), Some(target));
            assert_eq!(laid.text("opt/exporter/x.service"), FOREIGN);
            assert!(fs::symlink_metadata(laid.path(LINK)).is_err());
        }
    }
}

#[test]
fn drop_ins_of_another_ones_unit_are_named_when_it_is_replaced() {
    let laid = Laid::started(true, true, REPLACE);
    laid.put(UNIT, FOREIGN);
    laid.put("etc/systemd/system/rocm-exporter.service.d/user.conf", "[Service]\nUser=prometheus\n");
    let planned = laid.json(&["plan"]);
    let note = notes(&planned)[0];
    assert!(note.ends_with("such as /etc/systemd/system/rocm-exporter.service.d/user.conf"), "{note}");
}

/// An upgrade, the daemon and status go by what is remembered.
#[test]
fn the_exporter_alone_leaves_what_a_machine_was_set_up_by() {
    const MEMORY: &str = "var/lib/rocworker/memory.json";
    let laid = Laid::started(true, true, "# later\n");
    laid.put("srv/c.yaml", "exporter: {unit: false}\n");
    let config = laid.path("srv/c.yaml");
    let config = config.to_str().unwrap();
    laid.run(&["--config", config, "apply"]).success();
    let (tree, memory) = (laid.tree(), laid.text(MEMORY));
    assert!(memory.contains(config), "{memory}");
    laid.run(&["apply", "--only", "exporter"]).success();
    assert!(laid.path(UNIT).exists());
    assert_eq!(laid.text(MEMORY), memory);
    assert_eq!(laid.json(&["apply", "--only", "exporter"])["changes"], serde_json::json!([]));
    laid.run(&["undo", "--only", "exporter"]).success();
    assert_eq!((laid.tree(), laid.text(MEMORY)), (tree, memory));
}

#[test]
fn undo_of_the_exporter_alone_says_whose_unit_stays_where_rocworker_has_none() {
    for (is_foreign, expected) in [
        (false, "rocworker manages no rocm-exporter.service here: nothing to undo\n"),
        (
            true,
            "rocworker manages no rocm-exporter.service here: nothing to undo; /usr/lib/systemd/system/rocm-exporter.service \
             is not rocworker's and runs /usr/local/bin/rocm_smi_exporter: it stays\n",
        ),
    ] {
        let laid = Laid::started(true, true, "");
        if is_foreign {
            enabled(&laid, "usr/lib/systemd/system/rocm-exporter.service");
        }
        laid.run(&["apply"]).success();
        if !is_foreign {
            laid.run(&["undo", "--only", "exporter"]).success();
        }
        let undone = laid.run(&["undo", "--only", "exporter"]).success();
        let said = String::from_utf8_lossy(&undone.get_output().stdout).replace("\n    ", " ");
        assert_eq!(said, expected);
    }
}

fn enabled(laid: &Laid, unit: &str) {
    laid.put(unit, FOREIGN);
    link(laid, &format!("/{unit}"), LINK);
}

fn link(laid: &Laid, target: &str, path: &str) {
    let path = laid.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}
