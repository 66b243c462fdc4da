//! Processes and what the daemon publishes, on the demo's machine: a W7900 (KFD node 1) and an MI300X in 8 partitions.
//! The processes are synthetic.

use std::fs;
use std::os::unix::fs::symlink;

use amdgpu::processes;
use inventory::published::{Client, Drift, Lease, Pod, Published};
use inventory::{Inventory, Snapshot};
use layout::Nodes;
use root::Root;
use telemetry::exporter::Exporter;
use telemetry::metric::GPU_LABELS;
use telemetry::sample::Sample;
use telemetry::samples::samples;
use tempfile::TempDir;

const ID: &str = "605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc797305f22";
const UID: &str = "ac04f3f2-1f2c-11e9-b015-1ebee232acfa";

struct Laid {
    dir: TempDir,
    root: Root,
    inventory: Inventory,
    exporter: Exporter,
    last: Snapshot,
}

impl Laid {
    fn demo() -> Self {
        let dir = tempfile::tempdir().unwrap();
        layout::Machine::demo().lay_out(dir.path(), Nodes::Recorded).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let inventory = amdgpu::read(&root);
        Self { dir, root, inventory, exporter: Exporter::default(), last: Snapshot::default() }
    }

    fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn gpu_id(&self, index: u32) -> u32 {
        let gpu = self.inventory.gpus.iter().find(|gpu| gpu.index == Some(index)).unwrap();
        processes::gpu_id(&self.root, gpu.kfd_node.unwrap(), &mut Vec::new()).unwrap()
    }

    /// A process that started so many seconds after the boot.
    fn process(&self, pid: u32, name: impl AsRef<[u8]>, cgroup: &str, started: u32) {
        self.put(&format!("proc/{pid}/comm"), [name.as_ref(), b"\n"].concat());
        self.put(&format!("proc/{pid}/cgroup"), cgroup);
        let stat = format!("{pid} (a) b) R {}{}00 0\n", "0 ".repeat(18), started);
        self.put(&format!("proc/{pid}/stat"), stat);
    }

    fn uses(&self, pid: u32, gpu: u32, vram: u64, queues: u32) {
        let id = self.gpu_id(gpu);
        let kfd = format!("sys/class/kfd/kfd/proc/{pid}");
        self.put(&format!("{kfd}/vram_{id}"), format!("{vram}\n"));
        fs::create_dir_all(self.dir.path().join(&kfd).join("queues")).unwrap();
        for queue in 0..queues {
            self.put(&format!("{kfd}/queues/{gpu}{queue}/gpuid"), id.to_string());
        }
    }

    fn ends(&self, pid: u32) {
        for folder in [format!("sys/class/kfd/kfd/proc/{pid}"), format!("proc/{pid}")] {
            fs::remove_dir_all(self.dir.path().join(folder)).unwrap();
        }
    }

    /// The series of processes and of what the daemon publishes at a time.
    fn samples(&mut self, uptime: f64, published: Option<&Published>) -> Vec<Sample> {
        self.put("proc/uptime", format!("{uptime:.2} 99999.00\n"));
        let file = "run/rocworker/exporter.json";
        match published {
            Some(published) => self.put(file, serde_json::to_string(published).unwrap()),
            None => drop(fs::remove_file(self.dir.path().join(file))),
        }
        self.last = self.exporter.scrape(&self.root, uptime + 1e9);
        let users = ["rocm_gpu_processes", "rocm_process_", "rocm_container_"];
        let mut samples = samples(&self.last);
        samples.retain(|it| users.iter().any(|prefix| it.metric.name.starts_with(prefix)));
        samples
    }

    /// The series at a time, beside those of GPUs that no process uses.
    fn scrape(&mut self, uptime: f64, published: Option<&Published>) -> Vec<String> {
        let lines: Vec<String> = self.samples(uptime, published).iter().map(line).collect();
        let is_idle = |line: &String| line.starts_with("rocm_gpu_processes{") && line.ends_with(" 0");
        lines.into_iter().filter(|line| !is_idle(line)).collect()
    }

    /// Why the last scrape leaves processes out.
    fn faults(&self) -> Vec<String> {
        let faults = self.last.faults.iter().filter(|it| it.file.starts_with("/sys/class/kfd/kfd/proc"));
        faults.map(|fault| fault.reason.to_string()).collect()
    }
}

/// A sample as one line; of the labels that name the GPU, only its index.
fn line(sample: &Sample) -> String {
    let labels = sample.labels.iter().filter(|(name, _)| *name == "gpu" || !GPU_LABELS.contains(name));
    let labels: Vec<String> = labels.map(|(name, value)| format!("{name}={value:?}")).collect();
    format!("{}{{{}}} {}", sample.metric.name, labels.join(","), sample.value)
}

#[test]
fn of_too_many_processes_those_with_the_most_vram_have_series_and_all_are_counted() {
    let mut laid = Laid::demo();
    for pid in 1..=1100 {
        laid.uses(pid, 0, u64::from(pid) << 20, 0);
    }
    let lines = laid.scrape(1000.0, None);
    assert_eq!(lines[0], "rocm_gpu_processes{gpu=\"0\"} 1100");
    let has = |pid: u32| {
        lines.iter().any(|line| {
            line.starts_with("rocm_process_vram_bytes") && line.contains(&format!("pid=\"{pid}\""))
        })
    };
    assert_eq!([has(1), has(100), has(101), has(1100)], [false, false, true, true]);
    assert_eq!(laid.faults(), ["100 processes have no series: only those with the most VRAM have"]);
    (1..=100).for_each(|pid| {
        fs::remove_dir_all(laid.dir.path().join(format!("sys/class/kfd/kfd/proc/{pid}"))).unwrap()
    });
    laid.scrape(1001.0, None);
    assert_eq!(laid.faults(), [""; 0]);
}

#[test]
fn each_process_is_on_its_gpus_with_its_name_and_its_container() {
    let mut laid = Laid::demo();
    assert_eq!(laid.scrape(1000.0, None), [""; 0], "no process");
    laid.process(70, "python3", &format!("0::/system.slice/docker-{ID}.scope\n"), 900);
    laid.uses(70, 0, 1 << 30, 2);
    laid.uses(70, 1, 0, 0);
    laid.put(&format!("sys/class/kfd/kfd/proc/70/stats_{}/cu_occupancy", laid.gpu_id(0)), "48\n");
    laid.process(71, "ollama", "0::/system.slice/ollama.service\n", 900);
    laid.uses(71, 2, 4096, 0);
    // Process 72 has just ended: KFD lists it, and /proc does not.
    laid.uses(72, 2, 8192, 1);
    let docker = format!("gpu=\"0\",pid=\"70\",name=\"python3\",container=\"{ID}\"");
    let ollama = "gpu=\"2\",pid=\"71\",name=\"ollama\",unit=\"ollama.service\"";
    let expected = [
        "rocm_gpu_processes{gpu=\"0\"} 1".to_owned(),
        "rocm_gpu_processes{gpu=\"2\"} 2".to_owned(),
        format!("rocm_process_vram_bytes{{{docker}}} 1073741824"),
        format!("rocm_process_vram_bytes{{{ollama}}} 4096"),
        "rocm_process_vram_bytes{gpu=\"2\",pid=\"72\"} 8192".to_owned(),
        format!("rocm_process_compute_units{{{docker}}} 48"),
        format!("rocm_process_queues{{{docker}}} 2"),
        format!("rocm_process_queues{{{ollama}}} 0"),
        "rocm_process_queues{gpu=\"2\",pid=\"72\"} 1".to_owned(),
        format!("rocm_container_gpu_seconds_total{{gpu=\"0\",container=\"{ID}\"}} 0"),
        "rocm_container_gpu_seconds_total{gpu=\"2\",unit=\"ollama.service\"} 0".to_owned(),
        format!("rocm_container_vram_peak_bytes{{gpu=\"0\",container=\"{ID}\"}} 1073741824"),
        "rocm_container_vram_peak_bytes{gpu=\"2\",unit=\"ollama.service\"} 4096".to_owned(),
    ];
    assert_eq!(laid.scrape(1000.0, None), expected);
}

#[test]
fn a_gpu_that_nobody_uses_has_none_and_a_machine_without_kfd_has_no_series() {
    let mut laid = Laid::demo();
    let proc = laid.dir.path().join("sys/class/kfd/kfd/proc");
    fs::create_dir(&proc).unwrap();
    let samples = laid.samples(1000.0, None);
    let with_kfd = laid.inventory.gpus.iter().filter(|gpu| gpu.kfd_node.is_some()).count();
    assert_eq!((samples.len(), with_kfd), (9, 9));
    assert!(samples.iter().all(|it| it.metric.name == "rocm_gpu_processes" && it.value == 0.0));
    fs::remove_dir(&proc).unwrap();
    assert!(laid.samples(1001.0, None).is_empty());
}

#[test]
fn a_count_of_processes_is_absent_where_one_could_not_be_read() {
    let mut laid = Laid::demo();
    laid.process(70, "a", "0::/\n", 1);
    laid.uses(70, 0, 4096, 0);
    let gpus = |lines: &[String]| lines.iter().filter(|it| it.starts_with("rocm_gpu_processes")).count();
    assert_eq!(gpus(&laid.scrape(1000.0, None)), 1);
    let node = laid.inventory.gpus[0].kfd_node.unwrap();
    let file = format!("sys/class/kfd/kfd/topology/nodes/{node}/gpu_id");
    let before = fs::read(laid.dir.path().join(&file)).unwrap();
    laid.put(&file, "none\n");
    assert_eq!(gpus(&laid.scrape(1015.0, None)), 0, "nothing says which GPU the process uses");
    laid.put(&file, before);
    laid.uses(71, 1, 0, 0);
    laid.put(&format!("sys/class/kfd/kfd/proc/71/vram_{}", laid.gpu_id(1)), "lots\n");
    let samples = laid.samples(1030.0, None);
    assert!(!samples.iter().any(|it| it.metric.name == "rocm_gpu_processes"));
}

#[test]
fn a_containers_seconds_go_on_after_a_process_and_stay_for_ten_minutes() {
    let mut laid = Laid::demo();
    let garden = "0::/garden/200e7e87-3af9-4a79-4ea5-5ca0364c6cc8\n";
    let seconds = |lines: &[String]| {
        let mut found = lines.iter().filter(|line| line.starts_with("rocm_container_gpu_seconds_total"));
        found.next().map(|line| line.rsplit_once(' ').unwrap().1.to_owned())
    };
    laid.scrape(1000.0, None);
    laid.process(70, "a", garden, 1004);
    laid.uses(70, 0, 1, 1);
    laid.process(71, "b", garden, 1009);
    laid.uses(71, 0, 1, 1);
    assert_eq!(seconds(&laid.scrape(1015.0, None)).as_deref(), Some("11"));
    laid.ends(70);
    assert_eq!(seconds(&laid.scrape(1030.0, None)).as_deref(), Some("26"));
    laid.ends(71);
    let later = laid.scrape(1630.0, None);
    assert_eq!(seconds(&later).as_deref(), Some("26"), "{later:#?}");
    assert!(!later.iter().any(|line| line.starts_with("rocm_process")), "{later:#?}");
    assert_eq!(laid.scrape(1631.0, None), [""; 0]);
}

#[test]
fn names_of_another_pid_namespace_are_nobodys() {
    let mut laid = Laid::demo();
    fs::create_dir_all(laid.dir.path().join("proc/self/ns")).unwrap();
    symlink("pid:[4026532000]", laid.dir.path().join("proc/self/ns/pid")).unwrap();
    laid.process(70, "innocent", &format!("0::/docker/{ID}\n"), 1);
    laid.uses(70, 0, 4096, 0);
    let found = laid.scrape(1000.0, None);
    assert_eq!(found[1], "rocm_process_vram_bytes{gpu=\"0\",pid=\"70\"} 4096");
    assert!(!found.iter().any(|line| line.contains("innocent") || line.contains(ID)), "{found:#?}");
}

#[test]
fn hostile_names_are_bounded_label_values() {
    let mut laid = Laid::demo();
    let long = "x".repeat(4096);
    let names: [&[u8]; 4] = [b"a\"b\\\nc\x1b[0m", b"\xff\xfe", long.as_bytes(), b""];
    for (pid, name) in (70..).zip(names) {
        laid.process(pid, name, &format!("0::/lxc.payload.{long}{pid}\n"), 1);
        laid.uses(pid, 0, 4096, 0);
    }
    let samples = laid.samples(1000.0, None);
    let series: Vec<String> = samples.iter().map(line).collect();
    for (name, value) in samples.iter().flat_map(|it| &it.labels) {
        assert!(!value.chars().any(char::is_control) && value.chars().count() <= 128, "{name}={value:?}");
        assert!(!value.is_empty(), "{name}");
    }
    let names: std::collections::BTreeSet<_> =
        series.iter().map(|it| it.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(names.len(), series.len(), "none comes twice: {series:#?}");
}

/// A daemon's file, written at 1000000990.
fn of_daemon() -> Published {
    let pod = |uid: &str, name: &str| Pod {
        uid: uid.to_owned(),
        namespace: "ml".to_owned(),
        name: name.to_owned(),
    };
    Published {
        schema_version: 1,
        written_at: 1_000_000_990,
        leases: Some(vec![
            Lease { gpu: "renderD129".to_owned(), container: ID.to_owned() },
            Lease { gpu: "renderD999".to_owned(), container: "gone".to_owned() },
        ]),
        drift: Drift { differs: 1, contested: 2, blocked: 3, failed: 4, pending_restarts: 5 },
        pods: vec![pod("other", "x"), pod(UID, "train-0")],
        ..Published::default()
    }
}

#[test]
fn a_pod_is_called_by_its_name_where_the_daemon_says_it_and_by_its_uid_else() {
    let mut laid = Laid::demo();
    laid.process(70, "a", &format!("0::/kubepods/burstable/pod{UID}/{ID}\n"), 1);
    laid.uses(70, 0, 4096, 0);
    let named = format!("container=\"{ID}\",namespace=\"ml\",pod=\"train-0\"");
    let unnamed = format!("container=\"{ID}\",pod=\"{UID}\"");
    for (published, expected) in [(Some(of_daemon()), named), (None, unnamed)] {
        let found = laid.scrape(1000.0, published.as_ref());
        assert_eq!(
            found[1],
            format!("rocm_process_vram_bytes{{gpu=\"0\",pid=\"70\",name=\"a\",{expected}}} 4096")
        );
        assert_eq!(found[3], format!("rocm_container_gpu_seconds_total{{gpu=\"0\",{expected}}} 0"));
    }
}

#[test]
fn fdinfo_gives_vram_where_kfd_gives_none_and_never_guesses_a_partition() {
    let mut laid = Laid::demo();
    let pci = |index: u32| {
        let gpu = laid.inventory.gpus.iter().find(|gpu| gpu.index == Some(index)).unwrap();
        gpu.pci.unwrap().to_string()
    };
    let client = |pid, index, vram_bytes| Client { pid, pci: pci(index), vram_bytes };
    let clients =
        vec![client(70, 0, Some(77)), client(71, 0, Some(88)), client(71, 1, Some(99)), client(72, 0, None)];
    let published = Published { clients, ..of_daemon() };
    laid.process(70, "both", "0::/\n", 1);
    laid.uses(70, 0, 4096, 0);
    laid.process(71, "glxgears", "0::/user.slice/user-1.slice/session-1.scope\n", 1);
    let found = laid.scrape(1000.0, Some(&published));
    let expected = [
        "rocm_gpu_processes{gpu=\"0\"} 1",
        "rocm_process_vram_bytes{gpu=\"0\",pid=\"70\",name=\"both\"} 4096",
        "rocm_process_vram_bytes{gpu=\"0\",pid=\"71\",name=\"glxgears\",unit=\"session-1.scope\"} 88",
        "rocm_process_queues{gpu=\"0\",pid=\"70\",name=\"both\"} 0",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_the_daemon_publishes_are_series() {
    let mut laid = Laid::demo();
    laid.samples(1000.0, Some(&of_daemon()));
    let of_daemon = [
        "rocm_lease_info",
        "rocm_drift_paths",
        "rocm_pending_restarts",
        "rocm_daemon_published_timestamp_seconds",
    ];
    let mut found = samples(&laid.last);
    found.retain(|it| of_daemon.contains(&it.metric.name));
    let found: Vec<String> = found.iter().map(line).collect();
    let expected = [
        format!("rocm_lease_info{{gpu=\"0\",container=\"{ID}\"}} 1"),
        "rocm_drift_paths{state=\"differs\"} 1".to_owned(),
        "rocm_drift_paths{state=\"contested\"} 2".to_owned(),
        "rocm_drift_paths{state=\"blocked\"} 3".to_owned(),
        "rocm_drift_paths{state=\"failed\"} 4".to_owned(),
        "rocm_pending_restarts{} 5".to_owned(),
        "rocm_daemon_published_timestamp_seconds{} 1000000990".to_owned(),
    ];
    assert_eq!(found, expected);
}
