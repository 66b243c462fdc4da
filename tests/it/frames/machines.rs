//! Machines to be read: captured ones, and synthetic ones with what captures lack.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use layout::{Entry, Gpu, Machine, Module, Nodes, XcpNames};
use support::captures;
use tempfile::TempDir;

/// Each by its name.
pub(crate) fn all() -> Vec<(&'static str, Machine)> {
    vec![
        ("phoenix", captures::phoenix()),
        ("vangogh", captures::vangogh()),
        ("rx6900xt", captures::rx6900xt()),
        ("rx7800xt", captures::rx7800xt()),
        ("rx9070", captures::rx9070()),
        ("vega", captures::vega()),
        ("rtx4080", captures::rtx4080(0, 128)),
        ("a380", captures::a380()),
        ("phoenix beside rtx4080", captures::phoenix_beside_rtx4080()),
        ("mi300x", captures::mi300x(XcpNames::Dot)),
        ("demo", Machine::demo()),
        ("8 cards", Machine::instinct_with_readings(8, 1)),
        ("2 cards of 8 partitions", Machine::instinct_with_readings(2, 8)),
        ("2 cards in trouble", Machine::instinct_in_trouble(2, 2)),
        ("linked", Machine::instinct_linked(2, 2)),
        ("suspended", suspended()),
        ("docker", docker()),
        ("containerd", containerd()),
        ("CRI-O", crio()),
        ("a worker of the charm's", worker()),
        ("nothing", Machine::new()),
        ("odd", odd()),
    ]
}

/// Of which a first answer lacks files.
pub(crate) fn in_several_connections() -> [(&'static str, Machine); 4] {
    let asleep = Machine::instinct_with_readings(2, 8).put(STATE, "suspended\n");
    [
        ("files that a configuration names", named_elsewhere()),
        ("partitions beside a suspended card", asleep),
        ("files that a unit names by a link", behind_a_link()),
        ("folders and programs that are links", linked_configuration()),
    ]
}

/// The power state of one card of [`Machine::instinct_with_readings`].
pub(crate) const STATE: &str = "/sys/bus/pci/devices/0000:05:00.0/power/runtime_status";

/// rocworker writes nothing through links.
fn behind_a_link() -> Machine {
    with_programs(captures::phoenix(), &["/opt/ctd-2/bin/containerd", "/usr/sbin/runc"])
        .put("/opt/ctd", Entry::Link("ctd-2".into()))
        .put("/opt/ctd-2/conf/main.toml", "version = 3\n")
        .put(
            "/usr/lib/systemd/system/containerd.service",
            "[Service]\nExecStart=/opt/ctd/bin/containerd --config /opt/ctd/conf/main.toml\n",
        )
        .put("/etc/rocworker/config.yaml", "containerd: {config: /opt/ctd/conf/main.toml}\n")
}

/// Whose files are where its configuration and its units say.
fn named_elsewhere() -> Machine {
    with_programs(captures::phoenix(), &["/usr/bin/containerd", "/usr/sbin/runc", "/usr/bin/dockerd"])
        .put(
            "/etc/rocworker/config.yaml",
            "cdi: {path: /srv/cdi/amd.json}\ncontainerd: {config: /srv/main.toml}\n",
        )
        .put("/srv/cdi/amd.json", "{}\n")
        .put("/srv/main.toml", "version = 3\nimports = [\"/opt/gpu/imports/*.toml\"]\n")
        .put(
            "/opt/gpu/imports/amd.toml",
            "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n",
        )
        .put(
            "/usr/lib/systemd/system/containerd.service",
            "[Service]\nExecStart=/usr/bin/containerd --config /srv/main.toml\n",
        )
        .put(
            "/usr/lib/systemd/system/docker.service",
            "[Service]\nEnvironmentFile=/srv/docker.env\nExecStart=/usr/bin/dockerd $OPTIONS\n",
        )
        .put("/srv/docker.env", "OPTIONS=--config-file=/srv/daemon.json\n")
        .put("/srv/daemon.json", r#"{"runtimes": {"other": {"path": "/opt/other/runc"}}}"#)
        .put("/opt/other/runc", PROGRAM)
}

/// Folders of configuration that are links, and links to programs that have gone.
fn linked_configuration() -> Machine {
    let folders = ["rocworker", "containerd/conf.d", "crio", "docker", "systemd/system"];
    let programs = ["usr/bin/crio", "usr/local/bin/podman", "usr/bin/kata-runtime", "usr/sbin/runc"];
    let machine = with_programs(containerd(), &["/usr/bin/dockerd", "/usr/bin/runc"])
        .put("/srv/rocworker/config.yaml", "tag: linked\n")
        .put("/srv/containerd/conf.d/x.toml", "version = 3\n")
        .put("/srv/docker/daemon.json", "{}\n")
        .put("/srv/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n")
        .put("/srv/crio", Entry::Directory);
    // A shell that reads a laid-out machine would follow a link from `/` on this machine.
    let up = |folder: &str| "../".repeat(1 + folder.matches('/').count());
    let folders = folders.map(|folder| (format!("/etc/{folder}"), format!("{}srv/{folder}", up(folder))));
    let programs = programs.map(|program| (format!("/{program}"), "/opt/gone".to_owned()));
    let links = folders.into_iter().chain(programs);
    links.fold(machine, |machine, (link, target)| machine.put(&link, Entry::Link(target)))
}

/// One card that sleeps, and others in states that are none or cannot be asked.
pub(crate) fn suspended() -> Machine {
    let card = |address: &str, minor: u32, state: &str| {
        let gpu = Gpu::amd(address, 0x74a1).card(minor).render(128 + minor);
        let gpu = gpu.attribute("power/runtime_status", state).attribute("unique_id", "0123456789abcdef\n");
        gpu.attribute("gpu_busy_percent", "7\n").attribute("mem_info_vram_total", "17163091968\n")
    };
    Machine::new()
        .module(Module::new("amdgpu"))
        .gpu(card("0000:03:00.0", 0, "suspended\n"))
        .gpu(card("0000:04:00.0", 1, "active\n"))
        .gpu(card("0000:05:00.0", 2, "suspending"))
        .gpu(card("0000:06:00.0", 3, "dreaming\n"))
        .gpu(card("0000:07:00.0", 4, "active"))
}

/// Values without a line's end, empty ones, bytes that no shell can hold.
pub(crate) fn odd() -> Machine {
    let gpu = Gpu::amd("0000:03:00.0", 0x74a1).card(0).render(128);
    Machine::new().module(Module::new("amdgpu").version("6.10.5")).gpu(
        gpu.attribute("gpu_busy_percent", "7")
            .attribute("mem_busy_percent", "")
            .attribute("vbios_version", "113-\\n\\0 $(id) `id` %s %d\n\n\n")
            .attribute("product_name", "caf\u{e9} \u{1f600}\n")
            .attribute("mem_info_vram_total", "1\0\0\0\n")
            .entry("gpu_metrics", vec![0x0a, 0, 0x0a, 0x0a, 0, 0xff, 0x80, b'\n'])
            .entry("mem_info_gtt_total", vec![0xff, 0xfe, b'\n']),
    )
}

/// Stands for a program: none is run.
const PROGRAM: &str = "\u{7f}ELF";
/// Where programs are.
const PROGRAMS: [&str; 8] = [
    "usr/bin",
    "usr/sbin",
    "opt/bin",
    "opt/ctd-2/bin",
    "opt/rocm/bin",
    "usr/lib/rocworker",
    "usr/local/lib/rocworker",
    "var/lib/concourse/bin",
];

fn with_programs(machine: Machine, paths: &[&str]) -> Machine {
    paths.iter().fold(machine, |machine, path| machine.put(path, PROGRAM))
}

/// With an unmanaged default runtime, and one of NVIDIA's beside it.
fn docker() -> Machine {
    let programs =
        ["/usr/bin/dockerd", "/usr/bin/containerd", "/usr/bin/runc", "/usr/bin/nvidia-container-runtime"];
    with_programs(captures::phoenix(), &programs)
        .put(
            "/etc/docker/daemon.json",
            r#"{"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}"#,
        )
        .put(
            "/usr/lib/systemd/system/docker.service",
            "[Service]\nEnvironmentFile=-/etc/default/docker\nExecStart=/usr/bin/dockerd -H fd:// $DOCKER_OPTS\n",
        )
        .put("/etc/systemd/system/docker.service.d/x.conf", "[Service]\nEnvironment=A=b\n")
        .put("/etc/default/docker", "DOCKER_OPTS=--debug\n")
        .put("/usr/lib/rocworker/runc-amd-wrapper", PROGRAM)
}

fn containerd() -> Machine {
    let programs = ["/usr/bin/containerd", "/usr/sbin/runc", "/usr/bin/youki"];
    with_programs(captures::phoenix(), &programs)
        .put(
            "/etc/containerd/config.toml",
            "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = \"youki\"\n\
             [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.youki]\n\
             runtime_type = \"io.containerd.runc.v2\"\n\
             [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.youki.options]\nBinaryName = \"youki\"\n",
        )
        .put("/usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n")
        .put("/var/lib/kubelet/config.yaml", "")
        .put("/opt/rocm/bin/amd-smi", PROGRAM)
        .put("/usr/local/lib/rocworker/runc-amd-wrapper", PROGRAM)
        .put("/etc/hostname", "node7\n")
}

fn crio() -> Machine {
    let programs = ["/usr/bin/crio", "/usr/sbin/runc", "/usr/bin/crun", "/usr/bin/podman"];
    with_programs(captures::phoenix(), &programs)
        .put("/etc/crio/crio.conf.d/10-crun.conf", "[crio.runtime]\ndefault_runtime = \"crun\"\n")
        .put(
            "/usr/lib/systemd/system/crio.service",
            "[Service]\nExecStart=/usr/bin/crio $CRIO_CONFIG_OPTIONS\n",
        )
        .put("/usr/bin/rocm-smi", PROGRAM)
}

/// As the charm (fourdollars/concourse-ci-machine) lays it out in its mode for AMD's GPUs.
fn worker() -> Machine {
    let programs = [
        "/var/lib/concourse/bin/concourse",
        "/var/lib/concourse/bin/containerd",
        "/var/lib/concourse/bin/runc.real",
    ];
    with_programs(captures::phoenix(), &programs)
        .put("/opt/bin/runc-amd-wrapper", "#!/bin/bash\nexec /opt/bin/runc.real \"$@\"\n")
        .put("/opt/bin/runc", Entry::Link("/opt/bin/runc-amd-wrapper".into()))
        .put("/var/lib/concourse/bin/runc", Entry::Link("/opt/bin/runc-amd-wrapper".into()))
        .put("/var/lib/concourse/containerd-gpu.toml", "version = 3\n")
        .put(
            "/etc/systemd/system/concourse-worker.service",
            "[Service]\nEnvironmentFile=/var/lib/concourse-worker/worker-config.env\n\
             EnvironmentFile=-/etc/default/concourse\nExecStart=/var/lib/concourse/bin/concourse worker\n",
        )
        .put(
            "/var/lib/concourse-worker/worker-config.env",
            "CONCOURSE_WORK_DIR=/var/lib/concourse-worker/work_dir\nCONCOURSE_RUNTIME=containerd\n\
             PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/snap/bin\n\
             CONCOURSE_CONTAINERD_CONFIG=/var/lib/concourse/containerd-gpu.toml\n",
        )
        .put("/proc/sys/kernel/hostname", "worker3\n")
}

/// Beneath a folder, its nodes recorded and its programs executable.
pub(crate) fn laid_out(machine: &Machine) -> TempDir {
    let folder = support::detect::scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    for programs in PROGRAMS {
        for file in fs::read_dir(folder.path().join(programs)).into_iter().flatten().flatten() {
            if file.file_type().unwrap().is_file() {
                fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
    folder
}
