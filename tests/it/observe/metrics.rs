//! The metrics of whole machines: golden expositions, and what holds of every one.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use layout::{JUDGED_AT, Machine, Nodes};
use root::Root;
use serde_json::Value;
use support::captures;
use telemetry::exporter::Exporter;
use telemetry::exposition::{self, Format};
use telemetry::metric::{GPU_LABELS, Scope};
use telemetry::sample::{Sample, count};
use telemetry::samples::samples;

/// The samples of one scrape of a machine.
pub(crate) fn scrape(machine: &Machine) -> Vec<Sample> {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    samples(&Exporter::default().scrape(&Root::open(folder.path()).unwrap(), count(JUDGED_AT)))
}

/// Every captured machine, and two that are synthetic.
pub(crate) fn machines() -> Vec<(&'static str, Machine)> {
    let captured = captures::ALL.iter().map(|(name, machine)| (*name, machine()));
    let synthetic = [
        ("synthetic-instinct-in-trouble", Machine::instinct_in_trouble(2, 2)),
        ("synthetic-instinct-linked", Machine::instinct_linked(2, 1)),
    ];
    captured.chain(synthetic).collect()
}

#[test]
fn the_exposition_of_each_machine_is_as_recorded() {
    for (name, machine) in machines() {
        let mut samples = scrape(&machine);
        // A time, and a version.
        samples.retain(|sample| {
            !["rocm_exporter_scrape_duration_seconds", "rocm_exporter_build_info"]
                .contains(&sample.metric.name)
        });
        let description = if name.starts_with("synthetic") {
            "synthetic: tests/layout invents every number of this machine"
        } else {
            "a captured machine: tests/captures"
        };
        insta::with_settings!({ description => description, prepend_module_to_snapshot => true }, {
            insta::assert_snapshot!(format!("metrics_of_{name}"), exposition::write(&samples, Format::Prometheus));
        });
    }
}

#[test]
fn each_series_stands_once_with_the_labels_that_the_table_names() {
    for (name, machine) in machines() {
        let samples = scrape(&machine);
        let mut seen = BTreeSet::new();
        for sample in &samples {
            let metric = sample.metric;
            assert!(seen.insert((metric.name, sample.labels.clone())), "{name}: twice: {sample:?}");
            let (of_gpu, own): (Vec<&str>, Vec<&str>) =
                sample.labels.iter().map(|(label, _)| *label).partition(|label| GPU_LABELS.contains(label));
            assert!(own.iter().all(|label| metric.labels.contains(label)), "{name}: {sample:?}");
            let is_right = match metric.scope {
                Scope::Machine => of_gpu.is_empty(),
                Scope::Card => of_gpu.contains(&"gpu") && !of_gpu.contains(&"partition"),
                Scope::Gpu => of_gpu.contains(&"gpu"),
            };
            assert!(is_right, "{name}: {sample:?}");
            assert!(sample.labels.iter().all(|(_, value)| !value.is_empty()), "{name}: {sample:?}");
        }
    }
}

#[test]
fn two_scrapes_give_the_same_series_in_the_same_order() {
    let folder = support::detect::scratch();
    Machine::instinct_in_trouble(2, 4).lay_out(folder.path(), Nodes::Recorded).unwrap();
    let root = Root::open(folder.path()).unwrap();
    let mut exporter = Exporter::default();
    let series = |samples: Vec<Sample>| -> Vec<_> {
        samples.into_iter().map(|sample| (sample.metric.name, sample.labels)).collect()
    };
    let first = series(samples(&exporter.scrape(&root, count(JUDGED_AT))));
    assert!(first.len() > 200, "{}", first.len());
    assert_eq!(first, series(samples(&exporter.scrape(&root, count(JUDGED_AT) + 15.0))));
}

#[test]
fn other_vendors_cards_have_no_series() {
    for machine in [captures::a380(), captures::rtx4080(1, 128)] {
        let names: Vec<&str> = scrape(&machine).iter().map(|sample| sample.metric.name).collect();
        assert_eq!(names, ["rocm_exporter_scrape_duration_seconds", "rocm_exporter_build_info"]);
    }
}

fn rocworker(machine: &Machine, arguments: &[&str]) -> Output {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.arg("--root").arg(folder.path()).arg("metrics").args(arguments).output().unwrap()
}

#[test]
fn the_command_prints_either_format_or_json_and_refuses_both_at_once() {
    let phoenix = captures::phoenix();
    let text = |arguments: &[&str]| {
        let output = rocworker(&phoenix, arguments);
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let prometheus = text(&[]);
    assert!(prometheus.starts_with("# HELP rocm_gpu_info ") && !prometheus.contains("# EOF"), "{prometheus}");
    assert_eq!(prometheus.lines().count(), text(&["--format", "prometheus"]).lines().count());
    let openmetrics = text(&["--format", "openmetrics"]);
    assert!(openmetrics.starts_with("# HELP rocm_gpu ") && openmetrics.ends_with("# EOF\n"), "{openmetrics}");

    let json: Value = serde_json::from_str(&text(&["--output", "json"])).unwrap();
    assert_eq!(json["schema_version"], 1);
    let samples = json["samples"].as_array().unwrap();
    let lines = prometheus.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(samples.len(), lines.count());
    // mem_info_vram_total of the capture.
    let vram = samples
        .iter()
        .find(|it| it["metric"] == "rocm_memory_pool_size_bytes" && it["labels"]["pool"] == "vram")
        .unwrap();
    assert_eq!((vram["value"].as_f64(), &vram["unit"]), (Some(4_294_967_296.0), &"bytes".into()));

    let refused = rocworker(&phoenix, &["--output", "json", "--format", "openmetrics"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(why, "rocworker: --format names a format of the text: leave it out with --output json\n");
}

#[test]
fn the_command_says_that_there_is_no_amd_gpu_and_succeeds() {
    for machine in [Machine::new(), captures::rtx4080(1, 128)] {
        let output = rocworker(&machine, &[]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.as_str()),
            (
                Some(0),
                " WARN no AMD GPU was found, so no metric names one; see `rocworker doctor` if there should be\n"
            )
        );
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("rocm_exporter_build_info") && !text.contains("rocm_gpu"), "{text}");
    }
}

#[test]
fn what_could_not_be_read_is_said_with_its_reason_in_json_and_by_v() {
    let file = "/sys/bus/pci/devices/0000:64:00.0/gpu_busy_percent";
    let machine = captures::phoenix().put(file, "200\n");
    let output = rocworker(&machine, &["--output", "json", "-v"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("gpu_busy_percent holds \"200\", not a percentage"), "{said}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let unread = json["unread"].as_array().unwrap();
    assert_eq!((unread.len(), &unread[0]["file"]), (1, &file.into()));
    let reason = unread[0]["reason"].as_str().unwrap();
    assert!(reason.ends_with("gpu_busy_percent holds \"200\", not a percentage"), "{reason}");
    // A failed read is of its own scrape: the next one that succeeds has none.
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    let root = Root::open(folder.path()).unwrap();
    let mut exporter = Exporter::default();
    assert_eq!(exporter.scrape(&root, 0.0).faults.len(), 1);
    std::fs::write(folder.path().join(&file[1..]), "20\n").unwrap();
    assert_eq!(exporter.scrape(&root, 15.0).faults, []);
}

/// Firmware of discrete RDNA3 and RDNA4 cards keeps SMU_THROTTLER_TEMP_HOTSPOT_BIT (36) set, also at idle: `throttle_status`
/// is at 108 and `indep_throttle_status` at 112 of `gpu_metrics`.
#[test]
fn a_hotspot_bit_of_a_cool_card_is_no_heat_for_metrics_and_health_and_a_hot_one_is() {
    const DEVICE: &str = "/sys/bus/pci/devices/0000:03:00.0";
    let log = "5,0,0,-;Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)\n";
    for (machine, hwmon) in [(captures::rx7800xt(), "hwmon4"), (captures::rx9070(), "hwmon2")] {
        for (millidegrees, bits, thermal, power) in
            [(None, 1_u64 << 36, 0.0, 0.0), (None, 1 << 36 | 1, 0.0, 1.0), (Some(108_000), 1 << 36, 1.0, 0.0)]
        {
            let mut machine = machine.clone().put("/dev/kmsg", log);
            if let Some(millidegrees) = millidegrees {
                machine =
                    machine.put(&format!("{DEVICE}/hwmon/{hwmon}/temp2_input"), format!("{millidegrees}\n"));
            }
            let folder = support::detect::scratch();
            machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
            let file = folder.path().join(&DEVICE[1..]).join("gpu_metrics");
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[108..112].copy_from_slice(&2_u32.to_le_bytes());
            bytes[112..120].copy_from_slice(&bits.to_le_bytes());
            std::fs::write(&file, bytes).unwrap();

            let samples = samples(&Exporter::default().scrape(&Root::open(folder.path()).unwrap(), 1e9));
            let status = |reason: &str| {
                let labels = |it: &&Sample| it.labels.iter().any(|(_, value)| value == reason);
                samples
                    .iter()
                    .find(|it| it.metric.name == "rocm_gpu_throttle_status" && labels(it))
                    .unwrap()
                    .value
            };
            assert_eq!((status("thermal"), status("power")), (thermal, power), "{millidegrees:?} {bits:x}");
            let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
            let output =
                command.arg("--root").arg(folder.path()).args(["health", "-o", "json"]).output().unwrap();
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            let rules = answer["gpus"][0]["deductions"].to_string();
            assert_eq!(rules.contains("thermal-throttling"), thermal > 0.0, "{answer:#}");
        }
    }
}

/// Any user can give a process its name, and a container's creator the container's.
#[test]
fn no_name_of_a_process_or_a_container_turns_the_text_of_a_terminal() {
    let marks = ['\u{202e}', '\u{2066}', '\u{200f}', '\u{9b}', '\u{1b}', '\u{200b}'];
    let name: String = ['a'].into_iter().chain(marks).chain(['b']).collect();
    let machine = Machine::instinct_with_readings(2, 1);
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    let root = Root::open(folder.path()).unwrap();
    let node = amdgpu::read(&root).gpus[0].kfd_node.unwrap();
    let id = amdgpu::processes::gpu_id(&root, node, &mut Vec::new()).unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("proc/70/comm", &format!("{name}\n"));
    put("proc/70/cgroup", &format!("0::/lxc.payload.{name}/init.scope\n"));
    put(&format!("sys/class/kfd/kfd/proc/70/vram_{id}"), "4096\n");
    put(
        "dev/kmsg",
        &format!(
            "3,1,5000000,-;amdgpu 0000:05:00.0: amdgpu: ring {name} timeout, signaled seq=1, emitted seq=2\n"
        ),
    );
    for arguments in [
        &["metrics"][..],
        &["metrics", "--format", "openmetrics"],
        &["metrics", "-o", "json"],
        &["top", "--once"],
        &["top", "--once", "-o", "wide"],
        &["top", "--once", "-o", "json"],
        &["health"],
        &["health", "-o", "json"],
        &[
            "explain",
            &format!("amdgpu 0000:05:00.0: amdgpu: ring {name} timeout, signaled seq=1, emitted seq=2"),
        ],
        &[
            "explain",
            "-o",
            "json",
            &format!("amdgpu 0000:05:00.0: amdgpu: ring {name} timeout, signaled seq=1, emitted seq=2"),
        ],
        &["lease", "list"],
        &["lease", "list", "-o", "json"],
        &["status"],
        &["doctor", "-o", "json"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
        let output = command.arg("--root").arg(folder.path()).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let found: Vec<char> = marks.into_iter().filter(|mark| text.contains(*mark)).collect();
        assert_eq!(found, [], "{arguments:?}: {text}");
        if arguments[0] == "metrics" || arguments[0] == "top" {
            assert!(text.contains("a??????b"), "{arguments:?}: {text}");
        }
    }
}
