//! A lease: one GPU has one holder.

use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::path::clean;
use crate::record::{Creator, RecordedGpu};

/// A lease of one GPU to one container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// [`Document::SCHEMA_VERSION`].
    pub schema_version: u32,
    pub gpu: RecordedGpu,
    /// runc's root folder (`--root`), absolute: ids are unique only beneath one.
    pub root: String,
    /// The container's id, as runc got it.
    pub id: String,
    pub kind: Kind,
    /// The wall clock at the grant, for people: no decision looks at it.
    pub since: String,
    /// The process that was given the lease. It executes runc's create in its own place.
    pub creator: Creator,
    /// `linux.cgroupsPath` as the bundle has it; None where it has none.
    pub cgroups_path: Option<String>,
    /// When a decision first found the container idle (crates/lease/src/idle.rs), in
    /// milliseconds after boot. `None`: the container was busy at the last look, or no decision looks.
    pub idle_since_ms: Option<u64>,
}

/// How the container asked for the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Named,
    Counted,
}

impl Document for Lease {
    const SCHEMA_VERSION: u32 = 1;
    const NAME: &'static str = "lease";
}

impl Lease {
    /// The possible ends of the paths of the container's cgroup, without leading slash, for each cgroup
    /// manager of runc (libcontainer, `cgroups/fs`, `cgroups/fs2` and `cgroups/systemd`). cgroupfs takes the
    /// path, or the id where there is none. systemd takes `slice:prefix:name` as `prefix-name.scope`, or
    /// `name` where it is a slice, and without a path makes `runc-ID.scope`. crun works alike
    /// (src/libcrun/cgroup-systemd.c), but names the last one `crun-ID.scope`.
    ///
    /// None: the path is the root cgroup, which every process is in or beneath.
    #[must_use]
    pub fn cgroup_ends(&self) -> Option<Vec<String>> {
        let Some(path) = self.cgroups_path.as_deref().filter(|path| !path.is_empty()) else {
            let id = &self.id;
            return Some(vec![id.clone(), format!("runc-{id}.scope"), format!("crun-{id}.scope")]);
        };
        let clean = clean(path);
        let below_the_root = clean.trim_start_matches('/');
        if below_the_root.is_empty() {
            return None;
        }
        let mut ends = vec![below_the_root.to_owned()];
        if let [_, prefix, name] = path.split(':').collect::<Vec<_>>()[..] {
            ends.push(match (name.ends_with(".slice"), prefix) {
                (true, _) => name.to_owned(),
                (false, "") => format!("{name}.scope"),
                (false, prefix) => format!("{prefix}-{name}.scope"),
            });
        }
        Some(ends)
    }
}

#[cfg(test)]
mod tests;
