//! The demo, as a stranger runs it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use support::real;

const DEMO: &str = env!("CARGO_BIN_EXE_rocworker");

#[track_caller]
fn told(output: &std::process::Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{}: {stderr}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_demo_tells_the_whole_story_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let text = told(&Command::new(DEMO).arg("demo").env("TMPDIR", temporary.path()).output().unwrap());
    let mut rest = text.as_str();
    for part in [
        "9 of 9 AMD GPUs usable",
        "not there: no engine and no wrapper finds a GPU",
        "+imports = [\"/etc/containerd/conf.d/rocworker*.toml\"]",
        " changes: rocworker apply makes them",
        "Already in sync; no changes.",
        "amd.com/gpu=0000:c1:00.0",
        "valid, true of this machine, its names in no other spec",
        "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=9,gfx942,gfx1100",
        "crw-rw----  /dev/dri/renderD131   226:131",
        "\"additionalGids\":[44,992]",
        "\"path\":\"/dev/dri/renderD131\"",
        "A second pass changes nothing.",
        "differs  /etc/udev/rules.d/70-amdgpu.rules",
        "70-amdgpu.rules: who may open AMD's compute nodes",
        "nothing is set up",
        "7 changes reverted.",
        "daemon.json: back to what it was before",
        "7 changes reverted",
    ] {
        rest = rest
            .split_once(part)
            .map(|(_, rest)| rest)
            .ok_or_else(|| format!("no {part:?} in {rest}"))
            .unwrap();
    }
    assert!(!text.contains('\u{1b}'), "a pipe gets no colours");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn real_the_demo_runs_without_any_rights() {
    if !real::require_root(&[]) {
        return;
    }
    // The build folder may be closed to others; /tmp is not.
    let folder = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let program = folder.path().join("rocworker");
    fs::copy(DEMO, &program).unwrap();
    told(
        &Command::new(program)
            .arg("demo")
            .uid(65534)
            .gid(65534)
            .env_clear()
            .current_dir("/")
            .output()
            .unwrap(),
    );
}
