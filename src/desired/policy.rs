//! What the wrapper may do for containers: /etc/rocworker/wrapper.json.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use allocation::policy as parser;
use cdi::{self, Node};
use config::selection::Selection;
use config::{Component, Config, DefaultGrant, Requests, Sharing, Size};
use inventory::partitioning::Chip;
use inventory::{Gpu, Inventory, Reading};
use reconcile::{Action, Stage};
use render::{self, Templates};
use serde::Serialize;
use serde_json::Value;

/// The folder whose folders Concourse's charm mounts into every container.
pub const SRV: &str = "/srv";

/// The policy, before it is rendered. Of GPUs it lists only what a create needs, so that it changes only when a grant
/// would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The path of the real runc; `None`: the next one on PATH.
    pub runtime: Option<PathBuf>,
    pub requests: Requests,
    pub pods: Option<Requests>,
    pub default: DefaultGrant,
    pub sharing: Sharing,
    pub gpus: Vec<Entry>,
    /// What each of them needs beside its own nodes: /dev/kfd.
    pub kfd: Option<Node>,
    pub wait_limit_s: u32,
    pub idle_grace_s: Option<u32>,
    pub quarantine: bool,
    pub folders: Vec<PathBuf>,
    pub edits: Edits,
}

/// A GPU that containers may get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub index: u32,
    /// What a request may call it besides: its uuid, its card's uuid and its card's address.
    pub names: Vec<String>,
    /// The card that its nodes must be of.
    pub card: String,
    /// The compute mode of which the nodes are; `None` of a chip that cannot be divided.
    pub compute: Option<String>,
    pub nodes: Vec<Node>,
    /// KFD's number, as text: it has 64 bits, which not every reader of JSON keeps.
    pub hive: Option<String>,
    pub numa_node: Option<u32>,
    /// A processor's own among cards.
    pub integrated: bool,
    /// Fields for templates of schema 1, which the wrapper reads too.
    #[serde(flatten)]
    pub first_schema: FirstSchema,
}

/// What else a GPU's entry had in schema 1. Only an override of the template may still write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstSchema {
    pub pci: String,
    pub render: String,
    pub uuid: Option<String>,
    /// The uuid of a partition's card.
    pub card_uuid: Option<String>,
}

/// What containers with a GPU get beside it; what is not configured is not written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Edits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<Value>,
    /// A number of bytes, or `unlimited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memlock_bytes: Option<Value>,
    /// `HSA_OVERRIDE_GFX_VERSION` by render node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gfx_override: BTreeMap<String, String>,
}

impl Policy {
    /// Whether a container gets a GPU through the wrapper neither when it asks nor when it does not.
    #[must_use]
    pub fn gives_nothing(&self) -> bool {
        self.requests == Requests::Deny && self.pods.is_none() && self.default == DefaultGrant::None
    }
}

/// Which callers' containers run by the wrapper. It decides what they get where the configuration says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Callers {
    /// A Concourse worker's: all are given GPUs.
    pub concourse: bool,
    /// The wrapper replaces a script of the Concourse charm's, which mounts the folders of /srv.
    pub had_srv: bool,
    /// The wrapper is an engine's default runtime, so all containers of that engine run by it. No container asked for the
    /// wrapper by name, and an image that sets the variable would get a GPU.
    pub is_default_runtime: bool,
}

/// What the wrapper should allow.
#[must_use]
pub fn policy(config: &Config, selection: &Selection<'_>, inventory: &Inventory, callers: Callers) -> Policy {
    let wrapper = &config.wrapper;
    let Callers { concourse, had_srv, is_default_runtime } = callers;
    let is_denied = is_default_runtime && !concourse;
    let requests = wrapper.requests.unwrap_or(if is_denied { Requests::Deny } else { Requests::All });
    // The first container would hold every GPU.
    let everyone = concourse && wrapper.sharing == Sharing::Shared;
    let default = wrapper.default.unwrap_or(if everyone { DefaultGrant::All } else { DefaultGrant::None });
    let folders = wrapper.folders.clone();
    let has_cards = selection.gpus.iter().any(|gpu| !gpu.is_integrated);
    Policy {
        runtime: wrapper.runtime.clone(),
        requests,
        pods: wrapper.pods,
        default,
        sharing: wrapper.sharing,
        gpus: selection.gpus.iter().filter_map(|gpu| entry(gpu, has_cards)).collect(),
        kfd: cdi::node(&inventory.kfd.node),
        wait_limit_s: wrapper.wait_limit_s,
        idle_grace_s: wrapper.idle_grace_s,
        quarantine: wrapper.quarantine,
        folders: folders.unwrap_or_else(|| if had_srv { vec![SRV.into()] } else { Vec::new() }),
        edits: Edits {
            shm_bytes: wrapper.edits.shm_size.map(Size::in_policy),
            memlock_bytes: wrapper.edits.memlock.map(Size::in_policy),
            gfx_override: gfx_override(config, selection),
        },
    }
}

/// What a person should know of keys that have no effect while GPUs are shared.
#[must_use]
pub fn needs_exclusive(config: &Config) -> Option<String> {
    let wrapper = &config.wrapper;
    let keys = [("wait-limit-s", wrapper.wait_limit_s > 0), ("idle-grace-s", wrapper.idle_grace_s.is_some())];
    let keys: Vec<_> = keys.into_iter().filter_map(|(key, is_set)| is_set.then_some(key)).collect();
    (wrapper.sharing == Sharing::Shared && !keys.is_empty())
        .then(|| format!("only wrapper.sharing: exclusive uses wrapper.{}", keys.join(" and ")))
}

/// What a person should know where an engine runs every container by the wrapper, and nothing is configured for that.
#[must_use]
pub fn of_default_runtime(config: &Config, policy: &Policy) -> Option<&'static str> {
    let Policy { requests, default, .. } = policy;
    match (config.wrapper.requests, config.wrapper.default) {
        (_, None) if *default == DefaultGrant::All => Some(
            "each of its containers gets every GPU, as the worker's tasks do; `wrapper: {default: none}` ends that",
        ),
        (None, _) if *requests == Requests::Deny => Some(
            "any image could ask for GPUs there, so it honours no request until you set wrapper.requests; containers \
             get GPUs by CDI",
        ),
        _ => None,
    }
}

/// `None` of a GPU without a card's address: what its node is of could not be held against anything, so that the
/// wrapper provides it to no container. `has_cards`: a count has something better to give than a processor's own.
fn entry(gpu: &Gpu, has_cards: bool) -> Option<Entry> {
    let card = gpu.pci?.to_string();
    let uuid = gpu.uuid.as_ref().ok().map(ToString::to_string);
    let card_uuid = gpu.shared_uuid().map(|uuid| uuid.to_string());
    Some(Entry {
        index: gpu.index?,
        names: [uuid.clone(), card_uuid.clone(), Some(card.clone())].into_iter().flatten().collect(),
        compute: mode(gpu).and_then(|mode| mode.as_ref().ok().cloned()),
        nodes: cdi::nodes(gpu),
        hive: gpu.hive_id.map(|hive| hive.to_string()),
        numa_node: gpu.numa_node.as_ref().ok().copied(),
        integrated: gpu.is_integrated && has_cards,
        first_schema: FirstSchema { pci: card.clone(), render: node(gpu)?, uuid, card_uuid },
        card,
    })
}

/// Whether a card's mode was not read: the driver refuses the read while it resets the card.
#[must_use]
pub fn has_unread_mode(gpu: &Gpu) -> bool {
    mode(gpu).is_some_and(|mode| mode.as_ref().is_err_and(|why| !why.is_absent()))
}

/// The compute mode of a card that can be divided.
fn mode(gpu: &Gpu) -> Option<&Reading<String>> {
    gpu.device_id.and_then(Chip::of)?;
    gpu.partition.as_ref().map(|partition| &partition.compute)
}

fn node(gpu: &Gpu) -> Option<String> {
    gpu.render.as_ref()?.path.to_str().map(str::to_owned)
}

fn gfx_override(config: &Config, selection: &Selection<'_>) -> BTreeMap<String, String> {
    let versions = &config.wrapper.edits.hsa_override_gfx_version;
    let of = |gpu: &&Gpu| Some((node(gpu)?, versions.get(&gpu.gfx.as_ref().ok()?.to_string())?.clone()));
    selection.gpus.iter().filter_map(of).collect()
}

/// The policy's text, from its template: the wrapper's parser reads it, and it names the GPUs that it was asked for.
/// What an override says beyond that is its author's decision.
///
/// # Errors
/// The template gives a text that is not this policy.
pub fn text(templates: &Templates, policy: &Policy) -> Result<String, render::Error> {
    let text = templates.render(render::WRAPPER, policy)?;
    let unfit = |problem| Err(templates.unfit(render::WRAPPER, problem));
    let parsed = match parser::Policy::parse(&text) {
        Ok(parsed) => parsed,
        Err(cause) => return unfit(format!("a policy that cannot be read again: {cause}")),
    };
    let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let name = |gpu: &Entry| {
        format!("{} ({}, {})", gpu.index, gpu.card, gpu.first_schema.render.trim_start_matches("/dev/dri/"))
    };
    let asked = list(policy.gpus.iter().map(name).collect());
    let given = parsed.gpus.map(|gpus| list(gpus.iter().map(ToString::to_string).collect()));
    if given.as_ref() == Some(&asked) {
        return Ok(text);
    }
    let given = given.unwrap_or_else(|| "all of the machine".to_owned());
    unfit(format!("a policy that names other GPUs than it was asked for: {given} and not {asked}"))
}

/// The policy's file. The wrapper comes first: an older one refuses a newer policy.
#[must_use]
pub fn action(text: String, wrapper: Option<&Path>) -> Action {
    let reason = "the wrapper reads here what containers may have";
    let action = Action::file(Stage::Expose, parser::PATH, text, reason);
    let action = Action { component: Component::Policy.as_ref().to_owned(), ..action };
    match wrapper {
        Some(wrapper) => action.after(wrapper),
        None => action,
    }
}
