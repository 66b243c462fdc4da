//! The scripts as machines get them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use support::real;

use crate::remote::asker::{Asker, has_the_tree, is_as_before, tree};

const COMMON: &str = include_str!("../../../crates/fleet/src/remote/common.sh");
const REVERT: &str = include_str!("../../../crates/fleet/src/remote/revert.sh");
const INSTALL: &str = include_str!("../../../crates/fleet/src/remote/install.sh");
const UNINSTALL: &str = include_str!("../../../crates/fleet/src/remote/uninstall.sh");

fn install(options: &str, size: usize, sha256: &str) -> String {
    let call = format!(
        "options='{options}' size={size} sha256='{sha256}'\npayload() {{\ncat /root/rocworker.deb\n}}\ninstall\n"
    );
    [COMMON, REVERT, INSTALL, &call].concat()
}

fn program() -> String {
    let variables = "which=same version='rocworker 1' digest=x machine=x86_64 colour='' host=gpu1\n";
    [variables, include_str!("../../../crates/fleet/src/program.sh"), "main detect\n"].concat()
}

fn uninstall() -> String {
    [COMMON, REVERT, UNINSTALL, "uninstall\n"].concat()
}

#[test]
fn real_shellcheck_finds_nothing_in_the_assembled_scripts() {
    if !real::require(&["shellcheck"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in [
        ("install", install("--listen 0.0.0.0:9401", 1, "")),
        ("uninstall", uninstall()),
        ("program", program()),
        ("look", [COMMON, include_str!("../../../crates/fleet/src/remote/look.sh")].concat()),
        ("check", [COMMON, include_str!("../../../crates/fleet/src/remote/check.sh")].concat()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, script).unwrap();
        let output = Command::new(real::program("shellcheck").unwrap())
            .args(["--shell=sh", "--enable=all", "--severity=style"])
            // As of the other scripts (tests/it/doctor/deploy_script.rs). A script uses a part of what all begin with, and
            // only uninstall passes an option on.
            .arg("--exclude=SC2250,SC2310,SC2311,SC2312,SC2034,SC2317,SC2119,SC2120")
            .arg(path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

/// Of each the shell is killed before the first command that begins so; bash tells of each command, and dash does not.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_run_that_is_killed_at_any_step_is_finished_by_the_next() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.put("etc/rocworker/config.yaml", "# ours\n");
    gpu1.put("etc/rocworker/templates/README", "mine\n");
    gpu1.put("etc/systemd/system/rocm-exporter.service", "[Service]\nExecStart=/usr/bin/sleep infinity\n");
    gpu1.shell("systemctl daemon-reload; systemctl start rocm-exporter").well();
    let deb = asker.put_package(&gpu1, asker.package());
    let sum = gpu1.shell(&format!("sha256sum {deb} | cut -c 1-64")).well();
    let size = std::fs::metadata(asker.package()).unwrap().len().try_into().unwrap();
    let whole = install("--listen 0.0.0.0:9401 --unless-set --replace", size, sum.trim());
    gpu1.put("root/install", &whole);
    gpu1.put("root/uninstall", &uninstall());
    let before = tree(&gpu1);
    let kill = |script: &str, step: &str| {
        let step_of = step.replace(' ', "\\ ");
        let trap =
            format!("set -T; trap 'case $BASH_COMMAND in {step_of}*) kill -9 $$ ;; esac' DEBUG; . {script}");
        let said = gpu1.run(&["bash", "-c", &trap]);
        assert_eq!(said.status.signal(), Some(9), "{step}: {said:?}");
    };
    let well = |script: &str| assert!(gpu1.run(&["sh", script]).status.success());
    for step in ["sync -f /var/lib", "*program*exporter configure", "verify"] {
        kill("/root/install", step);
        well("/root/uninstall");
        is_as_before(&gpu1, &before);
    }
    for (step, next) in [
        ("mv*config.new", "/root/uninstall"),
        ("*dpkg*--force", "/root/uninstall"),
        ("revert_folders", "/root/install"),
        ("mv*.new*2", "/root/uninstall"),
    ] {
        well("/root/install");
        kill("/root/uninstall", step);
        // What dpkg leaves that is killed in a purge.
        if step.ends_with("--force") {
            gpu1.shell("dpkg --remove rocworker; rm /etc/rocworker/config.yaml").well();
        }
        well(next);
        well("/root/uninstall");
        is_as_before(&gpu1, &before);
    }
    assert_eq!(gpu1.shell("systemctl is-active rocm-exporter").well(), "active\n");
    has_the_tree(&gpu1, &before);
}
