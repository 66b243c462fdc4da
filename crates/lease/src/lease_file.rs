//! The leases: one file for each GPU that a container has, named by its render node, in
//! `/run/rocworker/leases`.

use std::path::{Path, PathBuf};

use allocation::Render;
use allocation::document::Document as _;
use allocation::lease::Lease;

use crate::liveness::{By, Judge};
use crate::lock::Lock;
use crate::paths::Paths;
use crate::run_folder::{Kind, RunFolder};

const KIND: Kind = Kind { folder: "leases", what: "the lease", limit: 64 * 1024 };

/// The folder of leases.
#[derive(Debug)]
pub struct Leases {
    folder: RunFolder,
}

/// A GPU that a container has.
#[derive(Debug)]
pub struct Held {
    pub render: Render,
    pub holder: Holder,
}

/// The holder of a GPU.
#[derive(Debug)]
pub enum Holder {
    Lease {
        lease: Box<Lease>,
        /// What keeps the lease alive; `None`: the lease is dead.
        by: Option<By>,
    },
    /// The file cannot be trusted or read, for this reason. So the GPU counts as held.
    Unknown(String),
}

impl Leases {
    pub fn of(paths: &Paths, lock: Option<&Lock>) -> Self {
        Self { folder: RunFolder::of(paths, KIND, lock) }
    }

    /// Every lease, including dead ones, in the order of the render nodes' names.
    ///
    /// # Errors
    /// The folder cannot be read, or is not root's alone.
    pub fn all(&self, judge: &Judge<'_>) -> Result<Vec<Held>, String> {
        let mut all = Vec::new();
        for (name, text) in self.folder.entries()? {
            // A file that is no GPU's can hold none.
            let Some(render) = Render::parse(&name) else { continue };
            let read = text.map_err(|error| error.to_string());
            let holder = match read.and_then(|text| Ok(Lease::parse(&text)?)) {
                Ok(lease) if lease.gpu.render != render => Holder::Unknown("is another GPU's".to_owned()),
                Ok(lease) => Holder::Lease { by: judge.lease(&lease), lease: Box::new(lease) },
                Err(reason) => Holder::Unknown(reason),
            };
            all.push(Held { render, holder });
        }
        Ok(all)
    }

    /// Makes the folder.
    ///
    /// # Errors
    /// The folder cannot be made or is not root's alone.
    pub fn ensure(&self, lock: &Lock) -> Result<(), String> {
        self.folder.ensure(lock)
    }

    /// # Errors
    /// The lease cannot be written.
    pub fn write(&self, lock: &Lock, lease: &Lease) -> Result<(), String> {
        self.folder.write(lock, &lease.gpu.render.to_string(), &lease.to_json()?)
    }

    /// # Errors
    /// The kernel's error.
    pub fn remove(&self, _lock: &Lock, render: Render) -> Result<(), String> {
        self.folder.remove(&render.to_string())
    }

    /// Removes the leases of one container, but for those that live: whether any of it is left.
    ///
    /// # Errors
    /// The folder cannot be read, or is not root's alone; or one cannot be removed.
    pub fn remove_dead_of(
        &self,
        lock: &Lock,
        judge: &Judge<'_>,
        root: &Path,
        id: &str,
    ) -> Result<bool, String> {
        let mut is_left = false;
        for held in self.all(judge)? {
            if let Holder::Lease { lease, by } = &held.holder
                && lease.id == id
                && Path::new(&lease.root) == root
            {
                match by {
                    Some(_) => is_left = true,
                    None => self.remove(lock, held.render)?,
                }
            }
        }
        Ok(is_left)
    }

    /// The path of a GPU's lease.
    pub fn path_of(&self, render: Render) -> PathBuf {
        self.folder.path_of(&render.to_string())
    }

    /// Whether a container has a lease on this GPU, alive or dead.
    pub fn is_holder(&self, render: Render, root: &Path, id: &str) -> bool {
        let Ok(Some(text)) = self.folder.read(&render.to_string()) else { return false };
        Lease::parse(&text).is_ok_and(|lease| lease.id == id && Path::new(&lease.root) == root)
    }
}

/// A lease of the container `x`.
#[cfg(test)]
pub fn lease_of_x(root: &Path, creator: allocation::record::Creator) -> Lease {
    Lease {
        schema_version: Lease::SCHEMA_VERSION,
        gpu: allocation::record::RecordedGpu {
            index: 0,
            pci: None,
            render: Render::parse("renderD128").unwrap(),
        },
        root: root.to_str().unwrap().to_owned(),
        id: "x".to_owned(),
        kind: allocation::lease::Kind::Named,
        since: String::new(),
        creator,
        cgroups_path: None,
        idle_since_ms: None,
    }
}
