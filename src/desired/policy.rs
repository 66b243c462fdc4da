//! What the wrapper may do for containers: /etc/rocworker/wrapper.json.

use std::collections::BTreeMap;
use std::path::PathBuf;

use allocation::policy as parser;
use amdgpu::Gpu;
use reconcile::{Action, Stage};
use serde::Serialize;

use crate::config::{Config, DefaultGrant, Memlock, Requests, Sharing};
use crate::render::{self, Templates};
use crate::selection::Selection;

/// Where the wrapper looks for it; wrappers/runc-amd-wrapper knows no other place.
pub const PATH: &str = "/etc/rocworker/wrapper.json";

/// The folder whose folders Concourse's charm mounts into every container.
const SRV: &str = "/srv";

/// The policy, before it is rendered. Lists all GPUs, so that the wrapper can hold a node against the card that it
/// should be of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The real runc; `None`: the next one on PATH.
    pub runtime: Option<PathBuf>,
    pub requests: &'static str,
    pub default: &'static str,
    pub sharing: &'static str,
    pub gpus: Vec<Entry>,
    pub wait_limit_s: u32,
    pub idle_grace_s: Option<u32>,
    pub folders: Vec<PathBuf>,
    pub edits: Edits,
}

/// A GPU as a policy names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub index: u32,
    pub pci: String,
    pub render: String,
    pub uuid: Option<String>,
    /// The card that its node must be of: for a partition, too.
    pub card: String,
    /// KFD's number, as text: it has 64 bits, which not every reader of JSON keeps.
    pub hive: Option<String>,
}

/// What containers with a GPU get beside it; what is not configured is not written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Edits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memlock_bytes: Option<Limit>,
    /// `HSA_OVERRIDE_GFX_VERSION` by render node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gfx_override: BTreeMap<String, String>,
}

/// A number of bytes, or `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Limit {
    Bytes(u64),
    Word(&'static str),
}

/// What came out of the template is no policy, or not the one that should be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Render(#[from] render::Error),
    #[error("{place} gives a policy that cannot be read again: {cause}")]
    Parse { place: String, cause: allocation::Error },
    #[error("{place} gives a policy that names other GPUs than it was asked for: {given} and not {asked}")]
    Different { place: String, given: String, asked: String },
}

impl Policy {
    /// Whether a container gets a GPU through the wrapper neither when it asks nor when it does not.
    #[must_use]
    pub fn gives_nothing(&self) -> bool {
        self.requests == "deny" && self.default == "none"
    }
}

/// What the wrapper should be told. `concourse`: whether this machine is a Concourse worker, whose containers are all
/// given GPUs unless the configuration says otherwise.
#[must_use]
pub fn policy(config: &Config, selection: &Selection<'_>, concourse: bool) -> Policy {
    let wrapper = &config.wrapper;
    let requests = wrapper.requests.unwrap_or(if concourse { Requests::All } else { Requests::Deny });
    // The first container would hold every GPU.
    let everyone = concourse && wrapper.sharing == Sharing::Shared;
    let default = wrapper.default.unwrap_or(if everyone { DefaultGrant::All } else { DefaultGrant::None });
    let folders = wrapper.folders.clone();
    Policy {
        runtime: wrapper.runtime.clone(),
        requests: match requests {
            Requests::Deny => "deny",
            Requests::Named => "named",
            Requests::Count => "count",
            Requests::All => "all",
        },
        default: match default {
            DefaultGrant::None => "none",
            DefaultGrant::All => "all",
        },
        sharing: match wrapper.sharing {
            Sharing::Shared => "shared",
            Sharing::Exclusive => "exclusive",
        },
        gpus: selection.gpus.iter().copied().filter_map(entry).collect(),
        wait_limit_s: wrapper.wait_limit_s,
        idle_grace_s: wrapper.idle_grace_s,
        folders: folders.unwrap_or_else(|| if concourse { vec![SRV.into()] } else { Vec::new() }),
        edits: Edits {
            shm_bytes: wrapper.edits.shm_bytes,
            memlock_bytes: wrapper.edits.memlock.map(|memlock| match memlock {
                Memlock::Bytes(bytes) => Limit::Bytes(bytes),
                Memlock::Unlimited => Limit::Word("unlimited"),
            }),
            gfx_override: gfx_override(config, selection),
        },
    }
}

/// `None` of a GPU without a card's address: what its node is of could not be held against anything, so that the
/// wrapper gives it to nobody.
fn entry(gpu: &Gpu) -> Option<Entry> {
    let card = gpu.pci?.to_string();
    Some(Entry {
        index: gpu.index?,
        pci: card.clone(),
        render: node(gpu)?,
        uuid: gpu.uuid.as_ref().ok().map(ToString::to_string),
        card,
        hive: gpu.hive_id.map(|hive| hive.to_string()),
    })
}

fn node(gpu: &Gpu) -> Option<String> {
    gpu.render.as_ref()?.path.to_str().map(str::to_owned)
}

fn gfx_override(config: &Config, selection: &Selection<'_>) -> BTreeMap<String, String> {
    let versions = &config.wrapper.edits.gfx_override;
    let of = |gpu: &&Gpu| Some((node(gpu)?, versions.get(&gpu.gfx.as_ref().ok()?.to_string())?.clone()));
    selection.gpus.iter().filter_map(of).collect()
}

/// The policy's text, from its template.
///
/// # Errors
/// When the template does not fit.
pub fn rendered(templates: &Templates, policy: &Policy) -> Result<String, render::Error> {
    templates.render(render::WRAPPER, policy)
}

/// As [`rendered`], parsed again as the wrapper does, and naming the GPUs that it was asked for. What else an override
/// says is its author's decision.
///
/// # Errors
/// When the template does not give that.
pub fn text(templates: &Templates, policy: &Policy) -> Result<String, Error> {
    let place = || templates.place(render::WRAPPER);
    let text = rendered(templates, policy)?;
    let parsed = parser::Policy::parse(&text).map_err(|cause| Error::Parse { place: place(), cause })?;
    let name = |index: u32, pci: String, render: &str| {
        format!("{index} ({pci}, {})", render.trim_start_matches("/dev/dri/"))
    };
    let asked: Vec<String> =
        policy.gpus.iter().map(|gpu| name(gpu.index, gpu.card.clone(), &gpu.render)).collect();
    let given: Vec<String> = parsed
        .gpus
        .iter()
        .flatten()
        .map(|gpu| {
            let card = gpu.card.map_or_else(|| "no card".to_owned(), |card| card.to_string());
            name(gpu.index, card, &gpu.render.to_string())
        })
        .collect();
    if given != asked || parsed.gpus.is_none() {
        let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let given = if parsed.gpus.is_none() { "all of the CDI spec".to_owned() } else { list(given) };
        return Err(Error::Different { place: place(), given, asked: list(asked) });
    }
    Ok(text)
}

/// The policy's file.
#[must_use]
pub fn action(text: String) -> Action {
    Action::file(Stage::Expose, PATH, text, "the wrapper is told what containers may have")
}
