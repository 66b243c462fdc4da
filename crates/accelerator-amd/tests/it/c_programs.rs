//! The C programs of crates/accelerator-amd/tests/c, on a stub that keeps the ABI's rules and on stubs that each break one.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// Compiles C, such as a file of crates/accelerator-amd/tests/c, to `place`, with warnings as errors.
pub(crate) fn compile(file: &str, place: &Path, options: &[&str]) {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(package.join("include"))
        .arg("-I")
        .arg(package.join("tests/c"))
        .arg(package.join("tests/c").join(file))
        .args(options)
        .arg("-o")
        .arg(place)
        .arg("-lm")
        .output()
        .unwrap();
    assert!(output.status.success(), "{file} {options:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A program of crates/accelerator-amd/tests/c, and stubs to run it on.
struct Program {
    folder: TempDir,
    abi: &'static [&'static str],
}

impl Program {
    fn new(file: &str, abi: &'static [&'static str]) -> Self {
        let folder = TempDir::new().unwrap();
        compile(file, &folder.path().join("program"), abi);
        Self { folder, abi }
    }

    /// Runs the program on a stub that breaks `rule`; `NOTHING` is one that keeps them all.
    fn on(&self, rule: &str, arguments: &[&str]) -> Output {
        let stub = self.folder.path().join(format!("{rule}.so"));
        let broken = format!("-DBROKEN={rule}");
        compile("stub.c", &stub, &[&["-shared", "-fPIC", &broken], self.abi].concat());
        Command::new(self.folder.path().join("program")).arg(stub).args(arguments).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const TODAY: &[&str] = &[];
const SOURCE: &[&str] = &["-DV1"];

#[test]
fn test_accelerator_passes_a_provider_that_keeps_the_rules() {
    let output = Program::new("test_accelerator.c", TODAY).on("NOTHING", &[]);
    let said = text(&output.stdout);
    assert!(output.status.success() && said.ends_with(" passed, 0 skipped, 0 failed\n"), "{said}");
    assert!(
        said.lines().rev().skip(1).all(|line| line.starts_with("ok ") && !line.contains("SKIP")),
        "{said}"
    );
}

#[test]
fn test_accelerator_names_the_check_that_a_broken_rule_fails() {
    let program = Program::new("test_accelerator.c", TODAY);
    for (rule, failed) in [
        ("COUNT", "devices_in_a_too_small_buffer: GetAllDevices gives 2 devices for a maximum of 1"),
        ("OVERRUN", "devices_in_a_too_small_buffer: it was killed by Segmentation fault"),
        ("NULL_POINTER", "no_place_for_the_device_count: it was killed by Segmentation fault"),
        ("PRINTS", "init_succeeds: the library printed 13 bytes"),
        ("LOGS_FATAL", "a_log_callback_is_accepted: a log message of the level FATAL, or NULL"),
        ("EXTRA_METRICS", "metrics_of_every_device: metrics 0: 65 extra metrics"),
        ("TWINS", "uuids_are_distinct_and_stable: devices 0 and 1 are both stub-a"),
        ("NO_NUL", "devices_are_described: device 0: its uuid has no NUL"),
        ("LEAK", "texts_have_nothing_behind_their_nul: uuid has the byte 0x6c behind its NUL"),
        ("SHUTDOWN", "every_call_after_shutdown_is_survived: it was killed by Aborted"),
        (
            "FALSE_LIMIT",
            "hard_limits_are_refused: provider.SetMemHardLimit(first_uuid(), 1 << 30) is SUCCESS",
        ),
        ("GO_TOPOLOGY", "topology_names_the_devices: it was killed by Segmentation fault"),
        ("READS_ON", "metrics_of_an_unknown_uuid: it was killed by Segmentation fault"),
        ("STRANGER", "topology_names_the_devices: device 1 is stranger, which is no device"),
        ("NAN_READING", "metrics_of_every_device: metrics 0: the power is nan W"),
        (
            "FATAL_CODE",
            "devices_in_no_buffer: provider.GetAllDevices(few, maximum, count) is RESOURCE_EXHAUSTED",
        ),
    ] {
        let output = program.on(rule, &[]);
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{rule}: {said}");
        assert!(said.lines().any(|line| line == format!("not ok {failed}")), "{rule}: {said}");
    }
}

#[test]
fn test_accelerator_ends_a_check_that_hangs() {
    let output = Program::new("test_accelerator.c", &["-DSECONDS_A_CHECK=2"]).on("HANGS", &[]);
    let said = text(&output.stdout);
    assert!(said.contains("\nnot ok mounts_in_no_buffer: it did not return within 2 s\n"), "{said}");
    assert!(said.ends_with(" passed, 0 skipped, 1 failed\n"), "{said}");
}

#[test]
fn test_accelerator_fails_one_check_of_a_library_that_does_not_load() {
    let program = Program::new("test_accelerator.c", TODAY);
    let output = Command::new(program.folder.path().join("program")).arg("/nowhere.so").output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("not ok library_loads: /nowhere.so: ")
            && said.ends_with("\n0 passed, 0 skipped, 1 failed\n"),
        "{said}"
    );
}

#[test]
fn test_accelerator_asks_whether_a_library_is_of_january() {
    let program = Program::new("test_accelerator.c", TODAY);
    let stub = program.folder.path().join("january.so");
    compile("stub.c", &stub, &["-shared", "-fPIC", "-DV1"]);
    let output = Command::new(program.folder.path().join("program")).arg(stub).output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let reason = "no symbol AccelInit: a library of the January 2026 ABI?";
    assert_eq!(said, format!("not ok library_loads: {reason}\n0 passed, 0 skipped, 1 failed\n"));
}

#[test]
fn test_accelerator_prints_each_warning_once_and_counts_skips_apart() {
    let program = Program::new("test_accelerator.c", TODAY);
    let said = text(&program.on("WARNS", &[]).stdout);
    assert_eq!(said.lines().filter(|line| *line == "# the stub is no GPU").count(), 1, "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with('#')).count(), 1, "{said}");
    let skipped = text(&program.on("CAN_PARTITION", &[]).stdout);
    assert!(
        skipped.contains("\nok partitions_are_refused # SKIP the provider supports partitions\n"),
        "{skipped}"
    );
    assert!(skipped.ends_with(" passed, 1 skipped, 0 failed\n"), "{skipped}");
}

#[test]
fn dump_prints_each_field_in_both_abis_and_both_layouts() {
    let today = Program::new("dump.c", TODAY);
    for (program, arguments, line) in [
        (&today, &[][..], "topology.devices[1].peers[0].peerUUID: stub-a"),
        (&today, &["--topology", "c"], "devices[1].basic.deviceNode: "),
        (&today, &["--topology", "go"], "topology.devices[1].peers[0].bandwidthBytesPerSec: 0"),
        (&Program::new("dump.c", SOURCE), &[], "topology.topologyType: PCIe"),
    ] {
        let output = program.on("NOTHING", arguments);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {} {}", output.status, text(&output.stderr));
        for line in
            [line, "devices[1].basic.uuid: stub-b", "metrics[0].powerUsageWatts: 100.125", "mountCount: 1"]
        {
            assert!(said.lines().any(|printed| printed == line), "{arguments:?} {line}: {said}");
        }
    }
}

#[test]
fn dump_fails_where_a_library_breaks_a_rule() {
    let program = Program::new("dump.c", TODAY);
    for (rule, fault) in [
        ("NO_NUL", "fault: devices[0].basic.uuid has no NUL"),
        ("LEAK", "fault: devices[0].basic.uuid has the byte 0x6c behind its NUL, at 7"),
        ("EXTRA_METRICS", "fault: extraMetricsCount is 65, above its maximum 64"),
        ("LOGS_FATAL", "fault: a log level that ends TensorFusion's hypervisor"),
    ] {
        let output = program.on(rule, &[]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{rule}: {said}");
        assert!(said.lines().any(|line| line == fault), "{rule}: {said}");
    }
    for rule in ["GO_TOPOLOGY", "READS_ON"] {
        assert_eq!(program.on(rule, &[]).status.code(), None, "{rule}: a guard page kills the program");
    }
}

#[test]
fn hostile_ends_well_on_a_library_that_keeps_the_rules_alone() {
    for abi in [TODAY, SOURCE] {
        let output = Program::new("hostile.c", abi).on("NOTHING", &["1", "4"]);
        assert!(output.status.success(), "{abi:?}: {} {}", output.status, text(&output.stderr));
        assert!(text(&output.stdout).ends_with("\nfaults: 0\n"), "{abi:?}: {}", text(&output.stdout));
    }
    let program = Program::new("hostile.c", TODAY);
    for (rule, code) in [
        ("COUNT", Some(1)),
        ("LOGS_FATAL", Some(1)),
        ("EXTRA_METRICS", Some(1)),
        ("OVERRUN", None),
        ("NULL_POINTER", None),
        ("READS_ON", None),
        ("SHUTDOWN", None),
    ] {
        let output = program.on(rule, &["1", "2"]);
        assert_eq!(output.status.code(), code, "{rule}: {}", text(&output.stdout));
    }
}

#[test]
fn the_thread_sanitizer_sees_a_race_that_hostile_provokes() {
    const SANITIZED: &[&str] = &["-fsanitize=thread"];
    let program = Program::new("hostile.c", SANITIZED);
    let said = text(&program.on("RACE", &["1", "4"]).stderr);
    assert!(said.contains("ThreadSanitizer: data race") && said.contains("stub.c"), "{said}");
    let output = program.on("NOTHING", &["1", "4"]);
    assert!(output.status.success(), "{} {}", output.status, text(&output.stderr));
}
