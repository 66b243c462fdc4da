//! What the wrapper may do: what /etc/rocworker/wrapper.json is made of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use allocation::policy::{DefaultGrant, LONGEST_WAIT_S, Requests, Sharing, is_gfx_version};
use serde::{Deserialize, Serialize};

use super::size::Size;
use super::{Error, Source, path};

/// What the wrapper's program is called, in whichever folder it is.
const WRAPPER: &str = "runc-amd-wrapper";

/// What containers may ask of the wrapper, and what they get that do not ask.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Wrapper {
    /// The real runc; the next one on PATH unless given.
    pub runtime: Option<PathBuf>,
    /// `None`: all, unless the wrapper is an engine's default runtime (src/desired/policy.rs).
    pub requests: Option<Requests>,
    /// `None`: every GPU on a Concourse worker, else none.
    pub default: Option<DefaultGrant>,
    /// Which requests of Kubernetes' containers count; `None`: the scheduler alone decides.
    pub pods: Option<Requests>,
    #[serde(deserialize_with = "super::or_default", skip_serializing_if = "super::is_default")]
    pub sharing: Sharing,
    /// Seconds.
    #[serde(deserialize_with = "super::or_default", skip_serializing_if = "super::is_default")]
    pub wait_limit_s: u32,
    /// Seconds; `None`: an idle container keeps its lease.
    pub idle_grace_s: Option<u32>,
    /// Whether unhealthy GPUs are kept from containers, and GPUs on which processes or memory are left from leases.
    #[serde(deserialize_with = "super::or_default", skip_serializing_if = "super::is_default")]
    pub quarantine: bool,
    /// Folders whose folders are mounted into every container. `None`: /srv where a worker is adopted whose
    /// charm mounts them, else none.
    pub folders: Option<Vec<PathBuf>>,
    #[serde(deserialize_with = "super::or_default", skip_serializing_if = "super::is_default")]
    pub edits: Edits,
}

/// What containers with a GPU get beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Edits {
    /// Size of the container's /dev/shm; never unlimited.
    pub shm_size: Option<Size>,
    /// How much a process may lock into memory.
    pub memlock: Option<Size>,
    /// The value of `HSA_OVERRIDE_GFX_VERSION`, by the architecture of the GPU.
    #[serde(deserialize_with = "super::or_default", skip_serializing_if = "super::is_default")]
    pub hsa_override_gfx_version: BTreeMap<String, String>,
}

impl Wrapper {
    pub(super) fn check(self, source: &Source) -> Result<Self, Error> {
        if self.sharing == Sharing::Exclusive && self.default == Some(DefaultGrant::All) {
            let problem = "default: all does not go with sharing: exclusive, where the first container would take \
                           every GPU: write default: none";
            return Err(source.wrong("wrapper.default", None, problem));
        }
        const LONGER: &str = ": for a longer wait let Concourse repeat the step (attempts)";
        source.check_seconds("wrapper.wait-limit-s", self.wait_limit_s, 0..=LONGEST_WAIT_S, LONGER)?;
        if let Some(problem) = self.runtime.as_ref().and_then(|path| not_a_runtime(path)) {
            return Err(source.wrong("wrapper.runtime", None, format!("wrapper.runtime {problem}")));
        }
        // A folder of folders may be at the top: /srv.
        let is_folder = |path: &PathBuf| path.parent().is_some() && path::plain(&path.join("x")).is_ok();
        if let Some(path) = self.folders.iter().flatten().find(|path| !is_folder(path)) {
            let problem = format!("wrapper.folders: {path:?} is not an absolute path beneath /");
            return Err(source.wrong("wrapper.folders", None, problem));
        }
        if self.edits.shm_size == Some(Size::Unlimited) {
            let problem = "shm-size is a size such as 8G: memory has an end";
            return Err(source.wrong("wrapper.edits.shm-size", None, problem));
        }
        const VERSIONS: &str = "wrapper.edits.hsa-override-gfx-version";
        for (gfx, version) in &self.edits.hsa_override_gfx_version {
            if !is_gfx(gfx) || !is_gfx_version(version) {
                let problem = format!(
                    "{VERSIONS}: {gfx:?}: {version:?} is not an architecture and a version such as gfx1103: \"11.0.0\""
                );
                return Err(source.wrong(VERSIONS, Some(gfx), problem));
            }
        }
        Ok(self)
    }
}

/// Why this path cannot be the real runc.
fn not_a_runtime(path: &Path) -> Option<String> {
    if path.file_name() == Some(WRAPPER.as_ref()) {
        return Some(format!(
            "{path:?} is the wrapper, which would run itself: name the real runc, or remove the key"
        ));
    }
    if path::absolute(path).is_err() {
        return Some(format!("{path:?} is not an absolute path"));
    }
    path::file(path).err()
}

fn is_gfx(word: &str) -> bool {
    word.strip_prefix("gfx")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_hexdigit()))
}
