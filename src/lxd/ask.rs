//! What the host's `lxc` or `incus` tells.

use std::time::Duration;

use reconcile::command::{self, Programs};
use serde::Deserialize;

use super::advice::Cdi;
use super::command::Client;
use super::resources::LIMIT;
use crate::groups;

/// It looks at every CPU, disk and card of the host before it answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// LXD's name for what it can do since 6.7 (its doc/api-extensions.md).
const AMD_CDI: &str = "gpu_cdi_amd";

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "neither lxc nor incus is in a folder of PATH: run this on the container's host, or give its answer to \
             `lxc query /1.0/resources` with --json FILE"
    )]
    NoClient,
    #[error(transparent)]
    Command(#[from] command::Error),
    #[error("{0} query /1.0/resources answers more than {limit} MiB, which no machine has", limit = LIMIT >> 20)]
    TooLong(&'static str),
}

/// The client that is there, LXD's before Incus's, or the one that is wanted.
///
/// # Errors
/// When there is none.
pub fn client(programs: &Programs, wanted: Option<Client>) -> Result<Client, Error> {
    let candidates = wanted.map_or_else(|| vec![Client::Lxc, Client::Incus], |client| vec![client]);
    let is_there = |client: &Client| programs.find(client.program()).is_some();
    candidates.into_iter().find(is_there).ok_or(Error::NoClient)
}

/// The host's resources, as the daemon tells them.
///
/// # Errors
/// When the client fails, or its answer is longer than [`LIMIT`].
pub fn resources(programs: &Programs, client: Client) -> Result<Vec<u8>, Error> {
    let programs = programs.keeping(LIMIT + 1);
    let output = programs.run(&[client.program(), "query", "/1.0/resources"], PATIENCE)?;
    if output.stdout.len() > LIMIT {
        return Err(Error::TooLong(client.program()));
    }
    Ok(output.stdout)
}

#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    api_extensions: Vec<String>,
}

/// Whether it takes AMD's CDI names; not known where it does not say.
#[must_use]
pub fn cdi(programs: &Programs, client: Client) -> Cdi {
    let asked = programs.run(&[client.program(), "query", "/1.0"], PATIENCE);
    let server: Option<Server> = asked.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    match server {
        Some(server) if server.api_extensions.iter().any(|name| name == AMD_CDI) => Cdi::Taken,
        Some(_) => Cdi::Refused,
        None => Cdi::Unknown,
    }
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
