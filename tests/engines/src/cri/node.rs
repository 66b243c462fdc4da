//! A Kubernetes node without its kubelet: containerd with CRI and CNI on a laid-out machine to which rocworker was
//! applied, in a network namespace of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use layout::Machine;
use support::real;
use support::stage::Stage;
use tonic::{Response, Status};

use super::api;
use super::client::Client;
use crate::containerd::{Containerd, Start};
use crate::engine::{CONTAINERD_2_1, Unpacked};
use crate::host::Host;
use crate::{image, look};

/// CRI's containers are in this namespace of containerd.
const NAMESPACE: &str = "k8s.io";
const PATH: &str = "/usr/sbin:/usr/bin";
/// The package puts the wrapper there (crates/engines/src/program.rs).
const WRAPPER_FOLDER: &str = "/usr/lib/rocworker";

/// CDI is on by default in containerd 2.1: switched off here, it shows that `apply` switches it on. A pod's own process
/// would get an oom_score_adj of -998, for which root lacks CAP_SYS_RESOURCE in some virtual machines.
const CONFIG: &str = r#"
version = 3
root = "/stage/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "IMAGE"

[plugins."io.containerd.cri.v1.runtime"]
enable_cdi = false
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/stage/cni"]
"#;

/// The addresses are in a network namespace of their own, and reach no other network.
const NETWORK: &str = r#"{
    "cniVersion": "1.0.0", "name": "pods",
    "plugins": [{
        "type": "bridge", "bridge": "pods0", "isGateway": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.7.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
    }]
}"#;
/// Where host-local keeps who has which address.
const ADDRESSES: &str = "/var/lib/cni/networks/pods";

/// Starts containerd with a loopback device that is up: CRI's streaming server listens there.
const BOOT: &str = "/usr/bin/busybox ip link set lo up && exec /usr/bin/containerd";

/// What a node is made of.
#[derive(Debug)]
pub struct Parts {
    engine: Unpacked,
    rocworker: PathBuf,
    /// The folder of the plugins.
    cni: PathBuf,
}

impl Parts {
    /// None where the calling test is to be skipped.
    ///
    /// # Panics
    /// Where something is missing in a full run.
    #[must_use = "a test that cannot run must return"]
    #[track_caller]
    pub fn found() -> Option<Self> {
        let [cni] = real::require_made(["ROCWORKER_CNI"], &[])?;
        let rocworker = real::require_root_and_built("ROCWORKER_PROGRAM", &["busybox"])?;
        Some(Self { engine: CONTAINERD_2_1.unpacked()?, rocworker, cni })
    }
}

#[derive(Debug)]
pub struct Node {
    client: Client,
    containerd: Containerd,
}

/// A pod that runs.
#[derive(Debug)]
pub struct Pod {
    id: String,
    config: api::PodSandboxConfig,
    /// Its address, by CNI.
    pub address: String,
}

/// What a container asks for.
#[derive(Debug, Default)]
pub struct Container<'a> {
    pub name: &'a str,
    /// CDI names in CRI's field for them.
    pub cdi_devices: &'a [&'a str],
    /// CDI names in an annotation, with which a device plugin may answer, too.
    pub annotated: Option<&'a str>,
    /// Nodes, as a device plugin answers with.
    pub devices: &'a [&'a str],
    pub environment: &'a [(&'a str, &'a str)],
}

impl Node {
    /// The machine after `rocworker apply` with this configuration.
    ///
    /// # Panics
    /// Where the node does not come up.
    pub fn on(machine: &Machine, parts: &Parts, config: &str) -> Self {
        let stage = Stage::set(machine);
        stage.put("etc/group", "root:x:0:\nvideo:x:44:\nrender:x:992:\n");
        stage.put("etc/rocworker/config.yaml", config);
        stage.put("etc/containerd/config.toml", &CONFIG.replace("IMAGE", image::NAME));
        stage.put("etc/cni/net.d/pods.conflist", NETWORK);
        let folder = stage.folder();
        let seen = folder.join("seen");
        fs::create_dir(&seen).unwrap();
        fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(folder.join("cni")).unwrap();
        for plugin in ["bridge", "host-local", "loopback"] {
            fs::copy(parts.cni.join(plugin), folder.join("cni").join(plugin)).unwrap();
        }
        fs::copy(&parts.rocworker, folder.join("rocworker")).unwrap();
        let made = folder.join("made");
        fs::create_dir(&made).unwrap();
        image::write(&made, &made.join("image.tar"), &["PATH=/bin"], &["/bin/sleep", "1000"]);

        let host = Host::set(stage, &parts.engine);
        host.busybox(&["mkdir", "-p", WRAPPER_FOLDER]).well();
        let wrapper = format!("{WRAPPER_FOLDER}/runc-amd-wrapper");
        host.busybox(&["cp", &format!("{}/runc", crate::engine::SHIM_FOLDER), &wrapper]).well();
        host.call(PATH, &["/stage/rocworker", "apply"]).well();

        let argv = ["/usr/bin/busybox", "unshare", "-n", "/usr/bin/busybox", "sh", "-c", BOOT];
        let start = Start { path: PATH.to_owned(), argv: argv.map(str::to_owned).into() };
        let containerd = Containerd::begin(&CONTAINERD_2_1, host, start).in_namespace(NAMESPACE);
        containerd.ctr(&["images", "import", "/stage/made/image.tar"]).well();
        let client = Client::connect(&containerd.host().root().join("run/containerd/containerd.sock"));
        let node = Self { client, containerd };
        // CRI learns of an image by an event.
        node.containerd.until("CRI knows the image", || {
            let request = api::ImageStatusRequest { image: Some(look_image()) };
            node.answer(node.client.images().image_status(request))
                .image
                .is_some_and(|image| !image.id.is_empty())
        });
        node.containerd.until("runtime and network are ready", || {
            let answer = node.answer(node.client.pods().status(api::StatusRequest {}));
            let conditions = answer.status.unwrap().conditions;
            ["RuntimeReady", "NetworkReady"]
                .iter()
                .all(|kind| conditions.iter().any(|condition| condition.r#type == *kind && condition.status))
        });
        node
    }

    #[track_caller]
    fn answer<A>(&self, call: impl Future<Output = Result<Response<A>, Status>>) -> A {
        self.client.wait(call).unwrap_or_else(|status| panic!("{status}"))
    }

    pub fn containerd(&self) -> &Containerd {
        &self.containerd
    }

    /// The runtime's name and the versions of it and of its interface.
    ///
    /// # Panics
    /// Where containerd does not answer.
    pub fn version(&self) -> [String; 3] {
        let api::VersionResponse { runtime_name, runtime_version, runtime_api_version } =
            self.answer(self.client.pods().version(api::VersionRequest {}));
        [runtime_name, runtime_version, runtime_api_version]
    }

    /// `runtime`: the handler of a RuntimeClass; an empty one is the default.
    ///
    /// # Panics
    /// Where containerd does not run it.
    #[track_caller]
    pub fn run_pod(&self, name: &str, runtime: &str) -> Pod {
        let config = api::PodSandboxConfig {
            metadata: Some(api::PodSandboxMetadata {
                name: name.to_owned(),
                uid: format!("{name}-uid"),
                namespace: "default".to_owned(),
            }),
            linux: Some(api::LinuxPodSandboxConfig {
                cgroup_parent: format!("/{}", self.containerd.host().cgroup()),
                security_context: Some(api::LinuxSandboxSecurityContext {
                    namespace_options: Some(namespaces()),
                }),
            }),
        };
        let request =
            api::RunPodSandboxRequest { config: Some(config.clone()), runtime_handler: runtime.to_owned() };
        let id = self.answer(self.client.pods().run_pod_sandbox(request)).pod_sandbox_id;
        let request = api::PodSandboxStatusRequest { pod_sandbox_id: id.clone() };
        let answer = self.answer(self.client.pods().pod_sandbox_status(request));
        let address = answer.status.and_then(|status| status.network).unwrap().ip;
        Pod { id, config, address }
    }

    /// Creates a container, and does not start it: its id, or why containerd refuses.
    ///
    /// # Errors
    /// containerd's message.
    pub fn create(&self, pod: &Pod, asked: &Container<'_>) -> Result<String, String> {
        let annotation = asked.annotated.map(|names| ("cdi.k8s.io/gpus".to_owned(), names.to_owned()));
        let config = api::ContainerConfig {
            metadata: Some(api::ContainerMetadata { name: asked.name.to_owned() }),
            image: Some(look_image()),
            envs: (asked.environment.iter())
                .map(|(key, value)| api::KeyValue { key: (*key).into(), value: (*value).into() })
                .collect(),
            mounts: vec![api::Mount { container_path: "/seen".into(), host_path: look::SEEN.into() }],
            devices: (asked.devices.iter())
                .map(|path| api::Device {
                    container_path: (*path).into(),
                    host_path: (*path).into(),
                    permissions: "rw".into(),
                })
                .collect(),
            annotations: annotation.into_iter().collect(),
            linux: Some(api::LinuxContainerConfig {
                security_context: Some(api::LinuxContainerSecurityContext {
                    namespace_options: Some(namespaces()),
                }),
            }),
            cdi_devices: (asked.cdi_devices.iter())
                .map(|name| api::CdiDevice { name: (*name).into() })
                .collect(),
        };
        let request = api::CreateContainerRequest {
            pod_sandbox_id: pod.id.clone(),
            config: Some(config),
            sandbox_config: Some(pod.config.clone()),
        };
        let created = self.client.wait(self.client.pods().create_container(request));
        created.map(|created| created.container_id).map_err(|status| status.message().to_owned())
    }

    /// Starts a created container.
    ///
    /// # Errors
    /// containerd's message.
    pub fn start(&self, id: &str) -> Result<(), String> {
        let request = api::StartContainerRequest { container_id: id.to_owned() };
        let started = self.client.wait(self.client.pods().start_container(request));
        started.map(drop).map_err(|status| status.message().to_owned())
    }

    /// A container that sleeps until its pod is removed.
    ///
    /// # Panics
    /// Where containerd refuses.
    #[track_caller]
    pub fn run(&self, pod: &Pod, asked: &Container<'_>) -> String {
        let id = self.create(pod, asked).unwrap_or_else(|refusal| panic!("{asked:?}: {refusal}"));
        self.start(&id).unwrap_or_else(|refusal| panic!("{asked:?}: {refusal}"));
        id
    }

    /// The output of a command in a container.
    ///
    /// # Panics
    /// Where it fails.
    #[track_caller]
    pub fn exec(&self, id: &str, argv: &[&str]) -> String {
        let cmd = argv.iter().map(|word| (*word).to_owned()).collect();
        let request = api::ExecSyncRequest { container_id: id.to_owned(), cmd, timeout: 60 };
        let answer = self.answer(self.client.pods().exec_sync(request));
        let stderr = String::from_utf8_lossy(&answer.stderr);
        assert_eq!(answer.exit_code, 0, "{argv:?}: {stderr}");
        String::from_utf8(answer.stdout).unwrap()
    }

    /// The GPU nodes that a container has, and what comes of opening each.
    ///
    /// # Panics
    /// Where the container cannot look.
    #[track_caller]
    pub fn look(&self, id: &str) -> String {
        self.exec(id, &look::look("pod"));
        self.containerd.seen("pod")
    }

    /// The result of opening a node that the container makes itself.
    ///
    /// # Panics
    /// Where the container cannot make it.
    #[track_caller]
    pub fn forge(&self, id: &str, major: &str, minor: &str) -> String {
        self.exec(id, &look::forge("pod", major, minor));
        self.containerd.seen("pod")
    }

    /// Stops a pod with all its containers, and removes it.
    ///
    /// # Panics
    /// Where containerd refuses.
    #[track_caller]
    pub fn remove(&self, pod: Pod) {
        let request = api::StopPodSandboxRequest { pod_sandbox_id: pod.id.clone() };
        self.answer(self.client.pods().stop_pod_sandbox(request));
        let request = api::RemovePodSandboxRequest { pod_sandbox_id: pod.id };
        self.answer(self.client.pods().remove_pod_sandbox(request));
    }

    /// The addresses that pods have.
    pub fn addresses(&self) -> Vec<String> {
        let names = self.containerd.host().names_in(ADDRESSES);
        names.into_iter().filter(|name| name.starts_with("10.")).collect()
    }

    /// The network namespaces that containerd keeps for pods, and the ends of their networks on the node.
    ///
    /// # Panics
    /// Where the node cannot list its network devices.
    pub fn networks(&self) -> (Vec<String>, Vec<String>) {
        let host = self.containerd.host();
        let namespaces = host.names_in("/var/run/netns");
        let pids = host.pids_of("containerd");
        let [containerd] = pids.as_slice() else { panic!("{pids:?}") };
        let devices =
            host.busybox(&["nsenter", "-t", containerd, "-n", "/usr/bin/busybox", "ip", "-o", "link"]);
        let devices = devices.well();
        let names = devices.lines().filter_map(|line| line.split(": ").nth(1));
        let ends = names.filter(|name| name.starts_with("veth")).map(str::to_owned).collect();
        (namespaces, ends)
    }

    /// Checks that removed pods have left nothing.
    ///
    /// # Panics
    /// With the leftovers.
    #[track_caller]
    pub fn assert_nothing_is_left(&self) {
        self.containerd.assert_nothing_is_left();
        assert_eq!(self.addresses(), [""; 0]);
        assert_eq!(self.networks(), (Vec::new(), Vec::new()));
    }
}

fn look_image() -> api::ImageSpec {
    api::ImageSpec { image: image::NAME.to_owned() }
}

/// As a kubelet has them: only processes are each container's own.
fn namespaces() -> api::NamespaceOption {
    let [pod, container] = [api::NamespaceMode::Pod, api::NamespaceMode::Container].map(i32::from);
    api::NamespaceOption { network: pod, pid: container, ipc: pod }
}
