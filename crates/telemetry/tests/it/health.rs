//! The daemon's judgement of each card as series, by synthetic machines.

use std::fs;

use inventory::Snapshot;
use layout::{JUDGED_AT, Machine};
use root::Root;
use support::laid::Laid;
use telemetry::exporter::Exporter;
use telemetry::sample::{Sample, count};
use telemetry::samples::samples;

const FILE: &str = "run/rocworker/health.json";

/// Three cards of eight partitions, judged at [`JUDGED_AT`].
fn machine() -> Machine {
    Machine::instinct_in_trouble(3, 8).put(POLICY, &*policy(true))
}

const POLICY: &str = "/etc/rocworker/wrapper.json";

fn policy(quarantine: bool) -> String {
    format!(r#"{{"schema_version":1,"requests":"all","quarantine":{quarantine}}}"#)
}

fn scrape(exporter: &mut Exporter, laid: &Laid, age: f64) -> Snapshot {
    exporter.scrape(&Root::open(laid.top()).unwrap(), count(JUDGED_AT) + age)
}

/// Name, card, labels and value of each series that comes from the file.
fn judged(scraped: &Snapshot) -> Vec<String> {
    let names = ["rocm_gpu_health_score", "rocm_gpu_health_state", "rocm_gpu_hang", "rocm_gpu_quarantined"];
    let samples = samples(scraped);
    let of_file = samples.iter().filter(|sample| names.contains(&sample.metric.name));
    let shown = |sample: &Sample| {
        let labels: Vec<&str> = sample.labels.iter().map(|(name, _)| *name).collect();
        let (of_gpu, own) = labels.split_at(5);
        assert_eq!(of_gpu, ["gpu", "uuid", "pci", "model", "gfx"], "{sample:?}");
        assert!(own.is_empty() || own == ["state"], "{sample:?}");
        let state = sample.labels.get(5).map(|(_, state)| format!(" {state}")).unwrap_or_default();
        format!("{} {}{state} {}", sample.metric.name, sample.labels[2].1, sample.value)
    };
    of_file.map(shown).collect()
}

/// The samples of the judged cards; card 2 has neither score nor hang.
const JUDGED: [&str; 19] = [
    "rocm_gpu_health_score 0000:05:00.0 10",
    "rocm_gpu_health_score 0000:15:00.0 85",
    "rocm_gpu_health_state 0000:05:00.0 healthy 0",
    "rocm_gpu_health_state 0000:05:00.0 degraded 0",
    "rocm_gpu_health_state 0000:05:00.0 unhealthy 1",
    "rocm_gpu_health_state 0000:05:00.0 unknown 0",
    "rocm_gpu_health_state 0000:15:00.0 healthy 0",
    "rocm_gpu_health_state 0000:15:00.0 degraded 1",
    "rocm_gpu_health_state 0000:15:00.0 unhealthy 0",
    "rocm_gpu_health_state 0000:15:00.0 unknown 0",
    "rocm_gpu_health_state 0000:25:00.0 healthy 0",
    "rocm_gpu_health_state 0000:25:00.0 degraded 0",
    "rocm_gpu_health_state 0000:25:00.0 unhealthy 0",
    "rocm_gpu_health_state 0000:25:00.0 unknown 1",
    "rocm_gpu_hang 0000:05:00.0 1",
    "rocm_gpu_hang 0000:15:00.0 0",
    "rocm_gpu_quarantined 0000:05:00.0 1",
    "rocm_gpu_quarantined 0000:15:00.0 0",
    "rocm_gpu_quarantined 0000:25:00.0 0",
];

#[test]
fn each_card_has_its_judgement_once_and_what_is_unknown_is_absent() {
    let laid = Laid::out(&machine());
    let scraped = scrape(&mut Exporter::default(), &laid, 0.0);
    assert_eq!(judged(&scraped), JUDGED);
    assert_eq!(scraped.faults, []);
}

/// A judgement alone keeps no container off a GPU.
#[test]
fn a_gpu_is_quarantined_only_where_the_policy_keeps_containers_off_it() {
    let value = |scraped: &Snapshot, pci: &str| {
        let is_its = |it: &&Sample| {
            it.metric.name == "rocm_gpu_quarantined" && it.labels.iter().any(|(_, value)| value == pci)
        };
        samples(scraped).iter().find(is_its).map(|it| it.value)
    };
    for (text, expected) in [
        (Some(policy(true)), Some(true)),
        (Some(policy(false)), Some(false)),
        (Some(r#"{"schema_version":1,"requests":"all"}"#.to_owned()), Some(false)),
        (None, Some(false)),
        (Some("{".to_owned()), None),
    ] {
        let laid = Laid::out(&Machine::instinct_in_trouble(3, 8));
        if let Some(text) = &text {
            laid.put(POLICY, text);
        }
        let scraped = scrape(&mut Exporter::default(), &laid, 0.0);
        let quarantined = value(&scraped, "0000:05:00.0").map(|value| value > 0.0);
        assert_eq!(quarantined, expected, "{text:?}");
        assert_eq!(scraped.quarantine_enforced, expected, "{text:?}");
        assert_eq!(value(&scraped, "0000:15:00.0"), Some(0.0), "{text:?}: it was never unhealthy");
    }
}

#[test]
fn a_judgement_comes_and_goes_with_its_file_and_its_age() {
    let laid = Laid::out(&machine());
    let mut exporter = Exporter::default();
    let path = laid.top().join(FILE);
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let mut now = |age: f64| {
        let scraped = scrape(&mut exporter, &laid, age);
        (judged(&scraped), scraped)
    };
    let (none, scraped) = now(0.0);
    assert_eq!((none, scraped.faults), (vec![], vec![]), "no daemon is no fault");
    fs::write(&path, &text).unwrap();
    assert_eq!(now(60.0).0, JUDGED);
    let (none, scraped) = now(61.0);
    assert_eq!((none, scraped.faults), (vec![], vec![]), "an old one is no fault");

    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let (none, scraped) = now(0.0);
    assert_eq!(none, [""; 0]);
    let [fault] = &scraped.faults[..] else { panic!("{scraped:#?}") };
    assert_eq!(fault.file.to_str(), Some("/run/rocworker/health.json"));
    assert!(fault.reason.to_string().contains("health.json is no health file: "), "{}", fault.reason);
    let samples = samples(&scraped);
    let errors =
        samples.iter().find(|sample| sample.metric.name == "rocm_exporter_read_errors_total").unwrap();
    assert_eq!(errors.labels, [("file", "/run/rocworker/health.json".to_owned())]);
}

#[test]
fn a_suspended_card_keeps_its_judgement_and_is_not_read() {
    let status = "/sys/bus/pci/devices/0000:05:00.0/power/runtime_status";
    let laid = Laid::out(&machine().put(status, "suspended\n"));
    let scraped = scrape(&mut Exporter::default(), &laid, 0.0);
    assert_eq!(judged(&scraped), JUDGED);
    let samples = samples(&scraped);
    let of_card = samples.iter().filter(|it| it.labels.iter().any(|(_, value)| value == "0000:05:00.0"));
    let names: std::collections::BTreeSet<&str> = of_card.map(|it| it.metric.name).collect();
    let expected = [
        "rocm_gpu_hang",
        "rocm_gpu_health_score",
        "rocm_gpu_health_state",
        "rocm_gpu_info",
        "rocm_gpu_quarantined",
        "rocm_gpu_suspended",
    ];
    assert_eq!(names, expected.into());
}

/// Without a daemon only the kernel's dump shows a hang.
#[test]
fn a_dump_of_the_kernels_is_a_metric_of_its_own() {
    let laid = Laid::out(&machine().remove("/run/rocworker"));
    let scraped = scrape(&mut Exporter::default(), &laid, 0.0);
    assert_eq!(judged(&scraped), [""; 0]);
    let samples = samples(&scraped);
    let dumps = samples.iter().filter(|sample| sample.metric.name == "rocm_gpu_devcoredump");
    assert_eq!(dumps.map(|sample| sample.value).collect::<Vec<_>>(), [1.0, 0.0, 0.0]);
}
