//! What the host's `lxc` or `incus` answers.

use std::time::Duration;

use anyhow::Context as _;
use host::groups;
use reconcile::command::Programs;
use serde::Deserialize;

use super::command::Client;
use super::resources::LIMIT;

/// How long LXD may take: it looks at every CPU, disk and card of the host before it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// LXD's name for what it can do since 6.7 (its doc/api-extensions.md).
const AMD_CDI: &str = "gpu_cdi_amd";

/// The client that is there, LXD's before Incus's, or the one that is wanted.
///
/// # Errors
/// Neither client is installed, or the wanted one is not.
pub fn client(programs: &Programs, wanted: Option<Client>) -> anyhow::Result<Client> {
    let candidates = [Client::Lxc, Client::Incus].into_iter();
    let mut candidates = candidates.filter(|client| wanted.is_none_or(|wanted| wanted == *client));
    candidates.find(|client| programs.find(client.program()).is_some()).context(
        "neither lxc nor incus is in a folder of PATH: run this on the container's host, or give its answer to \
         `lxc query /1.0/resources` with --resources FILE",
    )
}

/// The host's resources, as the daemon lists them.
///
/// # Errors
/// When the client fails, or its answer is longer than [`LIMIT`].
pub fn resources(programs: &Programs, client: Client) -> anyhow::Result<Vec<u8>> {
    let output = programs.keeping(LIMIT + 1).run(&[client.program(), "query", "/1.0/resources"], PATIENCE)?;
    anyhow::ensure!(
        output.stdout.len() <= LIMIT,
        "{} query /1.0/resources answers more than {} MiB, which no machine has",
        client.program(),
        LIMIT >> 20
    );
    Ok(output.stdout)
}

/// Whether the client's daemon takes AMD's CDI names; `None` where it does not tell.
#[must_use]
pub fn takes_cdi(programs: &Programs, client: Client) -> Option<bool> {
    #[derive(Deserialize)]
    struct Server {
        #[serde(default)]
        api_extensions: Vec<String>,
    }
    let output = programs.run(&[client.program(), "query", "/1.0"], PATIENCE).ok()?;
    let server: Server = serde_json::from_slice(&output.stdout).ok()?;
    Some(server.api_extensions.iter().any(|name| name == AMD_CDI))
}

/// The number of the group render in a container, whether it runs or not, from its /etc/group.
///
/// # Errors
/// A sentence on why it is not known.
pub fn render_of(programs: &Programs, client: Client, container: &str) -> Result<u32, String> {
    let file = format!("{container}/etc/group");
    let pulled = programs.run(&[client.program(), "file", "pull", &file, "-"], PATIENCE);
    let output = pulled.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    groups::gid_in(&text, "render").ok_or_else(|| {
        format!("{file} names no group render: make it inside with groupadd --system render, then ask again")
    })
}
