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

/// The samples of one scrape of a machine.
pub(crate) fn scrape(machine: &Machine) -> Vec<Sample> {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    Exporter::default().scrape(&Root::open(folder.path()).unwrap(), count(JUDGED_AT)).samples
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
    let first = series(exporter.scrape(&root, count(JUDGED_AT)).samples);
    assert!(first.len() > 200, "{}", first.len());
    assert_eq!(first, series(exporter.scrape(&root, count(JUDGED_AT) + 15.0).samples));
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
                " WARN there is no AMD GPU, so no metric names one; see `rocworker doctor` if there should be\n"
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
