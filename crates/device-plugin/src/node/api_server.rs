//! Patches a node by the API server that Kubernetes names to each pod (Kubernetes' documentation, "Accessing the
//! Kubernetes API from a Pod").

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use root::Root;
use serde::Deserialize;
use serde_json::json;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The longest that the API server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most characters that the log repeats of a refusal.
const LONGEST_MESSAGE: usize = 300;

/// The most bytes that are read of a file of the service account.
const LIMIT: usize = 1 << 20;

#[derive(Debug, Deserialize)]
struct Node {
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

/// An answer that is no node (`Status` of the API).
#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

/// Sets labels of a node, or removes them, and gives the labels that it then has.
///
/// # Errors
/// A sentence on why the API server did not do it.
pub(super) fn patch_labels(
    service_account: &Path,
    node: &str,
    labels: &BTreeMap<&str, Option<&str>>,
) -> Result<BTreeMap<String, String>, String> {
    let account = Root::open(service_account).map_err(|error| error.to_string())?;
    let file = |name: &str| account.read_text(name, LIMIT).map_err(|error| error.to_string());
    let (token, authority) = (file("token")?, file("ca.crt")?);
    if token.trim().is_empty() {
        return Err(format!("{} is empty", service_account.join("token").display()));
    }
    let url = format!("https://{}/api/v1/nodes/{node}", address()?);
    let failed = |error: ureq::Error| format!("PATCH {url}: {error}");
    let certificates: Result<Vec<_>, _> = ureq::tls::parse_pem(authority.as_bytes())
        .filter_map(|item| match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        })
        .collect();
    let certificates: Vec<Certificate<'static>> = certificates.map_err(failed)?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .build()
        .into();
    // RFC 7396: null removes a label.
    let patch = json!({ "metadata": { "labels": labels } }).to_string();
    let mut answer = agent
        .patch(&url)
        .header("Authorization", format!("Bearer {}", token.trim()))
        .header("Content-Type", "application/merge-patch+json")
        .header("Accept", "application/json")
        .send(patch)
        .map_err(failed)?;
    let status = answer.status();
    let text = answer.body_mut().read_to_string().map_err(failed)?;
    if !status.is_success() {
        let why = serde_json::from_str(&text).map_or_else(
            |_| String::new(),
            |it: Refusal| {
                let message: String = it.message.chars().take(LONGEST_MESSAGE).collect();
                format!(": {message}")
            },
        );
        return Err(format!("PATCH {url}: the API server answers {status}{why}"));
    }
    let node: Node = serde_json::from_str(&text)
        .map_err(|error| format!("PATCH {url}: the answer is no node: {error}"))?;
    Ok(node.metadata.labels)
}

/// Host and port of the API server.
#[allow(clippy::disallowed_methods, reason = "Kubernetes names its API server in a pod's environment alone")]
fn address() -> Result<String, String> {
    let variable = |name: &str| {
        std::env::var(name)
            .map_err(|_| format!("{name} is not set: --label-node works in a pod of Kubernetes"))
    };
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}
