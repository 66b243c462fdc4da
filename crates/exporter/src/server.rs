//! Accepts connections on the listening socket, and hands their requests on.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{spawn_local, yield_now};
use tokio::time::sleep;

use crate::connections::{Connection, Connections};
use crate::routes;
use crate::scraper::Scraper;
use crate::web_config::WebConfig;

/// The limit for a request's line and headers. Prometheus sends less than 1 KiB.
const MOST_HEADER_BYTES: usize = 16 << 10;

#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {error}; see who does with `ss -ltnp`, or set another --listen")]
pub(crate) struct Error {
    address: SocketAddr,
    error: std::io::Error,
}

pub(crate) async fn listen(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, Error> {
    let mut listeners = Vec::new();
    for &address in addresses {
        let listener = TcpListener::bind(address).await.map_err(|error| Error { address, error })?;
        listeners.push(listener);
    }
    Ok(listeners)
}

pub(crate) struct Server {
    scraper: Scraper,
    web_config: Option<WebConfig>,
    connections: Connections,
}

impl Server {
    pub(crate) fn new(scraper: Scraper, web_config: Option<WebConfig>) -> Rc<Self> {
        Rc::new(Self { scraper, web_config, connections: Connections::default() })
    }

    /// Serves without end.
    pub(crate) async fn serve(self: Rc<Self>, listeners: Vec<TcpListener>) {
        let mut tasks = Vec::new();
        for listener in listeners {
            tasks.push(spawn_local(self.clone().accept(listener)));
        }
        for task in tasks {
            task.await.ok();
        }
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, client)) => {
                    // The kernel keeps further clients waiting meanwhile.
                    if let Some(connection) = self.connections.admit(client.ip()).await {
                        drop(spawn_local(self.clone().attend(stream, client.ip(), connection)));
                    }
                    // A connection that has made room closes its descriptor now.
                    yield_now().await;
                }
                // A client that has left, or no descriptor that is free.
                Err(_) => sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Answers one client until it leaves or its time is over.
    async fn attend(self: Rc<Self>, stream: TcpStream, client: IpAddr, connection: Connection) {
        stream.set_nodelay(true).ok();
        let acceptor = self.web_config.as_ref().and_then(|config| config.current().acceptor.clone());
        let answers = async {
            match acceptor {
                None => self.answer(stream, client, &connection).await,
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        self.answer(stream, client, &connection).await;
                    }
                }
            }
        };
        tokio::select! {
            () = answers => {}
            () = connection.over() => {}
        }
    }

    async fn answer(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        client: IpAddr,
        connection: &Connection,
    ) {
        let service = service_fn(|request| async move {
            let _busy = connection.request();
            let web_config = self.web_config.as_ref();
            Ok::<_, Infallible>(routes::answer(&self.scraper, web_config, &request, client).await)
        });
        http1::Builder::new()
            // A client may close its half after its request, as `nc` does.
            .half_close(true)
            .max_buf_size(MOST_HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .await
            .ok();
    }
}
