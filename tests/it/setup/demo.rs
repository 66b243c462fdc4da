//! The demo, as a stranger runs it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use layout::{Machine, Nodes};
use support::real;

const DEMO: &str = env!("CARGO_BIN_EXE_rocworker");

#[track_caller]
fn told(output: &std::process::Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{}: {stderr}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn demo(temporary: &Path, arguments: &[&str]) -> String {
    told(&Command::new(DEMO).arg("demo").args(arguments).env("TMPDIR", temporary).output().unwrap())
}

#[test]
fn the_demo_tells_the_whole_story_in_few_lines_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let text = demo(temporary.path(), &[]);
    let mut rest = text.as_str();
    for part in [
        "9 of 9 AMD GPUs usable",
        "not there: no engine and no wrapper finds a GPU",
        "more lines",
        " changes: rocworker apply makes them",
        "7 changes made",
        "Already in sync; no changes.",
        "amd.com/gpu=0000:c1:00.0",
        "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=9,gfx942,gfx1100",
        "crw-rw----  /dev/dri/renderD131   226:131",
        "\"additionalGids\":[44,992]",
        "\"path\":\"/dev/dri/renderD131\"",
        "differs  /etc/udev/rules.d/70-amdgpu.rules",
        "repaired /etc/udev/rules.d/70-amdgpu.rules",
        "7 changes reverted.",
        "7 changes made",
        "✗ 0: The kernel could not reset the GPU",
        "ring comp_1.0.0 timeout",
        "daemon.json: back to what it was before",
        "7 changes reverted",
        "WHEN",
        "What next",
        "rocworker demo --keep",
    ] {
        rest = rest
            .split_once(part)
            .map(|(_, rest)| rest)
            .ok_or_else(|| format!("no {part:?} in {rest}"))
            .unwrap();
    }
    assert!(text.lines().count() < 120, "{} lines:\n{text}", text.lines().count());
    assert!(!text.contains('\u{1b}'), "a pipe gets no colours");
    assert!(
        !text.lines().any(|line| line.starts_with("  ·")),
        "skipped checks are counted, not listed: {text}"
    );
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_kept_machine_answers_each_command_that_the_demo_names_and_is_that_of_the_captures() {
    let temporary = tempfile::tempdir().unwrap();
    let text = demo(temporary.path(), &["--keep"]);
    let kept = fs::read_dir(temporary.path()).unwrap().next().unwrap().unwrap().path();
    let begin = format!("  rocworker --root {} ", kept.display());
    let named: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&begin)).collect();
    assert_eq!(named, ["health", "explain --journal", "plan", "apply", "serve &", "top", "metrics"]);

    let laid = tempfile::tempdir().unwrap();
    Machine::demo_under_load().lay_out(laid.path(), Nodes::Recorded).unwrap();
    for (command, code, parts) in [
        ("top --once", 0, ["100%", "ollama.service"]),
        ("health", 3, ["unhealthy", "GPU reset(1) failed"]),
        ("explain --journal", 0, ["ring-timeout", "page-fault"]),
        ("metrics", 0, ["rocm_gpu_temperature{", "rocm_process_vram_bytes{"]),
        ("plan", 0, ["changes: rocworker apply makes them", "docker"]),
    ] {
        let said = |root: &Path| {
            let output =
                Command::new(DEMO).arg("--root").arg(root).args(command.split(' ')).output().unwrap();
            assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let text = said(&kept);
        assert!(parts.iter().all(|part| text.contains(part)), "{command}: {text}");
        if matches!(command, "top --once" | "explain --journal") {
            assert_eq!(said(laid.path()), text, "{command}");
        }
    }
}

#[test]
fn on_a_terminal_the_demo_pauses_and_an_interrupt_ends_it_and_removes_its_folder_or_names_it() {
    for (arguments, left) in [("demo", 0), ("demo --keep", 1)] {
        interrupted(arguments, left);
    }
}

fn interrupted(arguments: &str, left: usize) {
    let temporary = tempfile::tempdir().unwrap();
    // script(1) gives it a terminal. A shell that waited for it would end by the interrupt, too.
    let mut script = Command::new("script")
        .args([
            "--quiet",
            "--return",
            "--flush",
            "--command",
            &format!("exec {DEMO} {arguments}"),
            "/dev/null",
        ])
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(script.stdout.take().unwrap()).lines().map_while(Result::ok);
    let first: Vec<String> = lines.by_ref().take_while(|line| !line.contains("AMD GPUs usable")).collect();
    assert!(first.iter().any(|line| line.contains("$ rocworker detect")), "{first:?}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 1);
    script.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let rest: Vec<String> = lines.collect();
    assert_eq!(script.wait().unwrap().code(), Some(1), "{rest:?}");
    assert!(!rest.iter().any(|line| line.contains("rocworker history")), "it paused: {rest:?}");
    let folders: Vec<_> = fs::read_dir(temporary.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(folders.len(), left, "{folders:?}");
    for folder in folders {
        assert!(rest.concat().contains(&format!("stays in {}", folder.display())), "{rest:?}");
    }
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
