//! A kubelet's side of the device plugin API and of the pod resources API. It says what it heard, and asks what a test or a
//! measurement wants to know. It stands in for what Kubernetes 1.20's kubelet does not know, such as CDI devices, and for
//! faults; the tests with `real_kubelet` in their names run the real one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rocworker_device_plugin::api::deviceplugin::device_plugin_client::DevicePluginClient;
use rocworker_device_plugin::api::deviceplugin::registration_server::{Registration, RegistrationServer};
use rocworker_device_plugin::api::deviceplugin::{
    AllocateRequest, ContainerAllocateRequest, ContainerAllocateResponse,
    ContainerPreferredAllocationRequest, Device, Empty, ListAndWatchResponse, PreferredAllocationRequest,
    RegisterRequest,
};
use rocworker_device_plugin::api::podresources::pod_resources_lister_server::{
    PodResourcesLister, PodResourcesListerServer,
};
use rocworker_device_plugin::api::podresources::{
    ContainerDevices, ContainerResources, ListPodResourcesRequest, ListPodResourcesResponse, PodResources,
};
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Handle};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

const PATIENCE: Duration = Duration::from_secs(20);

/// The kubelet's folder beneath a root.
pub(crate) const FOLDER: &str = "var/lib/kubelet";

#[derive(Debug, Default)]
struct Shared {
    registered: Mutex<Vec<RegisterRequest>>,
    /// Why the kubelet refuses to register.
    refusal: Mutex<Option<String>>,
    /// The device ids of pods by their resource.
    pods: Mutex<BTreeMap<String, Vec<String>>>,
    /// Pods without devices.
    others: Mutex<Vec<String>>,
}

/// Stops, and removes its sockets, when dropped.
pub(crate) struct Kubelet {
    folder: PathBuf,
    shared: Arc<Shared>,
    handle: Handle,
    _end: tokio::sync::oneshot::Sender<()>,
}

/// A stream of lists.
pub(crate) struct Watching {
    handle: Handle,
    stream: Streaming<ListAndWatchResponse>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kubelet {
    /// Starts beneath a root, as a kubelet does: what lies in the folder of device plugins is removed.
    pub(crate) fn start(root: &Path) -> Self {
        let folder = root.join(FOLDER);
        let plugins = folder.join("device-plugins");
        std::fs::create_dir_all(&plugins).unwrap();
        std::fs::create_dir_all(folder.join("pod-resources")).unwrap();
        for entry in std::fs::read_dir(&plugins).unwrap().flatten() {
            std::fs::remove_file(entry.path()).ok();
        }
        std::fs::remove_file(folder.join("pod-resources/kubelet.sock")).ok();
        let shared = Arc::new(Shared::default());
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let (say, handle) = std::sync::mpsc::channel();
        let (of_thread, sockets) = (Arc::clone(&shared), folder.clone());
        std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listen =
                    |path: &str| UnixListenerStream::new(UnixListener::bind(sockets.join(path)).unwrap());
                let registration = Server::builder()
                    .add_service(RegistrationServer::new(Face(Arc::clone(&of_thread))))
                    .serve_with_incoming(listen("device-plugins/kubelet.sock"));
                let pods = Server::builder()
                    .add_service(PodResourcesListerServer::new(Face(of_thread)))
                    .serve_with_incoming(listen("pod-resources/kubelet.sock"));
                say.send(Handle::current()).unwrap();
                tokio::select! {
                    it = registration => it.unwrap(),
                    it = pods => it.unwrap(),
                    _ = ended => {}
                }
            });
            runtime.shutdown_background();
        });
        Self { folder, shared, handle: handle.recv().unwrap(), _end: end }
    }

    pub(crate) fn registered(&self) -> Vec<RegisterRequest> {
        lock(&self.shared.registered).clone()
    }

    /// Waits for a plugin of the resource.
    #[track_caller]
    pub(crate) fn plugin(&self, resource: &str) -> RegisterRequest {
        let begun = Instant::now();
        loop {
            if let Some(found) = self.registered().into_iter().rfind(|it| it.resource_name == resource) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "no plugin registers {resource}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn refuse(&self, why: Option<&str>) {
        *lock(&self.shared.refusal) = why.map(str::to_owned);
    }

    /// The pods that have devices of a resource.
    pub(crate) fn give(&self, resource: &str, ids: &[&str]) {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        lock(&self.shared.pods).insert(resource.to_owned(), ids);
    }

    /// A pod that runs, without devices.
    pub(crate) fn run(&self, name: &str) {
        lock(&self.shared.others).push(name.to_owned());
    }

    fn client(&self, resource: &str) -> DevicePluginClient<Channel> {
        let socket = self.folder.join("device-plugins").join(self.plugin(resource).endpoint);
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
        DevicePluginClient::new(self.handle.block_on(endpoint.connect()).unwrap())
    }

    /// # Errors
    /// The plugin has refused.
    pub(crate) fn try_watch(&self, resource: &str) -> Result<Watching, Status> {
        let mut client = self.client(resource);
        let stream = self.handle.block_on(client.list_and_watch(Empty {}))?.into_inner();
        Ok(Watching { handle: self.handle.clone(), stream })
    }

    pub(crate) fn watch(&self, resource: &str) -> Watching {
        self.try_watch(resource).unwrap()
    }

    /// # Errors
    /// The plugin has refused.
    pub(crate) fn allocate(&self, resource: &str, ids: &[&str]) -> Result<ContainerAllocateResponse, Status> {
        Asker::new(self, resource).allocate(ids)
    }

    /// # Errors
    /// The plugin has refused.
    pub(crate) fn preferred(
        &self,
        resource: &str,
        available: &[String],
        must: &[&str],
        count: i32,
    ) -> Result<Vec<String>, Status> {
        let request = ContainerPreferredAllocationRequest {
            available_device_i_ds: available.to_vec(),
            must_include_device_i_ds: must.iter().map(|id| (*id).to_owned()).collect(),
            allocation_size: count,
        };
        let request = PreferredAllocationRequest { container_requests: vec![request] };
        let mut client = self.client(resource);
        let answer = self.handle.block_on(client.get_preferred_allocation(request))?.into_inner();
        Ok(answer.container_responses.into_iter().next().unwrap().device_i_ds)
    }
}

/// A connection that stays for many calls, as a kubelet's does.
pub(crate) struct Asker {
    handle: Handle,
    client: DevicePluginClient<Channel>,
}

impl Asker {
    pub(crate) fn new(kubelet: &Kubelet, resource: &str) -> Self {
        Self { handle: kubelet.handle.clone(), client: kubelet.client(resource) }
    }

    /// # Errors
    /// The plugin has refused.
    pub(crate) fn allocate(&mut self, ids: &[&str]) -> Result<ContainerAllocateResponse, Status> {
        let devices_ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let request = AllocateRequest { container_requests: vec![ContainerAllocateRequest { devices_ids }] };
        let answer = self.handle.block_on(self.client.allocate(request))?.into_inner();
        Ok(answer.container_responses.into_iter().next().unwrap())
    }
}

impl Watching {
    /// The next list; `None` where the stream has ended.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Option<Vec<Device>> {
        let next = async { tokio::time::timeout(PATIENCE, self.stream.message()).await };
        let list = self.handle.block_on(next).expect("the plugin sends no list");
        list.ok().flatten().map(|list| list.devices)
    }

    /// Whether no list comes for a while.
    pub(crate) fn is_quiet_for(&mut self, time: Duration) -> bool {
        self.handle.block_on(async { tokio::time::timeout(time, self.stream.message()).await }).is_err()
    }

    /// Waits for a list of which this is so.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&[Device]) -> bool) -> Vec<Device> {
        let begun = Instant::now();
        loop {
            let list = self.next().unwrap_or_else(|| panic!("the stream has ended before {what}"));
            if is_so(&list) {
                return list;
            }
            assert!(begun.elapsed() < PATIENCE, "not so that {what}: {list:?}");
        }
    }
}

/// Ids of devices, in order.
pub(crate) fn ids(devices: &[Device]) -> Vec<&str> {
    devices.iter().map(|device| device.id.as_str()).collect()
}

/// The ids of devices that the kubelet must not give away.
pub(crate) fn unhealthy(devices: &[Device]) -> Vec<&str> {
    devices.iter().filter(|device| device.health != "Healthy").map(|device| device.id.as_str()).collect()
}

struct Face(Arc<Shared>);

#[tonic::async_trait]
impl Registration for Face {
    async fn register(&self, request: Request<RegisterRequest>) -> Result<Response<Empty>, Status> {
        if let Some(why) = lock(&self.0.refusal).clone() {
            return Err(Status::unknown(why));
        }
        lock(&self.0.registered).push(request.into_inner());
        Ok(Response::new(Empty {}))
    }
}

#[tonic::async_trait]
impl PodResourcesLister for Face {
    async fn list(
        &self,
        _: Request<ListPodResourcesRequest>,
    ) -> Result<Response<ListPodResourcesResponse>, Status> {
        let pods = lock(&self.0.pods).clone().into_iter().map(|(resource_name, device_ids)| {
            let devices = vec![ContainerDevices { resource_name, device_ids }];
            let container = ContainerResources { name: "main".to_owned(), devices };
            PodResources {
                name: "pod".to_owned(),
                namespace: "default".to_owned(),
                containers: vec![container],
            }
        });
        let other = |name| PodResources { name, namespace: "rocworker".to_owned(), containers: Vec::new() };
        let others = lock(&self.0.others).clone().into_iter().map(other);
        Ok(Response::new(ListPodResourcesResponse { pod_resources: pods.chain(others).collect() }))
    }
}
