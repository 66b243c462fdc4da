use std::fs;
use std::process::Command;

use support::real;

#[test]
fn real_shellcheck_finds_nothing_in_the_script_as_machines_get_it() {
    if !real::require(&["shellcheck"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    let variables = "which=same root='' version='rocworker 1' machine=x86_64 colour='' host=gpu1\n";
    let script = include_str!("../../../crates/fleet/src/program.sh");
    fs::write(&path, [variables, script, "main detect\n"].concat()).unwrap();
    let output = Command::new(real::program("shellcheck").unwrap())
        .args(["--shell=sh", "--enable=all", "--severity=style"])
        // As of the other scripts (tests/it/doctor/deploy_script.rs).
        .arg("--exclude=SC2250,SC2310,SC2311,SC2312")
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
