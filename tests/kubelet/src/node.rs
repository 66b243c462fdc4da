//! A node as the kubelet finds it: a laid-out machine with a network of its own, containerd with CRI, and an image.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::Machine;
use real_engines::containerd::{Containerd, Start};
use real_engines::engine::{CONTAINERD_1_6, Unpacked};
use real_engines::host::Host;
use real_engines::image;
use support::real;
use support::said::Said;

use crate::pod;

/// The machine's files on the node, for programs that take a `--root`. /var/lib/kubelet is one folder for both.
pub const MACHINE: &str = "/stage/machine";
/// The kubelet's folder. Kubernetes 1.20 has the plugins' folder built in, whatever its `--root-dir`.
pub const KUBELET_DIR: &str = "/var/lib/kubelet";
/// The namespace in which containerd keeps what CRI makes.
const NAMESPACE: &str = "k8s.io";
const PATH: &str = "/usr/sbin:/usr/bin";
const NETWORK: &str = "/run/node-network";
/// containerd's socket on the node.
pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";

/// The kubelet sets the kernel's parameters, of which most are no namespace's own: it is given files in their place.
const PREPARE: &str = r#"
box() { /usr/bin/busybox "$@"; }
box mkdir -p MACHINE/var/lib/kubelet /var/lib/kubelet /stage/seen /stage/manifests
box mount --bind MACHINE/var/lib/kubelet /var/lib/kubelet
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys \
        kernel/keys/root_maxbytes; do
    box mkdir -p "/run/parameters/${name%/*}"
    box cat "/proc/sys/$name" >"/run/parameters/$name"
    box mount --bind "/run/parameters/$name" "/proc/sys/$name"
done
# The kubelet reads there which processes the kernel killed for memory.
box mknod -m 600 /dev/kmsg c 1 11
box touch NETWORK
box unshare --net /usr/bin/busybox sh -ec \
    '/usr/bin/busybox mount --bind /proc/self/ns/net NETWORK; /usr/bin/busybox ip link set lo up'
"#;

/// The programs that a node needs.
#[derive(Clone, Debug)]
pub struct Programs {
    engine: Unpacked,
    pub(crate) kubelet: PathBuf,
}

impl Programs {
    /// The programs, unless the calling test is to be skipped.
    ///
    /// # Panics
    /// Where something is missing in a full run.
    #[must_use = "a test that cannot run must return"]
    #[track_caller]
    pub fn required() -> Option<Self> {
        let engine = CONTAINERD_1_6.unpacked()?;
        let kubelet = real::require_root_and_built("ROCWORKER_KUBELET", &[])?;
        Some(Self { engine, kubelet })
    }
}

/// A node with containerd, on which no kubelet runs yet.
#[derive(Debug)]
pub struct Node {
    containerd: Containerd,
    programs: Programs,
}

impl Node {
    /// # Panics
    /// Where it cannot be set up.
    pub fn of(machine: &Machine, programs: &Programs) -> Self {
        let host = Host::of(machine, &programs.engine);
        let prepare = PREPARE.replace("MACHINE", MACHINE).replace("NETWORK", NETWORK);
        host.busybox(&["sh", "-ec", &prepare]).well();
        make_cgroups(&host.cgroup());
        fs::write(host.folder().join("containerd.toml"), configuration()).unwrap();
        image::write(host.folder(), &host.folder().join("image.tar"), &["PATH=/bin"], &pod::WAIT);
        let argv = within_network(&["/usr/bin/containerd", "--config", "/stage/containerd.toml"]);
        let start =
            Start { path: PATH.to_owned(), argv: argv.iter().map(|part| (*part).to_owned()).collect() };
        let node =
            Self { containerd: Containerd::begin(&CONTAINERD_1_6, host, start), programs: programs.clone() };
        node.ctr(&["images", "import", "/stage/image.tar"]).well();
        node
    }

    /// A program of the node, in its network, not yet run.
    pub fn command(&self, argv: &[&str]) -> Command {
        self.host().command(PATH, &within_network(argv))
    }

    /// `ctr` among what CRI makes.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn ctr(&self, arguments: &[&str]) -> Said {
        let argv = [&["/usr/bin/ctr", "--namespace", NAMESPACE], arguments].concat();
        self.command(&argv).output().unwrap().into()
    }

    pub fn host(&self) -> &Host {
        self.containerd.host()
    }

    /// The path on this machine of a path below `/stage`.
    pub fn outside(&self, below_stage: &str) -> PathBuf {
        self.host().folder().join(below_stage)
    }

    /// The path on this machine of a file of the laid-out machine, or of the kubelet's folder.
    pub fn machine(&self, path: &str) -> PathBuf {
        self.outside("machine").join(path.trim_start_matches('/'))
    }

    /// Puts a program of this machine on the node, and gives the path that it has there.
    ///
    /// # Panics
    /// Where it cannot be copied.
    pub fn put_program(&self, program: &Path) -> String {
        let name = program.file_name().unwrap().to_str().unwrap();
        let copy = self.outside(name);
        // A hundred megabytes, which one file system need not hold twice.
        if !copy.exists() && fs::hard_link(program, &copy).is_err() {
            fs::copy(program, &copy).unwrap();
        }
        format!("/stage/{name}")
    }

    /// What the programs that a test has started there have logged.
    pub(crate) fn logs(&self) -> String {
        let files = fs::read_dir(self.host().folder()).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|file| file.extension().is_some_and(|extension| extension == "log"));
        let log = |file: PathBuf| {
            let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
            format!("{}:\n{text}\n", file.file_name().unwrap().display())
        };
        logs.map(log).collect()
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.programs
    }
}

/// The kubelet puts its pods beneath a cgroup that must be there. The host removes it with everything in it.
fn make_cgroups(name: &str) {
    let top = Path::new("/sys/fs/cgroup");
    let is_one_hierarchy = top.join("cgroup.controllers").exists();
    let hierarchies = fs::read_dir(top).unwrap().map(|entry| entry.unwrap());
    let hierarchies = hierarchies.filter(|entry| entry.file_type().unwrap().is_dir());
    let tops = if is_one_hierarchy { vec![top.into()] } else { hierarchies.map(|it| it.path()).collect() };
    tops.iter().for_each(|hierarchy| fs::create_dir(hierarchy.join(name)).unwrap());
}

/// Without an own network, two nodes would have one kubelet's ports, and its rules of iptables would be this machine's.
fn within_network<'a>(argv: &[&'a str]) -> Vec<&'a str> {
    let enter = ["/usr/bin/busybox", "nsenter", "--net=/run/node-network"];
    [&enter[..], argv].concat()
}

/// containerd's configuration, with CRI. Lowering a process's oom_score_adj needs CAP_SYS_RESOURCE, which a machine of tests
/// may lack.
fn configuration() -> String {
    let plugin = "plugins.\"io.containerd.grpc.v1.cri\"";
    format!(
        "version = 2\nroot = \"/stage/containerd\"\nstate = \"/run/containerd\"\n\
         [grpc]\naddress = \"{SOCKET}\"\n\
         [{plugin}]\nsandbox_image = \"{}\"\nrestrict_oom_score_adj = true\n\
         disable_apparmor = true\nenable_selinux = false\n",
        image::NAME
    )
}
