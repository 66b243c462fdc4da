//! Lines around the driver, as users pasted them, in the encodings in which they do.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::cases;
use support::detect::scratch;

fn explained(root: &Path, arguments: &[&str], log: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(root).args(arguments).args(["explain", "-"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut stdin, log));
        child.wait_with_output().unwrap()
    })
}

/// Line, id and device of each match.
fn matches(log: &[u8]) -> Vec<String> {
    let output = explained(scratch().path(), &["-o", "json"], log);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let of = |it: &Value| format!("{} {} {}", it["line"], text(&it["id"]), text(&it["address"]));
    answer["matches"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn each_line_that_users_reported_is_known() {
    for (case, expected) in [
        (
            "bar-lines",
            &["1 bar-no-space 0000:83:00.0", "2 bar-no-space 0000:83:00.0", "3 bar-no-space 0000:83:00.0"][..],
        ),
        ("powerplay-lines", &["1 over-temperature -", "2 smu-message-failed -", "3 smu-message-failed -"]),
        (
            "module-lines",
            &[
                "1 module-mismatch -",
                "2 module-rejected -",
                "3 iommu-device-timeout 0000:0b:00.0",
                "4 iommu-timeout -",
            ],
        ),
    ] {
        assert_eq!(matches(&cases::lines(case)), expected, "{case}");
    }
}

/// As PowerShell's `>` and Notepad save it, with a byte order mark.
#[test]
fn a_log_in_an_encoding_of_windows_is_read() {
    let log = "[    4.1] amdgpu 0000:83:00.0: amdgpu: GPU reset begin!\r\n[    4.2] é\r\n\
               [    4.3] amdgpu 0000:83:00.0: amdgpu: Fatal error during GPU init\r\n";
    let marked = format!("\u{feff}{log}");
    let units = |of: fn(u16) -> [u8; 2]| marked.encode_utf16().flat_map(of).collect::<Vec<u8>>();
    for bytes in [units(u16::to_le_bytes), units(u16::to_be_bytes), marked.clone().into_bytes()] {
        assert_eq!(matches(&bytes), ["1 gpu-reset-begin 0000:83:00.0", "3 init-failed 0000:83:00.0"]);
    }
    let shown = explained(scratch().path(), &[], &units(u16::to_le_bytes));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("2 lines with a known message, of 3 lines read."), "{shown}");
    assert!(shown.contains(" [    4.1] amdgpu 0000:83:00.0: amdgpu: GPU reset begin!\n"), "{shown}");
}
