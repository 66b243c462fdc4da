//! What changes between two scrapes: a GPU that is suspended, goes, or cannot be read.

use std::fs;
use std::path::{Path, PathBuf};

use layout::{Machine, Nodes};
use root::Root;
use support::captures;
use telemetry::exporter::Exporter;
use telemetry::sample::{Label, Sample};
use telemetry::samples::samples;

struct Scraped {
    folder: tempfile::TempDir,
    exporter: Exporter,
}

impl Scraped {
    fn new(machine: &Machine) -> Self {
        let folder = support::detect::scratch();
        machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
        Self { folder, exporter: Exporter::default() }
    }

    fn now(&mut self) -> Vec<Sample> {
        samples(&self.exporter.scrape(&Root::open(self.folder.path()).unwrap(), 0.0))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }
}

fn named<'s>(samples: &'s [Sample], name: &str) -> Vec<(&'s [Label], f64)> {
    let its = samples.iter().filter(|sample| sample.metric.name == name);
    its.map(|sample| (&sample.labels[..], sample.value)).collect()
}

fn of_gpus(samples: &[Sample]) -> Vec<&str> {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.metric.name).collect();
    names.retain(|name| !name.starts_with("rocm_exporter_"));
    names
}

const CARD: &str = "/sys/bus/pci/devices/0000:05:00.0";

#[test]
fn a_suspended_card_keeps_its_labels_and_has_two_series() {
    let machine = captures::rx6900xt();
    let mut machine = Scraped::new(&machine);
    let awake = machine.now();
    assert!(of_gpus(&awake).len() > 30);
    let info = named(&awake, "rocm_gpu_info")[0].0.to_vec();
    assert!(info.contains(&("vbios", "113-D4121EXT-CO1".to_owned())), "{info:?}");
    assert!(info.contains(&("uuid", "GPU-946d7e1ef9b172dd".to_owned())), "{info:?}");
    let labels = named(&awake, "rocm_gpu_suspended")[0].0.to_vec();
    assert_eq!(named(&awake, "rocm_gpu_suspended")[0].1, 0.0);

    let folder = machine.path("/sys/bus/pci/devices/0000:0c:00.0");
    fs::write(folder.join("power/runtime_status"), "suspended\n").unwrap();
    // As newer kernels refuse it of a suspended card.
    fs::remove_file(folder.join("unique_id")).unwrap();
    let asleep = machine.now();
    assert_eq!(of_gpus(&asleep), ["rocm_gpu_info", "rocm_gpu_suspended"]);
    assert_eq!(named(&asleep, "rocm_gpu_info"), [(&info[..], 1.0)]);
    assert_eq!(named(&asleep, "rocm_gpu_suspended"), [(&labels[..], 1.0)]);
}

#[test]
fn an_apus_memory_stays_gtt_while_gpu_metrics_cannot_be_read() {
    let mut machine = Scraped::new(&captures::phoenix());
    let total = |samples: &[Sample]| named(samples, "rocm_memory_total")[0].1;
    assert_eq!(total(&machine.now()), 31_433_977_856.0);
    fs::write(machine.path("/sys/bus/pci/devices/0000:64:00.0/gpu_metrics"), "").unwrap();
    assert_eq!(total(&machine.now()), 31_433_977_856.0);
}

#[test]
fn failed_reads_are_counted_by_file_while_the_card_is_there() {
    let mut machine = Scraped::new(&Machine::instinct_with_readings(2, 2));
    assert_eq!(named(&machine.now(), "rocm_exporter_read_errors_total"), []);
    let file = format!("{CARD}/gpu_metrics");
    fs::write(machine.path(&file), b"\x04\x00\x63\x63").unwrap();
    let label = [("file", file.clone())];
    let first = machine.now();
    assert_eq!(named(&first, "rocm_exporter_read_errors_total"), [(&label[..], 1.0)]);
    let second = machine.now();
    assert_eq!(named(&second, "rocm_exporter_read_errors_total"), [(&label[..], 2.0)]);
    // The other values of the card are still there.
    assert_eq!(named(&second, "rocm_power_usage").len(), 2);

    let gone = machine.path(CARD);
    let folder = fs::canonicalize(&gone).unwrap();
    fs::remove_file(gone).unwrap();
    assert!(folder.starts_with(fs::canonicalize(machine.folder.path()).unwrap()));
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(named(&machine.now(), "rocm_exporter_read_errors_total"), []);
}

#[test]
fn what_belongs_to_the_card_is_on_the_card_and_partitions_have_their_own() {
    let mut machine = Scraped::new(&Machine::instinct_with_readings(1, 4));
    let samples = machine.now();
    let partitions = |name: &str| -> Vec<Option<&str>> {
        let label = |labels: &'_ [Label]| labels.iter().position(|(name, _)| *name == "partition");
        let its = named(&samples, name);
        its.into_iter().map(|(labels, _)| label(labels).map(|place| labels[place].1.as_str())).collect()
    };
    let each = [Some("0"), Some("1"), Some("2"), Some("3")];
    for name in ["rocm_power_usage", "rocm_memory_used", "rocm_gpu_suspended", "rocm_pcie_replays_total"] {
        assert_eq!(partitions(name), [None], "{name}");
    }
    for name in ["rocm_gpu_info", "rocm_memory_total", "rocm_gpu_utilization"] {
        let found = partitions(name);
        assert_eq!(found.first(), Some(&None), "{name}");
        assert_eq!(found[1..], each, "{name}");
    }
    // The synthetic server's render nodes share one card.
    assert!(Path::new(&machine.path(CARD)).exists());
}

#[test]
fn a_suspended_partitioned_card_says_nothing_of_its_partitions_but_who_they_are() {
    let mut machine = Scraped::new(&Machine::instinct_with_readings(1, 2));
    let awake = machine.now();
    fs::write(machine.path(&format!("{CARD}/power/runtime_status")), "suspended\n").unwrap();
    let asleep = machine.now();
    assert_eq!(of_gpus(&asleep), ["rocm_gpu_info", "rocm_gpu_info", "rocm_gpu_info", "rocm_gpu_suspended"]);
    assert_eq!(named(&asleep, "rocm_gpu_info"), named(&awake, "rocm_gpu_info"));
}
