//! Answers the kubelet for one resource.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use inventory::kubelet::{DOMAIN, of_whole, slices};
use root::Root;
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use crate::api::deviceplugin::device_plugin_server::DevicePlugin;
use crate::api::deviceplugin::{
    AllocateRequest, AllocateResponse, CdiDevice, ContainerAllocateResponse,
    ContainerPreferredAllocationResponse, Device, DevicePluginOptions, DeviceSpec, Empty,
    ListAndWatchResponse, NumaNode, PreStartContainerRequest, PreStartContainerResponse,
    PreferredAllocationRequest, PreferredAllocationResponse, TopologyInfo,
};
use crate::args::{Allocate, Args};
use crate::look::generation;
use crate::offer::{Offer, Offered};
use crate::preference::preferred;

/// The kubelet has one stream a resource. More than these are refused, so that the kubelet's lives on.
pub(crate) const MOST_STREAMS: usize = 16;

/// The node that each GPU needs beside its own.
const KFD: &str = "/dev/kfd";

/// What may be asked about one resource.
#[derive(Debug, Clone)]
pub(crate) struct Plugin {
    pub(crate) resource: Arc<str>,
    pub(crate) root: Arc<Root>,
    pub(crate) args: Arc<Args>,
    pub(crate) offers: Receiver<Option<Arc<Offer>>>,
    /// A permit for each stream that may still begin.
    pub(crate) streams: Arc<Semaphore>,
}

/// What a plugin says of itself, when it registers and when it is asked.
pub(crate) fn options() -> DevicePluginOptions {
    DevicePluginOptions { pre_start_required: false, get_preferred_allocation_available: true }
}

#[tonic::async_trait]
impl DevicePlugin for Plugin {
    type ListAndWatchStream = Pin<Box<dyn Stream<Item = Result<ListAndWatchResponse, Status>> + Send>>;

    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(options()))
    }

    async fn list_and_watch(&self, _: Request<Empty>) -> Result<Response<Self::ListAndWatchStream>, Status> {
        let permit = Arc::clone(&self.streams).try_acquire_owned();
        let permit = permit
            .map_err(|_| Status::resource_exhausted(format!("{MOST_STREAMS} clients watch this resource")))?;
        let (resource, replicas) = (Arc::clone(&self.resource), self.args.replicas);
        let mut last = None;
        let lists = WatchStream::new(self.offers.clone()).filter_map(move |offer| {
            let _held = &permit;
            let offered = offer.as_ref().map_or(&[][..], |offer| offer.devices(&resource));
            let devices = offered.iter().flat_map(|it| listed(it, replicas)).collect();
            let list = ListAndWatchResponse { devices };
            let is_new = last.as_ref() != Some(&list);
            last = Some(list.clone());
            is_new.then_some(Ok(list))
        });
        Ok(Response::new(Box::pin(lists)))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let offer = self.offer()?;
        let devices = offer.devices(&self.resource);
        let requests = request.into_inner().container_requests.into_iter();
        let answers = requests.map(|asked| {
            let count = usize::try_from(asked.allocation_size).unwrap_or(0);
            let device_i_ds =
                preferred(devices, &asked.available_device_i_ds, &asked.must_include_device_i_ds, count);
            ContainerPreferredAllocationResponse { device_i_ds }
        });
        Ok(Response::new(PreferredAllocationResponse { container_responses: answers.collect() }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let offer = self.offer()?;
        // The kernel takes no lock for this file, so that the read does not wait.
        if generation(&self.root).as_ref() != Ok(&offer.generation) {
            return Err(Status::unavailable(
                "the node's GPUs have just changed, and are read anew within a second: create the pod again",
            ));
        }
        let requests = request.into_inner().container_requests;
        let mut asked = BTreeSet::new();
        let mut answers = Vec::new();
        for ids in requests.into_iter().map(|request| request.devices_ids) {
            let mut gpus: Vec<&Offered> = Vec::new();
            for id in ids {
                let gpu = self.device(&offer, &id)?;
                if !gpus.iter().any(|other| other.device.id == gpu.device.id) {
                    gpus.push(gpu);
                }
                if let Some(id) = asked.replace(id) {
                    return Err(Status::invalid_argument(format!("{id} is asked for twice")));
                }
            }
            answers.push(given(&gpus, self.args.allocate)?);
        }
        Ok(Response::new(AllocateResponse { container_responses: answers }))
    }

    async fn pre_start_container(
        &self,
        _: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        Ok(Response::new(PreStartContainerResponse {}))
    }
}

impl Plugin {
    fn offer(&self) -> Result<Arc<Offer>, Status> {
        let offer = self.offers.borrow().clone();
        offer.ok_or_else(|| Status::unavailable("the node's GPUs have not been read yet"))
    }

    /// The device of this id, if a pod may get it.
    fn device<'o>(&self, offer: &'o Offer, id: &str) -> Result<&'o Offered, Status> {
        let resource = &self.resource;
        let found = offer.devices(resource).iter().find(|it| it.device.id == of_whole(id));
        let found =
            found.filter(|it| slices(&it.device.id, self.args.replicas).iter().any(|known| known == id));
        let found = found.ok_or_else(|| {
            Status::not_found(format!("{DOMAIN}/{resource} has no device {id}: its card may be divided anew"))
        })?;
        match &found.unhealthy {
            Some(why) => Err(Status::failed_precondition(format!("no pod gets {id}: it {why}"))),
            None => Ok(found),
        }
    }
}

/// The kubelet's devices of a GPU.
fn listed(offered: &Offered, replicas: u32) -> impl Iterator<Item = Device> {
    let health = if offered.unhealthy.is_none() { "Healthy" } else { "Unhealthy" };
    let numa_node = offered.device.gpu.numa_node;
    let topology = numa_node.map(|node| TopologyInfo { nodes: vec![NumaNode { id: node.into() }] });
    let ids = slices(&offered.device.id, replicas).into_iter();
    ids.map(move |id| Device { id, health: health.to_owned(), topology: topology.clone() })
}

/// What a container gets with these GPUs.
fn given(gpus: &[&Offered], allocate: Allocate) -> Result<ContainerAllocateResponse, Status> {
    let mut given = ContainerAllocateResponse::default();
    match allocate {
        Allocate::Cdi => {
            for gpu in gpus {
                let name = gpu.device.cdi.clone();
                let name =
                    name.ok_or_else(|| Status::internal(format!("{} has no CDI name", gpu.device.id)))?;
                given.cdi_devices.push(CdiDevice { name });
            }
        }
        Allocate::Devices => {
            let nodes = gpus.iter().flat_map(|gpu| &gpu.device.gpu.nodes).map(|node| node.path.as_str());
            let spec = |path: &str| DeviceSpec {
                container_path: path.to_owned(),
                host_path: path.to_owned(),
                permissions: "rw".to_owned(),
            };
            given.devices.extend(std::iter::once(KFD).filter(|_| !gpus.is_empty()).chain(nodes).map(spec));
        }
    }
    Ok(given)
}
