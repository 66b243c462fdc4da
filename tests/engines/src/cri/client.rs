//! Calls the Container Runtime Interface through a Unix socket, and waits for each answer.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use super::api::image_service_client::ImageServiceClient;
use super::api::runtime_service_client::RuntimeServiceClient;

/// A kubelet waits two minutes for most answers (its `--runtime-request-timeout`).
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(super) struct Client {
    runtime: Runtime,
    channel: Channel,
}

impl Client {
    pub(super) fn connect(socket: &Path) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
        let channel = runtime.block_on(endpoint.timeout(PATIENCE).connect()).unwrap();
        Self { runtime, channel }
    }

    pub(super) fn pods(&self) -> RuntimeServiceClient<Channel> {
        RuntimeServiceClient::new(self.channel.clone())
    }

    pub(super) fn images(&self) -> ImageServiceClient<Channel> {
        ImageServiceClient::new(self.channel.clone())
    }

    /// The answer to a call of [`Self::pods`] or [`Self::images`].
    pub(super) fn wait<A>(
        &self,
        call: impl Future<Output = Result<Response<A>, Status>>,
    ) -> Result<A, Status> {
        self.runtime.block_on(call).map(Response::into_inner)
    }
}
