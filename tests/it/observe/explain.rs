//! `explain TEXT` and `explain -`: what a line means on this machine, from captured machines and hostile logs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use layout::{Gpu, Machine, Module, Nodes, XcpNames};
use serde_json::{Value, json};
use support::captures;
use support::detect::{assert_fields, scratch};

const ROCWORKER: &str = env!("CARGO_BIN_EXE_rocworker");

const TIMEOUT: &str = "amdgpu: ring gfx_0.0.0 timeout, signaled seq=11, emitted seq=13";

/// What a port says of the link below it (drivers/pci/pcie/dpc.c), and any driver's device of its own (aer.c).
const CONTAINED: &str = "DPC: containment event, status:0x1f01 source:0x0000";
const FATAL: &str = "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, (Receiver ID)";

fn laid(machine: &Machine) -> tempfile::TempDir {
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    root
}

fn explain(root: &Path, arguments: &[&str], log: &[u8]) -> Output {
    let mut command = Command::new(ROCWORKER);
    command.arg("--root").arg(root).args(arguments).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(log));
        child.wait_with_output().unwrap()
    })
}

fn said(root: &Path, output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.replace(&format!("--root {} ", root.display()), "")
}

fn text(machine: &Machine, log: &str) -> String {
    let root = laid(machine);
    said(root.path(), &explain(root.path(), &["explain", "-"], log.as_bytes()))
}

fn json(machine: &Machine, log: &str) -> Value {
    let root = laid(machine);
    let answer = said(root.path(), &explain(root.path(), &["-o", "json", "explain", "-"], log.as_bytes()));
    serde_json::from_str(&answer).unwrap()
}

/// Of the captured topology: eight cards, 63 partitions, one hive of 15188982192727901047.
#[test]
fn a_gpu_of_a_hive_takes_its_whole_hive_down() {
    let machine = captures::mi300x(XcpNames::Dot);
    let log = format!("amdgpu 0000:a7:00.0: {TIMEOUT}\n");
    let answer = json(&machine, &log);
    let found = &answer["matches"][0];
    assert_fields(
        found,
        &json!({
            "line": 1, "gpu": "0000:a7:00.0", "address": "0000:a7:00.0", "class": "hang", "drain": true,
            "indexes": [40, 41, 42, 43, 44, 45, 46, 47], "hive": format!("{:016x}", 15_188_982_192_727_901_047_u64),
            "resets": true,
        }),
    );
    let taken = found["takes_down"].as_array().unwrap();
    let indexes: Vec<u64> = taken.iter().map(|it| it["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..63).collect::<Vec<_>>());
    let cards = taken.chunk_by(|a, b| a["gpu"] == b["gpu"]).count();
    assert_eq!(cards, 8);
    assert_eq!(taken[62], json!({ "gpu": "0000:e5:00.0", "index": 62 }));
    let text = text(&machine, &log);
    assert!(
        text.contains("GPU:                0000:a7:00.0, 8 partitions, indexes 40-47, XGMI hive "),
        "{text}"
    );
    assert!(text.contains("A reset takes down: all 8 cards of the XGMI hive, indexes 0-62: 0000:"), "{text}");
}

#[test]
fn a_card_without_a_hive_goes_down_alone_and_its_programs_are_named() {
    let machine = Machine::new()
        .module(Module::new("amdgpu"))
        .gpu(Gpu::amd("0000:03:00.0", 0x73bf).card(0).render(128))
        .gpu(Gpu::amd("0000:83:00.0", 0x73bf).card(1).render(129))
        .put("/proc/sys/kernel/hostname", "worker-7\n")
        .put("/var/lib/kubelet/config.yaml", "")
        .put("/etc/systemd/system/concourse-worker.service", "[Service]\nExecStart=/bin/concourse worker\n");
    let log = format!("amdgpu 0000:83:00.0: {TIMEOUT}");
    let commands = |machine: &Machine, purpose: &str| {
        let answer = json(machine, &log);
        let all = answer["matches"][0]["commands"].as_array().unwrap().clone();
        let of = all.into_iter().filter(|it| it["for"] == purpose);
        of.map(|it| it["run"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let found = json(&machine, &log)["matches"][0].clone();
    assert_fields(
        &found,
        &json!({ "indexes": [1], "hive": null, "takes_down": [{ "gpu": "0000:83:00.0", "index": 1 }] }),
    );
    assert_eq!(
        commands(&machine, "drain"),
        ["fly -t TARGET land-worker --worker worker-7", "kubectl drain worker-7 --ignore-daemonsets"]
    );
    assert!(commands(&machine, "look").iter().all(|run| !run.contains('{')));
    assert!(commands(&machine, "reset").is_empty());
    let text = text(&machine, &log);
    assert!(text.contains("Neither amd-smi nor rocm-smi is installed there"), "{text}");
    assert!(text.contains("A reset takes down: this GPU alone, index 1\n"), "{text}");
    let with_old = machine.put("/opt/rocm/bin/rocm-smi", "");
    assert_eq!(commands(&with_old, "reset"), ["rocm-smi --showbus", "rocm-smi --gpureset -d N"]);
    let with_both = with_old.put("/usr/bin/amd-smi", "");
    assert_eq!(commands(&with_both, "reset"), ["amd-smi reset --gpureset --gpu 0000:83:00.0"]);
}

/// The captures stand behind a port at 0000:00:01.1.
#[test]
fn a_port_is_explained_as_the_gpu_beneath_it_and_a_strange_address_as_itself() {
    let machine = captures::phoenix();
    let aer = |address: &str| {
        format!("pcieport {address}: AER: Corrected error received: {address}\namdgpu {address}: {TIMEOUT}")
    };
    let found = json(&machine, &format!("pcieport 0000:00:01.1: {CONTAINED}"))["matches"][0].clone();
    assert_fields(
        &found,
        &json!({
            "gpu": "0000:64:00.0", "address": "0000:00:01.1", "indexes": [0],
        }),
    );
    assert_eq!(found["notes"][0], "0000:00:01.1 is a port above GPU 0000:64:00.0.");
    let strange = json(&machine, &aer("0000:07:00.0"));
    let found = strange["matches"].as_array().unwrap().last().unwrap().clone();
    assert_fields(
        &found,
        &json!({ "gpu": "0000:07:00.0", "indexes": null, "hive": null, "takes_down": [], "line": 2 }),
    );
    assert!(found["notes"][0].as_str().unwrap().starts_with("This machine has no GPU 0000:07:00.0"));
    let other = json(&captures::phoenix_beside_rtx4080(), &format!("nvidia 0000:09:00.0: {FATAL}"));
    assert_eq!(other["matches"][0]["gpu"], Value::Null);
}

/// The RTX 4080 of the capture, and a hotplug port with nothing below.
#[test]
fn a_device_that_is_no_amd_gpu_is_not_drained() {
    let machine =
        captures::phoenix_beside_rtx4080().put("/sys/bus/pci/devices/0000:00:02.4/class", "0x060400\n");
    for (address, log) in [
        ("0000:09:00.0", format!("pcieport 0000:09:00.0: {FATAL}")),
        ("0000:00:02.4", "pcieport 0000:00:02.4: pciehp: Slot(3): Link Down".to_owned()),
    ] {
        let note = format!("{address} is no AMD GPU of this machine, and none is below it now.");
        assert_fields(
            &json(&machine, &log)["matches"][0],
            &json!({
                "address": address, "gpu": null, "indexes": null, "takes_down": [], "drain": false,
                "resets": false, "now": [], "later": [], "commands": [], "notes": [note],
            }),
        );
        let said = text(&machine, &log);
        assert!(said.contains("  GPU:                none\n"), "{said}");
        assert!(said.contains("  Drain this GPU:     no\n") && said.contains(&note), "{said}");
        assert!(!said.contains("To ") && !said.contains("reset takes down"), "{said}");
    }
}

/// Nothing schedules containers on it.
#[test]
fn without_a_scheduler_a_note_says_how_a_gpu_is_drained() {
    let log = format!("amdgpu 0000:64:00.0: {TIMEOUT}");
    let said = text(&captures::phoenix(), &log);
    assert!(said.contains("Stop the containers that use this GPU; wrapper.quarantine: true"), "{said}");
    assert!(!said.contains("lease list"), "{said}");
}

#[test]
fn a_message_that_no_reset_follows_takes_nothing_down() {
    let said = text(&captures::phoenix(), "amdgpu 0000:64:00.0: amdgpu: Poison is created\n");
    assert!(!said.contains("A reset takes down"), "{said}");
}

#[test]
fn beneath_root_a_note_says_where_commands_run() {
    let root = laid(&captures::phoenix());
    let log = format!("amdgpu 0000:64:00.0: {TIMEOUT}");
    let output = explain(root.path(), &["-o", "json", "explain", "-"], log.as_bytes());
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = &answer["matches"][0];
    let runs = found["commands"].as_array().unwrap();
    assert!(runs.iter().any(|command| command["run"] == "rocworker health"), "{found:#}");
    let note = "With --root, run the commands on that machine.";
    assert_eq!(*found["notes"].as_array().unwrap().last().unwrap(), note);
}

#[test]
fn several_entries_have_a_line_for_each_gpu_above_them() {
    let log = format!(
        "amdgpu 0000:64:00.0: amdgpu: Poison is created\namdgpu 0000:64:00.0: {TIMEOUT}\n\
         amdgpu 0000:64:00.0: {TIMEOUT}\namdgpu 0000:07:00.0: amdgpu: Poison is created\n"
    );
    let said = text(&captures::phoenix(), &log);
    let expected = "GPU           INDEX  SEVERITY  LINES  WORST           DRAIN\n\
                    0000:64:00.0  0      critical      3  ring-timeout    yes\n\
                    0000:07:00.0  -      warning       1  poison-created  no\n\n";
    assert!(said.starts_with(expected), "{said}");
    assert!(!text(&captures::phoenix(), TIMEOUT).contains("WORST"), "one entry");
}

/// As ROCr prints them (core/runtime/runtime.cpp), as HIP prints the name of a status, and as PyTorch prints HIP's text.
#[test]
fn what_rocm_reports_is_not_the_kernels_and_is_explained_as_its_code() {
    let root = laid(&captures::phoenix());
    for (said_by_it, code) in [
        (
            "Memory access fault by GPU node-1 (Agent handle: 0x55ac14d27600) on address 0x7f9587e00000. Reason: Page \
             not present or supervisor privilege.",
            "hsa:43",
        ),
        ("HW Exception by GPU node-1 (Agent handle: 0x1b0fc990) reason :GPU Hang", "2"),
        ("HW Exception by GPU node-1 (Agent handle: 0x1b0fc990) reason :ECC", "7"),
        ("Queue aborting with error : HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: an instruction", "hsa:42"),
        ("RuntimeError: HIP error: unspecified launch failure", "hip:719"),
        ("torch: HIP error: out of memory", "hip:2"),
    ] {
        let meaning = said(root.path(), &explain(root.path(), &["explain", code], b""));
        assert!(meaning.contains("Recommended Actions"), "{meaning}");
        let expected = format!("ROCm reports this, not the kernel. It means {code}.\n\n{meaning}");
        assert_eq!(said(root.path(), &explain(root.path(), &["explain", said_by_it], b"")), expected);
        let piped = explain(root.path(), &["explain", "-"], said_by_it.as_bytes());
        assert_eq!(said(root.path(), &piped), expected);
    }
}

/// A program says at the end why it stops, and the kernel says it in the same log.
#[test]
fn explain_lists_the_kernels_messages_and_then_the_rocm_codes_at_the_end_of_a_log() {
    let root = laid(&captures::phoenix());
    let noise = "Traceback: step 7\n".repeat(2_000);
    let log = format!(
        "{noise}amdgpu 0000:64:00.0: {TIMEOUT}\nHIP error 719\nRuntimeError: No HIP GPUs are available\n"
    );
    let text = said(root.path(), &explain(root.path(), &["explain", "-"], log.as_bytes()));
    for part in ["ring-timeout", "1 line with a known message", "It means hip:719.", "It means hip:100."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let early = format!("HIP error 719\n{noise}");
    let text = said(root.path(), &explain(root.path(), &["explain", "-"], early.as_bytes()));
    assert_eq!(text, "Nothing known was found in 2001 lines: the meaning is unknown.\n");
}

/// People paste a part of a line.
#[test]
fn a_text_in_which_nothing_is_known_names_what_has_its_words() {
    let root = laid(&captures::phoenix());
    let asked = |text: &str| said(root.path(), &explain(root.path(), &["explain", text], b""));
    let rest = "If this is a part of a line, give the whole line. rocworker explain --list has every name.\n";
    for (text, near) in [
        ("amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout", "Near it: rocworker explain ring-timeout\n"),
        ("usb 1-1: new device", ""),
    ] {
        let expected = format!("Nothing known was found in 1 line: the meaning is unknown.\n{rest}{near}");
        assert_eq!(asked(text), expected);
        if let Some(code) = near.trim().strip_prefix("Near it: rocworker explain ") {
            assert!(asked(code).contains("Recommended Actions") || asked(code).contains(code), "{code}");
        }
    }
}

#[test]
fn a_port_above_several_gpus_names_them_all_and_chooses_none() {
    let gpu = |address, minor: u32| {
        Gpu::amd(address, 0x73bf).behind("0000:40:01.1").card(minor).render(128 + minor)
    };
    let machine = Machine::new().gpu(gpu("0000:43:00.0", 0)).gpu(gpu("0000:44:00.0", 1));
    let found = json(&machine, &format!("pcieport 0000:40:01.1: {CONTAINED}"))["matches"][0].clone();
    assert_fields(
        &found,
        &json!({
            "gpu": "0000:40:01.1", "indexes": null, "takes_down": [],
        }),
    );
    assert_eq!(found["notes"][0], "0000:40:01.1 is a port above 2 GPUs: 0000:43:00.0, 0000:44:00.0.");
}

#[test]
fn a_line_without_an_address_names_no_gpu() {
    let found = json(&captures::phoenix(), TIMEOUT)["matches"][0].clone();
    assert_fields(
        &found,
        &json!({ "gpu": null, "address": null, "indexes": null, "hive": null, "takes_down": [] }),
    );
    let commands = found["commands"].to_string();
    assert!(!commands.contains('{') || !commands.contains("{pci}"), "{commands}");
    let said = text(&captures::phoenix(), TIMEOUT);
    assert!(said.contains("the line names none; if it is this machine's: 0000:64:00.0, index 0\n"), "{said}");
    assert!(said.contains("A reset takes down: this GPU alone, index 0\n"), "{said}");
    assert!(
        said.contains("What is said of GPU 0000:64:00.0 holds if the line is this machine's.\n"),
        "{said}"
    );
    assert!(
        said.contains("cat /sys/bus/pci/devices/0000:64:00.0") || said.contains("--grep 0000:64:00.0"),
        "{said}"
    );
    let other = text(&captures::phoenix(), "amdgpu: unknown parameter 'si_support' ignored");
    assert!(other.contains("GPU:                the line names none\n"), "the module's: {other}");
    let said = text(&captures::mi300x(XcpNames::Dot), TIMEOUT);
    assert!(said.contains("GPU:                the line names none\n"), "{said}");
}

#[test]
fn what_is_not_known_is_said_to_be_unknown() {
    let machine = captures::phoenix();
    assert_eq!(text(&machine, "a\nb\n"), "Nothing known was found in 2 lines: the meaning is unknown.\n");
    let answer = json(&machine, "a\nb\n");
    assert_eq!(
        answer,
        json!({
            "schema_version": 1, "matches": [], "error": null,
            "totals": { "lines": 2, "bytes": 4, "cut": 0, "damaged": 0 },
        })
    );
    let root = laid(&machine);
    let log = root.path().join("a log.txt");
    fs::write(&log, TIMEOUT).unwrap();
    let output = explain(root.path(), &["explain", log.to_str().unwrap()], b"");
    let hint = format!("to read it, run rocworker explain - < '{}'.\n", log.display());
    assert!(said(root.path(), &output).ends_with(&hint), "{}", said(root.path(), &output));
}

/// What stands in front may be a program's: its words prove nothing, and whoever brought an honest log learns how to
/// have it read.
#[test]
fn words_of_a_message_behind_an_unknown_front_are_told_and_are_no_match() {
    let machine = captures::phoenix();
    let log = format!(
        "a\n    MESSAGE=amdgpu 0000:64:00.0: {TIMEOUT}\n{{\"msg\":\"amdgpu 0000:64:00.0: {TIMEOUT}\"}}\n"
    );
    let sentence = "2 lines have words of a known message behind something that rocworker does not strip, the first in \
                    line 2: pass the log as `dmesg` or `journalctl -k -o short-iso` prints it.\n";
    let expected = format!("Nothing known was found in 3 lines: the meaning is unknown.\n{sentence}");
    assert_eq!(text(&machine, &log), expected);
    let root = laid(&machine);
    let output = explain(root.path(), &["-o", "json", "explain", "-"], log.as_bytes());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.ends_with(sentence), "{stderr}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["matches"], &answer["totals"]["lines"]), (&json!([]), &json!(3)));
}

/// A boot's first lines often have none, and a program of Windows saves them too.
#[test]
fn colours_are_left_out_wherever_they_begin() {
    let machine = captures::phoenix();
    let coloured = format!("\x1b[32m[   12.5] \x1b[0m\x1b[33mamdgpu 0000:64:00.0: \x1b[0m{TIMEOUT}\n");
    let late = "x\n".repeat(100_000) + &coloured;
    let windows: Vec<u8> = format!("\u{feff}{coloured}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let root = laid(&machine);
    for log in [coloured.as_bytes(), late.as_bytes(), &windows] {
        let said = said(root.path(), &explain(root.path(), &["explain", "-"], log));
        assert!(
            said.contains("Evidence:           [   12.5] amdgpu 0000:64:00.0: amdgpu: ring gfx"),
            "{said}"
        );
    }
}

/// As `dmesg | grep amdgpu` gives it: a name with a line end in it has a line of its own, and may come first.
#[test]
fn the_rest_of_a_record_that_comes_first_is_no_message() {
    let log = format!(
        "               amdgpu 0000:64:00.0: {TIMEOUT}'\n[   13.0] amdgpu 0000:64:00.0: amdgpu: Poison is created\n"
    );
    let answer = json(&captures::phoenix(), &log);
    assert_eq!(answer["matches"].as_array().unwrap().len(), 1, "{answer:#}");
    assert_eq!(answer["matches"][0]["line"], 2);
}

/// Equal messages of one GPU are one explanation, the worst first.
#[test]
fn equal_messages_are_explained_once_and_counted() {
    let pci = |bus: u32| format!("0000:{bus:02x}:00.0");
    let mut log = format!("amdgpu {}: amdgpu: Poison is created\n", pci(3));
    for line in 0..10 {
        log += &format!("amdgpu {}: {TIMEOUT}\n", pci(1 + line % 2));
    }
    let said = text(&captures::phoenix(), &log);
    let headings: Vec<&str> =
        said.lines().filter(|line| !line.starts_with(' ') && line.contains(" (")).collect();
    let expected = ["critical  ring-timeout (hang)"; 2]
        .into_iter()
        .chain(["warning  poison-created (memory-correctable)"]);
    assert_eq!(headings, expected.collect::<Vec<_>>(), "{said}");
    assert!(said.contains("Seen:               5 times, first on line 2; last on line 10\n"), "{said}");
    // More GPUs than any machine has are counted, not kept.
    let many: String =
        (0..512_u32).map(|n| format!("amdgpu {:04x}:{:02x}:00.0: {TIMEOUT}\n", n / 256, n % 256)).collect();
    let said = text(&captures::phoenix(), &many);
    assert_eq!(said.matches("critical  ring-timeout (hang)").count(), 256, "{said}");
    assert!(said.contains("\n256 lines more: of messages and GPUs only the first 256 are shown"), "{said}");
    assert!(said.ends_with("512 lines with a known message, of 512 lines read.\n"));
}

#[test]
fn a_hostile_log_neither_steers_the_terminal_nor_breaks_the_answer() {
    let mut log = b"amdgpu 0000:64:00.0: amdgpu: ring \x1b[2Jgfx timeout, signaled seq=1, emitted seq=2 \x1b]0;owned\x07\xff\0\r\n".to_vec();
    log.extend(vec![b'x'; 1 << 20]);
    log.push(b'\n');
    log.extend((0..=255_u8).cycle().take(1 << 20));
    log.extend(format!("\namdgpu 0000:64:00.0: {TIMEOUT}").bytes());
    let root = laid(&captures::phoenix());
    let shown = said(root.path(), &explain(root.path(), &["explain", "-"], &log));
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    assert!(shown.contains("1 line too long"), "{shown}");
    let answer = said(root.path(), &explain(root.path(), &["-o", "json", "explain", "-"], &log));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let matches = answer["matches"].as_array().unwrap();
    assert_eq!(matches.len(), 2);
    assert_eq!(matches[0]["values"]["ring"], "gfx");
    assert_eq!(matches[1]["line"], answer["totals"]["lines"]);
}

#[test]
fn what_cannot_be_read_ends_with_a_sentence_and_a_reader_that_leaves_ends_it_quietly() {
    let root = laid(&captures::phoenix());
    let folder = fs::File::open(root.path()).unwrap();
    let output = Command::new(ROCWORKER).args(["explain", "-"]).stdin(folder).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr, "rocworker: cannot read stdin after 0 bytes: Is a directory (os error 21)\n");
    let closed = Command::new("sh").args(["-c", "exec \"$0\" explain - <&-", ROCWORKER]).output().unwrap();
    assert!(closed.status.success(), "{}", String::from_utf8_lossy(&closed.stderr));

    let mut command = Command::new(ROCWORKER);
    command.args(["-o", "json", "explain", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let writer = std::thread::spawn(move || {
        let line = format!("amdgpu 0000:64:00.0: {TIMEOUT}\n").repeat(1000);
        while stdin.write_all(line.as_bytes()).is_ok() {}
    });
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_log_that_is_packed_is_refused_with_the_command_that_makes_text_of_it() {
    let root = laid(&captures::phoenix());
    for (start, format, command) in [
        (&b"\x1f\x8b\x08\0"[..], "gzip", "zcat FILE"),
        (b"\xfd7zXZ\0\0\x04", "xz", "xzcat FILE"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd", "zstdcat FILE"),
        (b"BZh91AY&SY\x01", "bzip2", "bzcat FILE"),
        (b"LPKSHHRH\0\0", "a file of journald's", "journalctl --file=FILE -k --output=short-iso"),
    ] {
        let log = [start, b" more\n".repeat(1000).as_slice()].concat();
        for options in [&["explain", "-"][..], &["-o", "json", "explain", "-"]] {
            let output = explain(root.path(), options, &log);
            let stderr = String::from_utf8(output.stderr).unwrap();
            let stderr = stderr.replace(&format!("--root {} ", root.path().display()), "");
            let expected =
                format!("rocworker: stdin is {format}, not text: run {command} | rocworker explain -\n");
            assert_eq!((output.status.code(), stderr), (Some(1), expected));
            assert!(output.stdout.is_empty());
        }
    }
    let text = explain(root.path(), &["explain", "-"], b"BZh and LPKSHHRH\n");
    assert!(said(root.path(), &text).starts_with("Nothing known was found in 1 line"));
}

/// The most memory that the program had, with all read and the end still to come.
fn peak_kib(arguments: &[&str], line: &str, bytes: usize) -> u64 {
    let root = laid(&captures::mi300x(XcpNames::Dot));
    let mut command = Command::new(ROCWORKER);
    command.arg("--root").arg(root.path()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let block = line.repeat((1 << 20) / line.len() + 1);
    for _ in 0..bytes / block.len() {
        stdin.write_all(block.as_bytes()).unwrap();
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "cargo xtask test --all"]
fn a_log_of_any_length_is_explained_in_constant_memory() {
    let matching = format!("amdgpu 0000:a7:00.0: {TIMEOUT}\n");
    let other = "systemd[1]: Started a service that has nothing to do with any GPU at all.\n";
    // A build for tests is slow: kept matches would be ten times as long as their lines. The bench has a gigabyte.
    let (few, many) = (8 << 20, 128 << 20);
    for (arguments, line, bytes) in [
        (&["explain", "-"][..], &*matching, few),
        (&["-o", "json", "explain", "-"], &matching, few),
        (&["-o", "json", "explain", "-"], other, many),
    ] {
        let peak = peak_kib(arguments, line, bytes);
        assert!(peak < 64 << 10, "{arguments:?}: {peak} KiB");
    }
}

/// The captured kernel logs, on the captured machine with the partitions: none of their GPUs is of it.
#[test]
fn captured_logs_are_explained_line_by_line() {
    let archive = captures::unpack("kernel-log-samples");
    let root = laid(&captures::mi300x(XcpNames::Dot));
    for (name, entry) in archive.iter() {
        let layout::Entry::File(log) = entry else { continue };
        let name = name.replace('.', "_");
        let shown = said(root.path(), &explain(root.path(), &["explain", "-"], log));
        insta::assert_snapshot!(format!("text_of_{name}"), shown);
        let shown = said(root.path(), &explain(root.path(), &["-o", "json", "explain", "-"], log));
        insta::assert_snapshot!(format!("json_of_{name}"), shown);
    }
}
