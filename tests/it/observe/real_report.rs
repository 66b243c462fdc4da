//! `report` where only a real machine tells: on /, for an ordinary user, on a full disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::GzDecoder;
use layout::{Machine, Nodes};
use serde_json::Value;
use support::detect::{detect_beneath, scratch};
use support::real;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");
const NOBODY: u32 = 65534;

fn unpack(archive: &Path, into: &Path) -> PathBuf {
    tar::Archive::new(GzDecoder::new(fs::File::open(archive).unwrap())).unpack(into).unwrap();
    fs::read_dir(into).unwrap().next().unwrap().unwrap().path()
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn real_report_of_this_machine_is_this_machine() {
    if !real::require(&[]) {
        return;
    }
    let (out, into) = (scratch(), scratch());
    let file = out.path().join("r.tar.gz");
    succeeded(&Command::new(PROGRAM).args(["report", "--file"]).arg(&file).output().unwrap());
    let top = unpack(&file, into.path());
    let there = detect_beneath(Path::new(PROGRAM), &top);
    let here = detect_beneath(Path::new(PROGRAM), Path::new("/"));
    assert_eq!(format!("{there:#}").replace(top.to_str().unwrap(), ""), format!("{here:#}"));
    let versions: Value = serde_json::from_slice(&fs::read(top.join("versions.json")).unwrap()).unwrap();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(versions["kernel"], release.trim());
    let runc = &versions["programs"]["runc"];
    assert_eq!(runc.is_string(), real::program("runc").is_some(), "{versions:#}");
}

/// As nobody: a KFD node that may not be read cannot be read in the archive either.
#[test]
fn real_report_serves_an_ordinary_user_with_what_that_user_may_read() {
    if !real::require_root(&[]) {
        return;
    }
    let (root, out, into) = (scratch(), scratch(), scratch());
    Machine::instinct(2, 1)
        .put("/usr/bin/containerd", "")
        .put("/etc/containerd/config.toml", "version = 3\n")
        .lay_out(root.path(), Nodes::Recorded)
        .unwrap();
    for private in ["sys/class/kfd/kfd/topology/nodes/3/properties", "etc/containerd/config.toml"] {
        fs::set_permissions(root.path().join(private), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let program = out.path().join("rocworker");
    fs::copy(PROGRAM, &program).unwrap();
    for folder in [root.path(), out.path(), into.path()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    chown(out.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let as_nobody = |root: &Path, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--root").arg(root).args(["--output", "json"]).args(arguments);
        let output = command.current_dir(out.path()).uid(NOBODY).gid(NOBODY).output().unwrap();
        succeeded(&output);
        String::from_utf8(output.stdout).unwrap().replace(root.to_str().unwrap(), "")
    };
    let before = as_nobody(root.path(), &["detect"]);
    assert!(before.contains("whether KFD knows it cannot be seen: KFD node 3: "), "{before}");
    let answer = as_nobody(root.path(), &["report", "--file", "r.tar.gz"]);
    assert!(answer.contains("config.toml") && answer.contains("Permission denied"), "{answer}");
    let top = unpack(&out.path().join("r.tar.gz"), into.path());
    assert_eq!(as_nobody(&top, &["detect"]), before);
    assert_eq!(fs::metadata(top.join("etc/containerd/config.toml")).unwrap().len(), 0);
}

#[test]
fn real_report_on_a_full_disk_leaves_nothing_half_written() {
    if !real::require_root(&["unshare", "mount", "sh"]) {
        return;
    }
    let (root, full) = (scratch(), scratch());
    Machine::instinct(8, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    // A file system of four pages, in a mount namespace that ends with the command.
    let script = r#"mount -t tmpfs -o size=16k none "$1" && "$2" --root "$3" report --file "$1/r.tar.gz"
        echo "exit $?"; ls -A "$1""#;
    let mut unshare = Command::new(real::program("unshare").unwrap());
    unshare.args(["--mount", "sh", "-c", script, "sh"]).arg(full.path()).arg(PROGRAM).arg(root.path());
    let output = unshare.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot write") && stderr.contains("No space left"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "exit 1\n", "{stderr}");
}
