//! Asks the kubelet which devices pods have.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use inventory::kubelet::{DOMAIN, of_whole};
use tonic::transport::{Channel, Endpoint};

use crate::api::podresources::ListPodResourcesRequest;
use crate::api::podresources::pod_resources_lister_client::PodResourcesListerClient;

/// The kubelet answers from its memory. A new offer waits for it.
const PATIENCE: Duration = Duration::from_millis(400);

/// A connection to a socket, on which each call may take so long.
///
/// # Errors
/// The socket does not take one.
pub(crate) async fn connect(socket: &Path, patience: Duration) -> Result<Channel, String> {
    let failed = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map_or(error.to_string(), ToString::to_string);
        format!("cannot connect to {}: {cause}", socket.display())
    };
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).map_err(failed)?;
    endpoint.connect_timeout(patience).timeout(patience).connect().await.map_err(failed)
}

/// The ids of the GPUs that pods have. `own`: the name of a pod that runs. A kubelet that has just started answers before
/// it has heard of its pods.
///
/// # Errors
/// A sentence on why the kubelet does not say.
pub(crate) async fn held(socket: &Path, own: Option<&str>) -> Result<BTreeSet<String>, String> {
    let failed = |why: &str| {
        format!("{}: the kubelet does not say which pods have which GPUs: {why}", socket.display())
    };
    let mut client = PodResourcesListerClient::new(connect(socket, PATIENCE).await?);
    let answer = client.list(ListPodResourcesRequest {}).await.map_err(|status| failed(status.message()))?;
    let pods = answer.into_inner().pod_resources;
    if own.is_some_and(|own| pods.iter().all(|pod| pod.name != own)) {
        return Err(failed("it has not heard of its pods yet"));
    }
    let devices = pods.into_iter().flat_map(|pod| pod.containers).flat_map(|container| container.devices);
    let ours =
        devices.filter(|it| it.resource_name.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN));
    Ok(ours.flat_map(|it| it.device_ids).map(|id| of_whole(&id).to_owned()).collect())
}
