//! The wrapper's policy: `/etc/rocworker/wrapper.json`.
//!
//! rocworker writes the file from its configuration, and root owns it. The parser does not check who could
//! have written the file (its owner, its mode): the caller must do that first.

mod edits;

pub use edits::{Edits, GFX_OVERRIDE, UNLIMITED, is_gfx_version};

use raw_json::{Member, Text};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Error, Quoted,
    error::{malformed, refuse},
    gpu::{FirstSchema, Gpu, Node},
    path::clean,
    request::{GPU_COUNT, Request, VISIBLE_DEVICES},
};

/// The only place where the wrapper looks for its policy.
pub const PATH: &str = "/etc/rocworker/wrapper.json";

/// The most bytes that are read of a policy: one of a thousand GPUs has less.
pub const LIMIT: usize = 1 << 20;

/// The schema version that rocworker writes. Version 1, which has neither card nodes nor groups, is read too.
pub const SCHEMA_VERSION: u32 = 2;

/// The node that every GPU needs beside its own.
const KFD: &str = "/dev/kfd";

/// A shim holds its lock through create, so no container may wait longer.
pub const LONGEST_WAIT_S: u32 = 60;

/// Which requests the wrapper honours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    /// No request: a container that asks for a GPU is refused.
    Deny,
    /// Requests for lists and ranges of GPUs.
    Named,
    /// Requests by `AMD_GPU_COUNT`.
    Count,
    /// Every request.
    All,
}

/// What a container without a request gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultGrant {
    #[default]
    None,
    /// Every GPU of the policy that is available.
    All,
}

/// Whether several containers may have one GPU at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    #[default]
    Shared,
    /// Each grant is a lease, and a GPU has one holder at a time.
    Exclusive,
}

/// A policy that this version can keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The real runc, absolute; None: the next one on PATH.
    pub runtime: Option<String>,
    /// `None`: the policy has no such key.
    pub requests: Option<Requests>,
    /// Which requests of Kubernetes' containers are honoured; `None`: the scheduler alone decides.
    pub pods: Option<Requests>,
    pub default: DefaultGrant,
    pub sharing: Sharing,
    /// The GPUs of the policy in the order of their indexes. `None`: the machine's usable GPUs, which only
    /// schema 1 can express.
    pub gpus: Option<Vec<Gpu>>,
    /// Whether the caller must look for each GPU's card node: schema 1 has only render nodes.
    pub lacks_card_nodes: bool,
    /// `/dev/kfd`.
    pub kfd: Node,
    /// The longest that a create may wait for a lease, in seconds, at most [`LONGEST_WAIT_S`]; 0: not at all.
    pub wait_limit_s: u32,
    /// How many seconds a container must have been idle before the wrapper may revoke its lease; `None`:
    /// never.
    pub idle_grace_s: Option<u32>,
    /// Whether GPUs that [`crate::withheld`] names are kept from containers.
    pub quarantine: bool,
    /// Absolute paths: every container gets each folder directly beneath them. See
    /// [`crate::folder::Folder::beneath`].
    pub folders: Vec<String>,
    pub edits: Edits,
}

/// The kind of container that asks, as far as a policy looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// See [`crate::container::is_kubernetes`].
    pub kubernetes: bool,
    /// See [`crate::container::is_concourse_resource`].
    pub concourse_resource: bool,
}

/// What the wrapper has to do for a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'r> {
    /// Nothing: the container starts as it would without the wrapper.
    Nothing,
    /// The container has no request and gets the default where that is available. No problem with the default
    /// may fail a create.
    Default,
    /// The container asked and must get exactly this request, or its create fails.
    Explicit(&'r Request),
}

/// The contents of the file. `null` is as good as absent.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File<'a> {
    schema_version: Option<u32>,
    runtime: Option<String>,
    requests: Option<Requests>,
    pods: Option<Requests>,
    default: Option<DefaultGrant>,
    sharing: Option<Sharing>,
    #[serde(borrow)]
    gpus: Option<&'a RawValue>,
    kfd: Option<Node>,
    wait_limit_s: Option<u32>,
    idle_grace_s: Option<u32>,
    quarantine: Option<bool>,
    folders: Option<Vec<String>>,
    edits: Option<Edits>,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The text is malformed, has unknown keys, is of a newer version, or has a value that makes no sense.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let no_policy = |error| malformed("not a policy", &error);
        let members = raw_json::members(text.trim()).map_err(no_policy)?;
        match member(&members, "schema_version") {
            // A newer version's keys are not known to this one.
            Some(newer) if newer > u64::from(SCHEMA_VERSION) => refuse(format!(
                "schema_version {newer} belongs to a newer version (this one reads {SCHEMA_VERSION}): update \
                 runc-amd-wrapper, or let this version of rocworker write the policy again"
            )),
            Some(0) => refuse("schema_version: there never was a version 0"),
            version => {
                let file: File<'_> = serde_json::from_str(text).map_err(no_policy)?;
                if version.is_none() && members.iter().any(|member| member.value != "null") {
                    return refuse(format!(
                        "schema_version is missing: write \"schema_version\": {SCHEMA_VERSION}"
                    ));
                }
                file.into_policy()
            }
        }
    }

    /// Whether the policy grants no GPU: then the wrapper is plain runc but for [`Policy::folders`].
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.requests.is_none() && self.pods.is_none() && self.default == DefaultGrant::None
    }

    /// Decides what the wrapper does for a container with this request.
    ///
    /// # Errors
    /// The request is one that the policy, or Kubernetes, does not allow.
    pub fn ask<'r>(&self, request: Option<&'r Request>, setting: Setting) -> Result<Ask<'r>, Error> {
        if self.says_nothing() {
            return Ok(Ask::Nothing);
        }
        let Some(request) = request else {
            let skipped = setting.kubernetes || setting.concourse_resource;
            return Ok(match self.default {
                DefaultGrant::All if !skipped => Ask::Default,
                _ => Ask::Nothing,
            });
        };
        if !request.asks_for_gpus() {
            return Ok(Ask::Nothing);
        }
        let requests = if setting.kubernetes { self.pods } else { self.requests };
        if setting.kubernetes && matches!(requests, None | Some(Requests::Deny)) {
            return refuse(
                "the container asks for GPUs by its environment, which counts for nothing in Kubernetes: request \
                 amd.com/gpu in the pod's resources, or set wrapper.pods",
            );
        }
        let honoured = match (requests, request) {
            (Some(Requests::All), _)
            | (Some(Requests::Named), Request::Listed(_))
            | (Some(Requests::Count), Request::Count(_)) => return Ok(Ask::Explicit(request)),
            (Some(Requests::Named), _) => format!("only GPUs named in {VISIBLE_DEVICES}"),
            (Some(Requests::Count), _) => format!("only a number in {GPU_COUNT}"),
            (Some(Requests::Deny) | None, _) => "no requests (requests: deny)".to_owned(),
        };
        refuse(format!("the container asks for {}, and the policy honours {honoured}", request.describe()))
    }
}

impl File<'_> {
    fn into_policy(self) -> Result<Policy, Error> {
        let is_first = self.schema_version == Some(1);
        let (sharing, default) = (self.sharing.unwrap_or_default(), self.default.unwrap_or_default());
        if (sharing, default) == (Sharing::Exclusive, DefaultGrant::All) {
            return refuse(
                "default: all does not go with sharing: exclusive, where the first container would take every GPU: \
                 write none",
            );
        }
        let wait_limit_s = self.wait_limit_s.unwrap_or_default();
        if wait_limit_s > LONGEST_WAIT_S {
            return refuse(format!(
                "wait_limit_s: {wait_limit_s} is more than the {LONGEST_WAIT_S} that a create may wait"
            ));
        }
        if let Some(runtime) = self.runtime.as_ref().filter(|runtime| !runtime.starts_with('/')) {
            return refuse(format!("runtime: {} is not an absolute path", Quoted(runtime)));
        }
        let gpus = match self.gpus {
            None if is_first => None,
            None => Some(Vec::new()),
            Some(listed) => Some(gpus(listed, is_first).and_then(in_order)?),
        };
        Ok(Policy {
            runtime: self.runtime,
            requests: self.requests,
            pods: self.pods,
            default,
            sharing,
            gpus,
            lacks_card_nodes: is_first,
            kfd: self.kfd.unwrap_or_else(|| Node::at(KFD)),
            wait_limit_s,
            idle_grace_s: self.idle_grace_s,
            quarantine: self.quarantine.unwrap_or_default(),
            folders: self
                .folders
                .unwrap_or_default()
                .iter()
                .map(|path| parent(path))
                .collect::<Result<_, _>>()?,
            edits: self.edits.unwrap_or_default(),
        })
    }
}

/// A path that is to be written in one way only: without doubled slashes and one at its end. `/` is none: every folder of
/// a container would be the host's. Nor is one with `..`, which leads elsewhere behind a link.
fn parent(path: &str) -> Result<String, Error> {
    let (plain, leads_up) = (clean(path), path.split('/').any(|part| part == ".."));
    if !path.starts_with('/') || leads_up || plain == "/" {
        return refuse(format!("folders: {} is not an absolute path like \"/srv\"", Quoted(path)));
    }
    Ok(plain.into_owned())
}

fn gpus(listed: &RawValue, is_first: bool) -> Result<Vec<Gpu>, Error> {
    let read = if is_first {
        serde_json::from_str::<Vec<FirstSchema>>(listed.get())
            .map(|gpus| gpus.into_iter().map(Gpu::from).collect())
    } else {
        serde_json::from_str(listed.get())
    };
    read.map_err(|error| malformed("not a policy: gpus", &error))
}

/// Sorts GPUs by index, and refuses two with one index or one node, which would make a request ambiguous.
fn in_order(mut gpus: Vec<Gpu>) -> Result<Vec<Gpu>, Error> {
    gpus.sort_by_key(|gpu| gpu.index);
    for (at, gpu) in gpus.iter().enumerate() {
        for other in gpus.iter().take(at) {
            let name = if other.index == gpu.index {
                "index"
            } else if other.render == gpu.render {
                "render node"
            } else {
                continue;
            };
            return refuse(format!("gpus: {other} and {gpu} have the same {name}"));
        }
    }
    Ok(gpus)
}

/// The `runtime` of a policy, whatever else is wrong with the policy: all calls for a container must reach
/// one runtime.
#[must_use]
pub fn runtime(text: &str) -> Option<String> {
    member(&raw_json::members(text).ok()?, "runtime")
}

/// A member of an object of any version. `None`: the member is missing, null, or occurs twice.
fn member<'a, T: Deserialize<'a>>(members: &[Member<'a>], name: &str) -> Option<T> {
    let mut named = members.iter().filter(|member| Text::of(member.key).is_some_and(|key| &*key == name));
    let (Some(member), None) = (named.next(), named.next()) else { return None };
    serde_json::from_str(member.value).ok()
}

#[cfg(test)]
mod tests;
