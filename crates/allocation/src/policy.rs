//! What the wrapper may do: `/etc/rocworker/wrapper.json`.
//!
//! The file belongs to root and is written by rocworker from its config. This is its parser; whether the
//! file can be trusted at all (its owner, its mode) is for the caller to see first.

mod edits;

pub use edits::{Edits, GFX_OVERRIDE, UNLIMITED, is_gfx_version};

use inventory::PciAddress;

use crate::{
    Error, Quoted, Render,
    error::refuse,
    json::{Fault, Scanner, keyed, member, object, unknown, whole},
    path::clean,
    request::{GPU_COUNT, Request, VISIBLE_DEVICES},
    selection::Gpu,
};

/// The schema version that this version reads.
pub const SCHEMA_VERSION: u32 = 1;
const NEWEST: u64 = SCHEMA_VERSION as u64;

/// A shim holds its lock through create, so no container may wait longer.
pub const LONGEST_WAIT_S: u32 = 60;

/// Which requests are honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
pub enum Default {
    #[default]
    None,
    /// Every GPU of the policy, as far as it can be had.
    All,
}

/// Whether several containers may have one GPU at the same time.
#[derive(Clone, Copy, Debug, std::default::Default, PartialEq, Eq)]
pub enum Sharing {
    #[default]
    Shared,
    /// Each grant is a lease, and a GPU has one holder.
    Exclusive,
}

/// A policy that this version can keep.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Policy {
    /// The real runc, absolute; None: the next one on PATH.
    pub runtime: Option<String>,
    /// None: the policy does not say.
    pub requests: Option<Requests>,
    /// The same for Kubernetes' containers; None: the scheduler alone decides.
    pub pods: Option<Requests>,
    pub default: Default,
    pub sharing: Sharing,
    /// The GPUs that may be had; None: whatever the CDI spec names.
    pub gpus: Option<Vec<Gpu>>,
    /// The longest that a create may wait for a lease, in seconds, at most [`LONGEST_WAIT_S`]; 0: not at all.
    pub wait_limit_s: u32,
    /// How long a container must have been idle before the wrapper may revoke its lease, in seconds; None: never.
    pub idle_grace_s: Option<u32>,
    /// Whether no container gets what [`crate::health`] withholds.
    pub quarantine: bool,
    /// Absolute paths: each folder directly beneath one of them is every container's. See
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

/// The contents of the file.
#[derive(Default)]
struct File {
    schema_version: Option<u64>,
    gpus: Option<Vec<Gpu>>,
    /// All but the GPUs.
    policy: Policy,
}

keyed!(File, required [], |file, scanner| {
    "schema_version" => file.schema_version = scanner.optional(Scanner::integer)?,
    "runtime" => file.policy.runtime = scanner.optional(Scanner::string_of_its_own)?,
    "requests" => file.policy.requests = scanner.optional(requests)?,
    "pods" => file.policy.pods = scanner.optional(requests)?,
    "default" => file.policy.default = scanner.optional(|scanner| {
        scanner.one_of("none or all", &[("none", Default::None), ("all", Default::All)])
    })?.unwrap_or_default(),
    "sharing" => file.policy.sharing = scanner.optional(|scanner| {
        scanner.one_of("shared or exclusive", &[("shared", Sharing::Shared), ("exclusive", Sharing::Exclusive)])
    })?.unwrap_or_default(),
    "gpus" => file.gpus = scanner.optional(|scanner| scanner.list(object))?,
    "wait_limit_s" => file.policy.wait_limit_s = scanner.optional(Scanner::integer)?.unwrap_or_default(),
    "idle_grace_s" => file.policy.idle_grace_s = scanner.optional(Scanner::integer)?,
    "quarantine" => file.policy.quarantine = scanner.optional(Scanner::boolean)?.unwrap_or_default(),
    "folders" => file.policy.folders = scanner.list(parent)?,
    "edits" => file.policy.edits = scanner.optional(object)?.unwrap_or_default(),
}, |_file, key| unknown::<Self>(key));

keyed!(Gpu, required ["index", "pci", "render"], |gpu, scanner| {
    "index" => gpu.index = scanner.integer()?,
    "pci" => gpu.pci = Some(address(scanner)?),
    "render" => gpu.render = scanner.named("a render node like \"/dev/dri/renderD128\"", Render::parse)?,
    "uuid" => gpu.uuid = scanner.optional(Scanner::string_of_its_own)?,
    "card_uuid" => gpu.card_uuid = scanner.optional(Scanner::string_of_its_own)?,
    "card" => gpu.card = scanner.optional(address)?,
    "hive" => gpu.hive = scanner.optional(hive)?,
    "integrated" => gpu.integrated = scanner.optional(Scanner::boolean)?.unwrap_or_default(),
}, |_gpu, key| unknown::<Self>(key));

fn requests(scanner: &mut Scanner<'_>) -> Result<Requests, Fault> {
    scanner.one_of(
        "deny, named, count or all",
        &[
            ("deny", Requests::Deny),
            ("named", Requests::Named),
            ("count", Requests::Count),
            ("all", Requests::All),
        ],
    )
}

fn address(scanner: &mut Scanner<'_>) -> Result<PciAddress, Fault> {
    scanner.named("a PCI address like \"0000:64:00.0\"", PciAddress::parse)
}

/// A path that is to be written in one way only: without doubled slashes and one at its end. `/` is none: every folder of
/// a container would be the host's. Nor is one with `..`, which leads elsewhere behind a link.
fn parent(scanner: &mut Scanner<'_>) -> Result<String, Fault> {
    scanner.named("an absolute path like \"/srv\"", |path| {
        let leads_up = path.split('/').any(|part| part == "..");
        let plain = Some(clean(path)).filter(|plain| path.starts_with('/') && !leads_up && plain != "/")?;
        Some(plain.into_owned())
    })
}

/// A hive is named by the number that KFD gives it, which some write as a number and some as text.
fn hive(scanner: &mut Scanner<'_>) -> Result<String, Fault> {
    match scanner.peek()? {
        b'"' => scanner.string_of_its_own(),
        b'0'..=b'9' => scanner.integer::<u64>().map(|number| number.to_string()),
        _ => scanner.unwanted("a number, a text or null"),
    }
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// It is malformed, has unknown keys, is of a newer version, or has a value that makes no sense.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: Result<File, Fault> = whole(text);
        let version = match &file {
            Ok(file) => file.schema_version,
            // A newer version's keys are not known to this one.
            Err(_) => member(text, "schema_version", Scanner::integer).filter(|version| *version > NEWEST),
        };
        match version {
            Some(newer) if newer > NEWEST => refuse(format!(
                "schema_version {newer} belongs to a newer version (this one reads {NEWEST}): update \
                 runc-amd-wrapper, or let this version of rocworker write the policy again"
            )),
            Some(0) => refuse("schema_version: there never was a version 0"),
            None if file.is_ok() && says_something(text) => {
                refuse(format!("schema_version is missing: write \"schema_version\": {NEWEST}"))
            }
            _ => file.map_err(|fault| Error::new(format!("not a policy: {}", fault.of(text))))?.into_policy(),
        }
    }

    /// Whether the policy says nothing about GPUs: then the wrapper is plain runc but for [`Policy::folders`].
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.requests.is_none() && self.pods.is_none() && self.default == Default::None
    }

    /// What is to be done for a container with this request.
    ///
    /// # Errors
    /// It asks for GPUs in a way that the policy, or Kubernetes, does not leave to it.
    pub fn ask<'r>(&self, request: Option<&'r Request>, setting: Setting) -> Result<Ask<'r>, Error> {
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

impl File {
    fn into_policy(self) -> Result<Policy, Error> {
        let Policy { sharing, default, wait_limit_s, ref runtime, .. } = self.policy;
        if (sharing, default) == (Sharing::Exclusive, Default::All) {
            return refuse(
                "default: all does not go with sharing: exclusive, where the first container would take every GPU: \
                 write none",
            );
        }
        if wait_limit_s > LONGEST_WAIT_S {
            return refuse(format!(
                "wait_limit_s: {wait_limit_s} is more than the {LONGEST_WAIT_S} that a create may wait"
            ));
        }
        if let Some(runtime) = runtime.as_ref().filter(|runtime| !runtime.starts_with('/')) {
            return refuse(format!("runtime: {} is not an absolute path", Quoted(runtime)));
        }
        Ok(Policy { gpus: self.gpus.map(gpus).transpose()?, ..self.policy })
    }
}

/// Whether any key of an object has a value.
fn says_something(text: &str) -> bool {
    let mut says = false;
    let _ = Scanner::new(text).object(|scanner, _| {
        says |= scanner.peek()? != b'n';
        scanner.skip().map(drop)
    });
    says
}

/// The GPUs of the file in the order of their indexes. Two with one name would make a request ambiguous.
fn gpus(listed: Vec<Gpu>) -> Result<Vec<Gpu>, Error> {
    let mut gpus: Vec<Gpu> = Vec::with_capacity(listed.len());
    for gpu in listed {
        for other in &gpus {
            let name = if other.index == gpu.index {
                "index"
            } else if other.render == gpu.render {
                "render node"
            } else if gpu.uuid.is_some() && other.uuid == gpu.uuid {
                "uuid"
            } else {
                continue;
            };
            return refuse(format!("gpus: {other} and {gpu} have the same {name}"));
        }
        let at = gpus.partition_point(|other| other.index < gpu.index);
        gpus.insert(at, Gpu { card: gpu.card.or(gpu.pci), ..gpu });
    }
    Ok(gpus)
}

/// The `runtime` that a policy names, whatever else is wrong with it: the same one has to serve all calls.
#[must_use]
#[inline]
pub fn runtime(text: &str) -> Option<String> {
    member(text, "runtime", Scanner::string_of_its_own)
}

#[cfg(test)]
mod tests;
