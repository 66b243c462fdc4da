//! What the wrapper may do: what /etc/rocworker/wrapper.json is made of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use allocation::policy::{LONGEST_WAIT_S, is_gfx_version};
use serde::{Deserialize, Serialize};

use super::size::Size;
use super::{Error, Source, path};

/// What containers may ask of the wrapper, and what they get that do not ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// The real runc; the next one on PATH unless given.
    pub runtime: Option<PathBuf>,
    /// `None`: all on a Concourse worker, else none is honoured.
    pub requests: Option<Requests>,
    /// `None`: every GPU on a Concourse worker, else none.
    pub default: Option<Default>,
    pub sharing: Sharing,
    /// Seconds.
    pub wait_limit_s: u32,
    /// Seconds; `None`: a lease is never taken back from an idle container.
    pub idle_grace_s: Option<u32>,
    /// Folders whose folders are mounted into every container. `None`: /srv on a Concourse worker, else none.
    pub folders: Option<Vec<PathBuf>>,
    pub edits: Edits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    Deny,
    Named,
    Count,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Default {
    None,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    #[default]
    Shared,
    Exclusive,
}

/// What containers with a GPU get beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edits {
    /// Size of /dev/shm in bytes.
    pub shm_bytes: Option<u64>,
    pub memlock: Option<Memlock>,
    /// `HSA_OVERRIDE_GFX_VERSION` by architecture.
    pub gfx_override: BTreeMap<String, String>,
}

/// What a process may lock into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memlock {
    Bytes(u64),
    Unlimited,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct WrapperDocument {
    runtime: Option<PathBuf>,
    requests: Option<Requests>,
    default: Option<Default>,
    sharing: Option<Sharing>,
    wait_limit_s: Option<u32>,
    idle_grace_s: Option<u32>,
    folders: Option<Vec<PathBuf>>,
    edits: Option<EditsDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EditsDocument {
    shm_size: Option<Size>,
    memlock: Option<Size>,
    hsa_override_gfx_version: Option<BTreeMap<String, String>>,
}

impl WrapperDocument {
    pub(super) fn check(self, source: &Source) -> Result<Wrapper, Error> {
        let sharing = self.sharing.unwrap_or_default();
        if sharing == Sharing::Exclusive && self.default == Some(Default::All) {
            let problem = "default: all does not go with sharing: exclusive, where the first container would take \
                           every GPU: write default: none";
            return Err(source.wrong("wrapper.default", None, problem));
        }
        let wait_limit_s = self.wait_limit_s.unwrap_or(0);
        if wait_limit_s > LONGEST_WAIT_S {
            let problem = format!("wait-limit-s is more than the {LONGEST_WAIT_S} s that a create may wait");
            return Err(source.wrong("wrapper.wait-limit-s", None, problem));
        }
        if let Some(path) = self.runtime.as_ref().filter(|path| path::plain(path).is_err()) {
            let problem = format!("runtime: {} is not an absolute path", path.display());
            return Err(source.wrong("wrapper.runtime", None, problem));
        }
        // A folder of folders may stand at the top: /srv.
        let is_folder = |path: &PathBuf| path.parent().is_some() && path::plain(&path.join("x")).is_ok();
        if let Some(path) = self.folders.iter().flatten().find(|path| !is_folder(path)) {
            let problem = format!("folders: {} is not an absolute path beneath /", path.display());
            return Err(source.wrong("wrapper.folders", None, problem));
        }
        let edits = self.edits.unwrap_or_default().check(source)?;
        Ok(Wrapper {
            runtime: self.runtime,
            requests: self.requests,
            default: self.default,
            sharing,
            wait_limit_s,
            idle_grace_s: self.idle_grace_s,
            folders: self.folders,
            edits,
        })
    }
}

impl EditsDocument {
    fn check(self, source: &Source) -> Result<Edits, Error> {
        let shm_bytes = match self.shm_size {
            Some(Size::Unlimited) => {
                let problem = "shm-size is a size such as 8G: memory has an end";
                return Err(source.wrong("wrapper.shm-size", None, problem));
            }
            Some(Size::Bytes(bytes)) => Some(bytes),
            None => None,
        };
        let memlock = self.memlock.map(|size| match size {
            Size::Unlimited => Memlock::Unlimited,
            Size::Bytes(bytes) => Memlock::Bytes(bytes),
        });
        let gfx_override = self.hsa_override_gfx_version.unwrap_or_default();
        for (gfx, version) in &gfx_override {
            if !is_gfx(gfx) || !is_gfx_version(version) {
                let problem = format!(
                    "hsa-override-gfx-version: {gfx}: {version:?} is not an architecture and a version such as \
                     gfx1103: \"11.0.0\""
                );
                return Err(source.wrong("wrapper.hsa-override-gfx-version", Some(gfx), problem));
            }
        }
        Ok(Edits { shm_bytes, memlock, gfx_override })
    }
}

fn is_gfx(word: &str) -> bool {
    word.strip_prefix("gfx")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_hexdigit()))
}
