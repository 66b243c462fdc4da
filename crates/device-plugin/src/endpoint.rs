//! Serves each resource at a socket of its own, and registers it with each kubelet that starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use inventory::kubelet::{self, DOMAIN};
use root::{Identity, Kind, Root};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::sync::watch::Receiver;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use crate::api::VERSION;
use crate::api::deviceplugin::RegisterRequest;
use crate::api::deviceplugin::device_plugin_server::DevicePluginServer;
use crate::api::deviceplugin::registration_client::RegistrationClient;
use crate::args::Args;
use crate::offer::Offer;
use crate::plugin::{MOST_STREAMS, Plugin, options};
use crate::pod_resources::connect;
use crate::said::Said;

/// How often sockets are looked at: a kubelet that starts removes every socket in its folder.
const EVERY: Duration = Duration::from_millis(500);

/// After so long a kubelet that has not taken a resource, or does not listen to it any more, is asked again.
const AGAIN: Duration = Duration::from_secs(10);

/// How long the kubelet may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Serves each resource from the first offer that has it, until the program ends: a resource that is no more has no
/// devices, which the kubelet must hear.
pub(crate) async fn serve_each(
    root: &Arc<Root>,
    args: &Arc<Args>,
    sockets: &Sockets,
    mut offers: Receiver<Option<Arc<Offer>>>,
) {
    let mut served = BTreeSet::new();
    loop {
        let offered: Vec<String> = {
            let offer = offers.borrow_and_update();
            offer.iter().flat_map(|offer| offer.resources.keys().cloned()).collect()
        };
        for resource in offered {
            if served.insert(resource.clone()) {
                let (root, args) = (Arc::clone(root), Arc::clone(args));
                tokio::spawn(serve(resource.into(), root, args, offers.clone(), sockets.clone()));
            }
        }
        if offers.changed().await.is_err() {
            return;
        }
    }
}

/// The sockets that this program has made, by their paths: another one's are left alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sockets(Arc<Mutex<BTreeMap<PathBuf, Identity>>>);

impl Sockets {
    fn made(&self, path: &Path, identity: Identity) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), identity);
    }

    /// Removes them, so that the kubelet sees at once that nothing is behind them.
    pub(crate) fn remove(&self, root: &Root) {
        for (path, identity) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            if root.identity(path).ok() == Some(*identity) {
                root.remove(path).ok();
            }
        }
    }
}

async fn serve(
    resource: Arc<str>,
    root: Arc<Root>,
    args: Arc<Args>,
    offers: Receiver<Option<Arc<Offer>>>,
    sockets: Sockets,
) {
    let name = kubelet::socket(&resource);
    let folder = args.kubelet_dir.join("device-plugins");
    let [path, kubelet, amds] =
        [&*name, "kubelet.sock", &kubelet::amds_socket(&resource)].map(|name| folder.join(name));
    let mut said = Said::default();
    loop {
        match listen(&root, &path, &kubelet) {
            Err(problem) => {
                said.say(problem);
                tokio::time::sleep(EVERY).await;
            }
            Ok(Listening { listener, own, kubelets }) => {
                sockets.made(&path, own);
                let plugin = Plugin {
                    resource: Arc::clone(&resource),
                    root: Arc::clone(&root),
                    args: Arc::clone(&args),
                    offers: offers.clone(),
                    // A client of the last socket may still have one of its streams.
                    streams: Arc::new(Semaphore::new(MOST_STREAMS)),
                };
                let server = Server::builder().add_service(DevicePluginServer::new(plugin.clone()));
                let server = tokio::spawn(server.serve_with_incoming(UnixListenerStream::new(listener)));
                let is_as_before = || has(&root, &path, own) && has(&root, &kubelet, kubelets);
                register(&plugin, &name, [&path, &kubelet, &amds], is_as_before, &mut said).await;
                server.abort();
                // Its listener has gone when it has ended.
                server.await.ok();
            }
        }
    }
}

/// The plugin's socket, and which files the two sockets are.
struct Listening {
    listener: UnixListener,
    own: Identity,
    kubelets: Identity,
}

/// Whether a path still has this file. A look that fails does not say otherwise.
fn has(root: &Root, path: &Path, identity: Identity) -> bool {
    match root.identity(path) {
        Ok(found) => found == identity,
        Err(error) => !error.is_not_found(),
    }
}

/// Listens at the plugin's socket, in place of one that an earlier run has left.
fn listen(root: &Root, path: &Path, kubelet: &Path) -> Result<Listening, String> {
    let shown = root.shown(kubelet);
    // Before the socket is made: a kubelet that starts meanwhile removes it.
    let kubelets = match root.lstat(kubelet).and_then(|meta| Ok((meta, root.identity(kubelet)?))) {
        Err(error) if error.is_not_found() => {
            return Err(format!(
                "{} is not there: the kubelet has not started, or its folder is another one (--kubelet-dir)",
                shown.display()
            ));
        }
        Ok((meta, _)) if meta.kind != Kind::Other => {
            return Err(format!(
                "{} is {}, not the kubelet's socket: remove it and restart the kubelet",
                shown.display(),
                meta.kind.described()
            ));
        }
        found => found.map_err(|error| error.to_string())?.1,
    };
    let shown = outside(root, path);
    if std::os::unix::net::UnixStream::connect(&shown).is_ok() {
        return Err(format!(
            "another rocworker-device-plugin serves {}: remove one of the two",
            shown.display()
        ));
    }
    root.remove(path).map_err(|error| error.to_string())?;
    let listener = UnixListener::bind(&shown)
        .map_err(|error| format!("cannot listen at {}: {error}", shown.display()))?;
    let own = root.identity(path).map_err(|error| error.to_string())?;
    Ok(Listening { listener, own, kubelets })
}

/// The path of a file beneath the Root as the kernel resolves it: a link on the way is the Root's.
pub(crate) fn outside(root: &Root, path: &Path) -> PathBuf {
    let folder = path.parent().and_then(|folder| root.without_links(folder));
    let path =
        folder.zip(path.file_name()).map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name));
    root.shown(path)
}

/// Registers the resource, and again where the kubelet has not taken it, or listens no more. Returns when another kubelet
/// has started: its socket is another one, or the plugin's has gone. Returns also when AMD's socket has gone: a kubelet
/// gives up the resource when the stream of AMD's plugin ends, though another plugin has registered it since
/// (pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go).
async fn register(
    plugin: &Plugin,
    name: &str,
    [path, kubelet, amds]: [&Path; 3],
    is_as_before: impl Fn() -> bool,
    said: &mut Said,
) {
    let root = &plugin.root;
    let mut has_amds = false;
    let resource = format!("{DOMAIN}/{}", plugin.resource);
    let mut is_taken = false;
    let mut was_heard = false;
    let mut tried: Option<Instant> = None;
    while is_as_before() && (!has_amds || root.is_there(amds)) {
        has_amds = root.is_there(amds);
        let is_heard = plugin.streams.available_permits() < MOST_STREAMS;
        if tried.is_some() && is_heard {
            said.say(format!("the kubelet has {resource}"));
            was_heard = true;
        } else if tried.is_none_or(|tried| tried.elapsed() >= AGAIN) {
            if was_heard {
                said.say(format!(
                    "the kubelet does not listen to {resource} any more, and is asked again: another plugin may have \
                     registered it"
                ));
            } else if is_taken {
                let path = root.shown(path);
                said.say(format!(
                    "the kubelet has taken {resource} and does not connect to {}: see its log",
                    path.display()
                ));
            }
            let answer = ask(plugin, name, kubelet).await;
            is_taken = answer.is_ok();
            if let Err(problem) = answer {
                said.say(problem);
            }
            tried = Some(Instant::now());
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn ask(plugin: &Plugin, name: &str, kubelet: &Path) -> Result<(), String> {
    let kubelet = outside(&plugin.root, kubelet);
    let mut client = RegistrationClient::new(connect(&kubelet, PATIENCE).await?);
    let resource_name = format!("{DOMAIN}/{}", plugin.resource);
    let request = RegisterRequest {
        version: VERSION.to_owned(),
        endpoint: name.to_owned(),
        resource_name: resource_name.clone(),
        options: Some(options()),
    };
    client.register(request).await.map(drop).map_err(|status| {
        format!("{}: the kubelet refuses {resource_name}: {}", kubelet.display(), status.message())
    })
}
