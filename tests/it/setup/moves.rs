//! A managed file whose path in the configuration changes, where the new one cannot be written.

use std::fs;

use crate::setup::laid::Laid;

const OLD: [&str; 3] = ["etc/cdi/amd.json", "etc/docker/daemon.json", "etc/containerd/config.toml"];

fn moved(to: [&str; 3]) -> String {
    let [cdi, docker, containerd] = to;
    format!("cdi: {{path: {cdi}}}\ndocker: {{config: {docker}}}\ncontainerd: {{config: {containerd}}}\n")
}

/// Two applies by a configuration whose paths cannot be written: each keeps the old files, and says so
/// of the first `said_of`.
#[track_caller]
fn stay(laid: &Laid, to: [&str; 3], said_of: usize) {
    let applied = OLD.map(|path| laid.text(path));
    laid.put("etc/rocworker/config.yaml", &moved(to));
    for _ in 0..2 {
        let (code, said) = laid.fails(&["apply"]);
        assert_eq!(code, 1, "{said}");
        assert_eq!(OLD.map(|path| laid.text(path)), applied, "{said}");
        for new in &to[..said_of] {
            assert!(said.contains(&format!("kept: its replacement {new} could not be written")), "{said}");
        }
    }
}

#[test]
fn the_old_file_stays_until_the_new_one_can_be_written() {
    let laid = Laid::with_engines("");
    fs::create_dir(laid.path("opt")).unwrap();
    let before = laid.tree();
    laid.run(&["apply"]).success();
    // A file where a folder is needed: a plan sees that, and engines are left alone for it.
    laid.put("opt/new", "in the way\n");
    stay(&laid, ["/opt/new/amd.json", "/opt/new/daemon.json", "/opt/new/config.toml"], 1);
    fs::remove_file(laid.path("opt/new")).unwrap();
    laid.run(&["apply"]).success();
    assert!(!laid.path(OLD[0]).exists() && laid.path("opt/new/amd.json").exists());
    assert_eq!([OLD[1], OLD[2]].map(|path| laid.text(path)), ["{}\n", "version = 3\n"]);
    assert!(laid.text("opt/new/daemon.json").contains("amd") && laid.path("opt/new/config.toml").exists());
    let all = laid.all();
    laid.run(&["apply"]).success();
    assert_eq!(laid.all(), all, "a second apply writes nothing");
    laid.run(&["undo"]).success();
    laid.put("etc/rocworker/config.yaml", "");
    assert_eq!(laid.tree(), before);
}

#[test]
fn the_old_file_stays_where_the_write_of_the_new_one_fails() {
    let laid = Laid::with_engines("");
    laid.run(&["apply"]).success();
    // Names so long that no temporary file can be beside them: only the write shows that.
    let [cdi, docker, containerd] =
        ["json", "daemon.json", "toml"].map(|end| format!("/opt/{}.{end}", "n".repeat(240)));
    laid.put(docker.trim_start_matches('/'), "{}\n");
    stay(&laid, [&cdi, &docker, &containerd], 3);
    laid.put("etc/rocworker/config.yaml", "");
    laid.run(&["apply"]).success();
    laid.run(&["undo"]).success();
}

#[test]
fn the_old_spec_stays_where_the_new_path_is_refused() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let spec = laid.text(OLD[0]);
    laid.put("opt/settings.json", "{\"important\": true}");
    laid.put("etc/rocworker/config.yaml", "cdi: {path: /opt/settings.json}\n");
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 1 && said.contains("no CDI spec of amd.com/gpu"), "{said}");
    assert_eq!(laid.text(OLD[0]), spec, "{said}");
    laid.run(&["undo"]).success();
    assert!(!laid.path(OLD[0]).exists());
}
