//! What somebody has in files that rocworker has keys in, or wants to be where an unmanaged one is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::setup::laid::Laid;
use crate::setup::undo_conditions::{effects, with};

const DAEMON: &str = "etc/docker/daemon.json";

/// With a docker of this version.
fn with_docker(version: &str) -> Laid {
    let laid = Laid::demo("");
    tell(&laid, version);
    laid.put("usr/sbin/dockerd", "");
    fs::set_permissions(laid.path("usr/sbin/dockerd"), fs::Permissions::from_mode(0o755)).unwrap();
    laid.put(DAEMON, "{\"debug\": true}\n");
    laid
}

/// What dpkg says of docker; nothing of no version.
fn tell(laid: &Laid, version: &str) {
    let status = format!("Package: docker.io\nStatus: install ok installed\nVersion: {version}\n");
    laid.put("var/lib/dpkg/status", if version.is_empty() { "" } else { &status });
}

#[test]
fn undo_takes_our_runtime_out_of_daemon_json_with_what_somebody_added_to_it_and_says_so() {
    let laid = with_docker("28.5.2-1");
    laid.run(&["apply"]).success();
    let ours = laid.text(DAEMON);
    let path = "\"path\": \"/usr/lib/rocworker/runc-amd-wrapper\"";
    let theirs = ours.replace(path, &format!("{path}, \"runtimeArgs\": [\"--debug\"]"));
    assert_ne!(theirs, ours);
    laid.put(DAEMON, &theirs);
    assert_eq!(laid.json(&["apply"])["changes"], json!([]));
    laid.run(&["status"]).success();
    assert_eq!(laid.text(DAEMON), theirs, "their arguments stay while it is there");

    let undone = laid.json(&["undo"]);
    let changes = undone["changes"].as_array().unwrap();
    let daemon = changes.iter().find(|it| it["path"] == "/etc/docker/daemon.json").unwrap();
    assert_eq!(
        daemon["reason"],
        "rocworker's keys leave it; rocworker also removes what was added: runtimes.amd (with runtimeArgs)",
        "{undone:#}"
    );
    assert_eq!(laid.text(DAEMON), "{\"debug\": true}\n");
}

#[test]
fn a_byte_order_mark_in_daemon_json_is_in_nobodys_way() {
    for text in ["\u{feff}", "\u{feff}{\"debug\": true}\n"] {
        let laid = with_docker("28.5.2-1");
        laid.put(DAEMON, text);
        laid.run(&["apply"]).success();
        assert!(laid.text(DAEMON).contains("runc-amd-wrapper"));
        assert_eq!(laid.json(&["apply"])["changes"], json!([]));
        laid.run(&["undo"]).success();
        assert_eq!(laid.text(DAEMON), text);
    }
}

#[test]
fn cdi_stays_in_daemon_json_when_dockers_version_cannot_be_told_once() {
    let laid = with_docker("26.1.5-1");
    laid.run(&["apply"]).success();
    let ours = laid.text(DAEMON);
    assert!(ours.contains("\"cdi\": true"), "{ours}");
    tell(&laid, "");
    laid.run(&["apply"]);
    assert_eq!(laid.text(DAEMON), ours);
    tell(&laid, "26.1.5-1");
    assert_eq!(laid.json(&["apply"])["changes"], json!([]));
    laid.run(&["undo"]).success();
    assert_eq!(laid.text(DAEMON), "{\"debug\": true}\n");
}

#[test]
fn files_of_modules_that_somebody_wrote_are_not_touched() {
    const LOAD: &str = "etc/modules-load.d/amdgpu.conf";
    const BESIDE: &str = "etc/modules-load.d/rocworker-amdgpu.conf";
    for (theirs, is_beside) in [("vfio-pci\n", true), ("amdgpu\nvfio-pci\n", false)] {
        let laid = Laid::demo("module-options: {noretry: 0}\n");
        laid.put(LOAD, theirs);
        laid.put("etc/modprobe.d/amdgpu.conf", "options amdgpu ppfeaturemask=0xfff7ffff\n");
        let before = laid.tree();
        laid.run(&["apply"]).success();
        assert_eq!(laid.text(LOAD), theirs);
        assert_eq!(laid.text("etc/modprobe.d/amdgpu.conf"), "options amdgpu ppfeaturemask=0xfff7ffff\n");
        assert!(laid.text("etc/modprobe.d/rocworker-amdgpu.conf").ends_with("options amdgpu noretry=0\n"));
        assert_eq!(laid.path(BESIDE).exists(), is_beside, "{theirs:?}");
        assert_eq!(laid.json(&["apply"])["changes"], json!([]));
        laid.run(&["undo"]).success();
        assert_eq!(laid.tree(), before);
    }
}

#[test]
fn our_file_of_modules_is_known_again_whatever_a_template_makes_of_it() {
    let laid = Laid::demo("");
    laid.put("etc/rocworker/templates/modules/load.conf", "amdgpu\nsnd-hda-intel\n");
    laid.run(&["apply"]).success();
    let said = laid.text("etc/modules-load.d/amdgpu.conf");
    assert_eq!(said, "# Written by rocworker.\namdgpu\nsnd-hda-intel\n");
    assert_eq!(laid.json(&["apply"])["changes"], json!([]));
}

#[test]
fn a_unit_of_containerd_that_cannot_be_read_is_not_one_that_is_not_there() {
    const UNIT: &str = "usr/lib/systemd/system/containerd.service";
    const DROP_IN: &str = "etc/systemd/system/containerd.service.d/site.conf";
    for path in [UNIT, DROP_IN] {
        let laid = with("2.1.9", "28.5.2");
        laid.run(&["apply"]).success();
        let whole = laid.path(path).exists().then(|| laid.text(path));
        laid.put(path, "");
        fs::write(laid.path(path), b"[Service]\nExecStart=/opt/containerd \xff\n").unwrap();
        let applied = laid.tree();
        let (code, said) = laid.fails(&["apply"]);
        assert!(code == 1 && said.contains(&format!("{path} is not text: which files it reads")), "{said}");
        assert_eq!(laid.tree(), applied, "what was set stays");
        match whole {
            Some(text) => laid.put(path, &text),
            None => fs::remove_file(laid.path(path)).unwrap(),
        }
        laid.run(&["apply"]).success();
    }
    // One that is masked is known to start nothing.
    let laid = with("2.1.9", "28.5.2");
    fs::create_dir_all(laid.path("etc/systemd/system")).unwrap();
    symlink("/dev/null", laid.path("etc/systemd/system/containerd.service")).unwrap();
    let applied = laid.json(&["apply"]);
    assert!(effects(&applied, "containerd.service").is_empty(), "{applied:#}");
    assert!(laid.path("etc/containerd/conf.d/rocworker.toml").exists());
}

#[test]
fn that_a_file_has_other_names_is_told_before_it_is_parted_from_them() {
    let laid = Laid::demo("");
    laid.put("etc/cdi/amd.json", "{\"cdiVersion\":\"0.3.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}");
    fs::hard_link(laid.path("etc/cdi/amd.json"), laid.path("etc/amd.copy")).unwrap();
    let told = "/etc/cdi/amd.json: it has 1 more name by hard links, which will keep the old file";
    for command in ["plan", "apply"] {
        let (code, said) = laid.fails(&[command]);
        assert!(code == 0 && said.contains(told), "{command}: {said}");
    }
    assert!(!laid.fails(&["apply"]).1.contains("hard links"));
    assert!(laid.text("etc/amd.copy").contains("0.3.0"));
}

#[test]
fn that_an_edited_file_has_other_names_is_told_by_apply_and_by_undo() {
    for (file, copies) in
        [("etc/docker/daemon.json", 1), ("etc/docker/daemon.json", 2), ("etc/containerd/config.toml", 1)]
    {
        let laid = with("1.7.24", "28.5.2");
        laid.put("etc/containerd/config.toml", "version = 2\n");
        let copy = |laid: &Laid, when: &str| {
            for n in 0..copies {
                fs::hard_link(laid.path(file), laid.path(&format!("etc/{when}{n}"))).unwrap();
            }
        };
        let names = if copies == 1 { "name" } else { "names" };
        let told =
            format!("/{file}: it has {copies} more {names} by hard links, which will keep the old file");
        let before = laid.text(file);
        copy(&laid, "before");
        for command in [&["plan"][..], &["apply"]] {
            let (code, said) = laid.fails(command);
            assert!(code == 0 && said.contains(&told), "{command:?}: {said}");
        }
        assert_eq!(laid.text("etc/before0"), before);

        let applied = laid.text(file);
        assert_ne!(applied, before);
        copy(&laid, "applied");
        for command in [&["undo", "--dry-run"][..], &["undo"]] {
            let (code, said) = laid.fails(command);
            assert!(code == 0 && said.contains(&told), "{command:?}: {said}");
        }
        assert_eq!((laid.text(file), laid.text("etc/applied0")), (before, applied));
    }
}
