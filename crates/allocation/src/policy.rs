//! What the wrapper may do: `/etc/rocworker/wrapper.json`.
//!
//! The file belongs to root and is written by rocworker from its config. This is its parser; whether the
//! file can be trusted at all (its owner, its mode) is for the caller to see first.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny},
};

use crate::{
    PciAddress, Quoted, Render,
    request::{GPU_COUNT, Request, VISIBLE_DEVICES},
    selection::{Gpu, Refusal},
};

/// The schema version that this version reads.
pub const SCHEMA_VERSION: u32 = 1;

/// A shim holds its lock through create, so nobody may wait longer.
pub const LONGEST_WAIT_S: u32 = 60;

/// Which requests are honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    /// None: a container that asks for a GPU is refused.
    Deny,
    /// Lists and ranges of GPUs.
    Named,
    /// `AMD_GPU_COUNT`.
    Count,
    /// Everything.
    All,
}

/// What a container gets that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Default {
    None,
    /// Every GPU of the policy, as far as it can be had.
    All,
}

/// Whether several containers may have one GPU at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    Shared,
    /// Each grant is a lease, and a GPU has one holder.
    Exclusive,
}

/// A policy that this version can keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The real runc, absolute; None: the next one on PATH.
    pub runtime: Option<String>,
    /// None: the policy does not say.
    pub requests: Option<Requests>,
    pub default: Default,
    pub sharing: Sharing,
    /// The GPUs that may be had; None: whatever the CDI spec names.
    pub gpus: Option<Vec<Gpu>>,
    /// The longest that a create may wait for a lease, in seconds, at most [`LONGEST_WAIT_S`]; 0: not at all.
    pub wait_limit_s: u32,
    /// How long a container must have been idle before its lease can be taken back, in seconds; None: never.
    pub idle_grace_s: Option<u32>,
}

/// The kind of container that asks, as far as a policy looks at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// See [`crate::container::is_kubernetes`].
    pub kubernetes: bool,
    /// See [`crate::container::is_concourse_resource`].
    pub concourse_resource: bool,
}

/// What is to be done for a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask<'r> {
    /// Nothing: it starts as it would without the wrapper.
    Nothing,
    /// It said nothing and gets the default, as far as that can be had. Nothing about it may fail.
    Default,
    /// It asked and must get exactly that, or fail.
    Explicit(&'r Request),
}

/// Why a policy cannot be used. Each is one sentence that names the key.
#[derive(Debug)]
pub enum Error {
    /// Not JSON, a wrong type, an unknown or missing key: what serde_json says, which names it.
    Malformed(serde_json::Error),
    /// Keys, but no schema_version.
    NoVersion,
    /// Written by a newer version.
    Newer(u64),
    /// Something that this version can read, but not do yet.
    Later { key: &'static str, value: String },
    /// A value that makes no sense.
    Invalid { key: String, problem: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "not a policy: {error}"),
            Self::NoVersion => {
                write!(f, "schema_version is missing: write \"schema_version\": {SCHEMA_VERSION}")
            }
            Self::Newer(version) => write!(
                f,
                "schema_version {version} belongs to a newer version (this one reads {SCHEMA_VERSION}): update \
                 runc-amd-wrapper, or let this version of rocworker write the policy again"
            ),
            Self::Later { key, value } => {
                write!(f, "{key}: {value} comes with a later version; this one cannot do it")
            }
            Self::Invalid { key, problem } => write!(f, "{key}: {problem}"),
        }
    }
}

impl std::error::Error for Error {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema_version: Option<u64>,
    runtime: Option<String>,
    requests: Option<Requests>,
    default: Option<Default>,
    sharing: Option<Sharing>,
    gpus: Option<Vec<FileGpu>>,
    wait_limit_s: Option<u32>,
    idle_grace_s: Option<u32>,
    folders: Option<Vec<IgnoredAny>>,
    edits: Option<BTreeMap<String, IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGpu {
    index: u32,
    pci: PciAddress,
    render: Render,
    uuid: Option<String>,
    card: Option<PciAddress>,
    #[serde(default, deserialize_with = "hive")]
    hive: Option<String>,
}

/// A hive is named by the number that KFD gives it, which some write as a number and some as text.
fn hive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Hive {
        Number(u64),
        Text(String),
    }
    match Option::<Hive>::deserialize(deserializer) {
        Ok(hive) => Ok(hive.map(|hive| match hive {
            Hive::Number(number) => number.to_string(),
            Hive::Text(text) => text,
        })),
        Err(_) => Err(D::Error::custom("hive is neither a number, nor text, nor null")),
    }
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// It is malformed, has unknown keys, is of a newer version, or wants what comes later.
    pub fn parse(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: Option<u64>,
        }
        // serde would take a list for a struct, by the order of its fields.
        if text.trim_start().starts_with('[') {
            return Err(Error::Malformed(serde_json::Error::custom("a list where an object must be")));
        }
        let version: Version = serde_json::from_str(text).map_err(Error::Malformed)?;
        if let Some(newer) = version.schema_version.filter(|version| *version > u64::from(SCHEMA_VERSION)) {
            return Err(Error::Newer(newer));
        }
        let file: File = serde_json::from_str(text).map_err(Error::Malformed)?;
        match file.schema_version {
            Some(0) => return Err(invalid("schema_version", "there never was a version 0")),
            None if !file.is_empty() => return Err(Error::NoVersion),
            _ => {}
        }
        file.into_policy()
    }

    /// Whether the policy says nothing about GPUs: then the wrapper is plain runc.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.requests.is_none() && self.default == Default::None
    }

    /// What is to be done for a container with this request.
    ///
    /// # Errors
    /// It asks for GPUs in a way that the policy, or Kubernetes, does not leave to it.
    pub fn ask<'r>(&self, request: Option<&'r Request>, setting: Setting) -> Result<Ask<'r>, Refusal> {
        if self.says_nothing() {
            return Ok(Ask::Nothing);
        }
        let Some(request) = request else {
            let skipped = setting.kubernetes || setting.concourse_resource;
            return Ok(match self.default {
                Default::All if !skipped => Ask::Default,
                _ => Ask::Nothing,
            });
        };
        if !request.asks_for_gpus() {
            return Ok(Ask::Nothing);
        }
        if setting.kubernetes {
            return Err(Refusal::Kubernetes);
        }
        match (self.requests, request) {
            (Some(Requests::All), _)
            | (Some(Requests::Named), Request::Listed(_))
            | (Some(Requests::Count), Request::Count(_)) => Ok(Ask::Explicit(request)),
            (Some(Requests::Named), _) => Err(Refusal::NotHonoured {
                asked: request.describe().into_owned(),
                honoured: format!("only GPUs named in {VISIBLE_DEVICES}"),
            }),
            (Some(Requests::Count), _) => Err(Refusal::NotHonoured {
                asked: request.describe().into_owned(),
                honoured: format!("only a number in {GPU_COUNT}"),
            }),
            (Some(Requests::Deny) | None, _) => {
                Err(Refusal::Denied { asked: request.describe().into_owned() })
            }
        }
    }
}

impl File {
    fn is_empty(&self) -> bool {
        let Self {
            schema_version,
            runtime,
            requests,
            default,
            sharing,
            gpus,
            wait_limit_s,
            idle_grace_s,
            folders,
            edits,
        } = self;
        schema_version.is_none()
            && runtime.is_none()
            && requests.is_none()
            && default.is_none()
            && sharing.is_none()
            && gpus.is_none()
            && wait_limit_s.is_none()
            && idle_grace_s.is_none()
            && folders.is_none()
            && edits.is_none()
    }

    fn into_policy(self) -> Result<Policy, Error> {
        let later = |key, value: &str| Err(Error::Later { key, value: value.to_owned() });
        if self.sharing == Some(Sharing::Exclusive) && self.default == Some(Default::All) {
            return Err(invalid(
                "default",
                "all does not go with sharing: exclusive, where the first container would take every GPU: \
                 write none",
            ));
        }
        if let Some(seconds) = self.wait_limit_s.filter(|seconds| *seconds > LONGEST_WAIT_S) {
            return Err(invalid(
                "wait_limit_s",
                &format!("{seconds} is more than the {LONGEST_WAIT_S} that a create may wait"),
            ));
        }
        if self.folders.is_some_and(|folders| !folders.is_empty()) {
            return later("folders", "mounting folders");
        }
        if let Some(edit) = self.edits.as_ref().and_then(|edits| edits.keys().next()) {
            return later("edits", &format!("the edit {}", Quoted(edit)));
        }
        if let Some(runtime) = self.runtime.as_ref().filter(|runtime| !runtime.starts_with('/')) {
            return Err(invalid("runtime", &format!("{} is not an absolute path", Quoted(runtime))));
        }
        Ok(Policy {
            runtime: self.runtime,
            requests: self.requests,
            default: self.default.unwrap_or(Default::None),
            sharing: self.sharing.unwrap_or(Sharing::Shared),
            gpus: self.gpus.map(gpus).transpose()?,
            wait_limit_s: self.wait_limit_s.unwrap_or(0),
            idle_grace_s: self.idle_grace_s,
        })
    }
}

/// The GPUs of the file in the order of their indexes. Two with one name would make a request ambiguous.
fn gpus(listed: Vec<FileGpu>) -> Result<Vec<Gpu>, Error> {
    let mut gpus: Vec<Gpu> = Vec::with_capacity(listed.len());
    for FileGpu { index, pci, render, uuid, card, hive } in listed {
        if gpus.iter().any(|gpu| gpu.index == index) {
            return Err(invalid("gpus", &format!("two have the index {index}")));
        }
        if gpus.iter().any(|gpu| gpu.render == render) {
            return Err(invalid("gpus", &format!("two have the render node {render}")));
        }
        if uuid.is_some() && gpus.iter().any(|gpu| gpu.uuid == uuid) {
            return Err(invalid(
                "gpus",
                &format!("two have the uuid of the GPU {index}, which is then no name"),
            ));
        }
        gpus.push(Gpu { index, pci: Some(pci), render, uuid, card: card.or(Some(pci)), hive });
    }
    gpus.sort_by_key(|gpu| gpu.index);
    Ok(gpus)
}

fn invalid(key: &str, problem: &str) -> Error {
    Error::Invalid { key: key.to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests;
