//! /etc/rocworker/config.yaml: what is wanted of this machine.
//!
//! Every key is optional, and so is the file. A key that nothing acts on is refused rather than ignored:
//! a typing error must not read as consent.

mod clusterbloom;
mod component;
mod compute_runtime;
mod document;
mod download;
mod driver;
mod engines;
mod exporter;
mod host;
mod inventory;
mod kubernetes;
mod managed;
mod packages;
mod partitions;
mod password;
mod path;
mod releases;
pub mod selection;
mod size;
mod ssh_host;
mod therock;
mod units;
mod wrapper;
mod yaml;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use reconcile::Restarts;
use root::Root;
use serde::{Deserialize, Deserializer, Serialize};

pub use allocation::policy::{DefaultGrant, Requests, Sharing};
pub use clusterbloom::ClusterBloom;
pub use component::Component;
pub use compute_runtime::ComputeRuntime;
pub use document::{Document, Words};
pub use driver::{Build, Release};
pub use driver::{DriverDocument, Install};
pub use engines::{
    CONTAINERD_CONFIG, CRIO_CONFIG, Concourse, ConcourseDocument, DOCKER_CONFIG, Engine, Existing,
};
pub use exporter::{ExistingUnit, Exporter};
pub use exporter::{ExporterDocument, address as listen_address};
pub use host::{ModuleOptions, Permissions};
pub use inventory::{Group, Inventory};
pub use kubernetes::Kubernetes;
pub use managed::{Managed, Off};
use packages::RocmFrom;
pub use packages::{DKMS, InstallerFile, Packages, Repositories, Repository, Rocm, Tool};
pub use packages::{PackagesDocument, RepositoriesDocument, RocmDocument, Wanted};
pub use partitions::{OnRevert, Partitions, Reload};
use password::without_passwords;
pub use size::Size;
pub use ssh_host::Host;
pub use therock::TheRock;
pub use units::{Boot, Daemon};
pub use wrapper::{Edits, Wrapper};
pub use yaml::Fault;
use yaml::{Node, Spelling};

/// Path of the configuration beneath a Root.
pub const PATH: &str = "/etc/rocworker/config.yaml";

/// Path of the CDI spec unless the configuration names another. Nothing but a spec of AMD's belongs there: a run
/// repairs what is broken.
pub const CDI_SPEC: &str = "/etc/cdi/amd.json";

/// The longest file that is parsed, in bytes: some hundred times what a configuration needs. The parser's time grows
/// with the square of the length.
const LIMIT: usize = 64 << 10;

/// The configuration, checked, and resolved to what is managed and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Whether rocworker gives containers AMD's GPUs. If not, it manages only the worker's own tags.
    pub gpus: Managed,
    /// Whether a machine without a usable GPU is at fault (`compute-runtime: rocm`).
    pub needs_gpu: bool,
    pub devices: Devices,
    /// The worker's own tags, which come before rocworker's.
    pub tags: Vec<String>,
    pub cdi: Cdi,
    pub permissions: Permissions,
    pub module_options: ModuleOptions,
    pub wrapper: Wrapper,
    pub containerd: Engine,
    pub docker: Engine,
    pub crio: Engine,
    pub concourse: Concourse,
    /// Who brings the kernel driver that dkms builds; off: the driver that is there stays.
    pub driver: Managed<Build>,
    /// What is done with units whose configuration has changed.
    pub restart: Restarts,
    pub packages: Packages,
    pub repositories: Repositories,
    /// Off: the ROCm that is there stays.
    pub rocm: Managed<Rocm>,
    /// The release of ROCm whose repository is used; `None`: the one that this version knows.
    pub rocm_version: Option<String>,
    pub boot: Boot,
    pub daemon: Daemon,
    pub exporter: Exporter,
    pub partitions: Partitions,
    pub kubernetes: Kubernetes,
    pub inventory: Inventory,
    /// A sentence for each key with one of ClusterBloom's names that has no effect.
    pub unused_keys: Vec<String>,
    /// A sentence for each key that is written with `_` where its name has `-`.
    pub spellings: Vec<String>,
    /// A sentence for each variable of the environment that is not used.
    pub unused_variables: Vec<String>,
    /// The file and its text, so that a fault that is found later is reported with its line.
    source: Source,
}

/// Which of the machine's AMD GPUs containers may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Devices {
    All,
    /// Every GPU that is no part of a processor.
    Discrete,
    /// Indexes, PCI addresses, uuids or render names, as they were written.
    Listed(Vec<String>),
}

/// The CDI spec that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cdi {
    pub path: PathBuf,
    /// What names devices of the spec, beside `all`.
    pub names: Vec<NamedBy>,
}

/// A kind of CDI device name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamedBy {
    /// `0`
    Index,
    /// `GPU-…`: a GPU by its own, or a card with all its partitions
    Uuid,
    /// `0000:64:00.0`: a card with all its partitions
    Pci,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    path: PathBuf,
    text: String,
    tree: Node,
}

/// Why a configuration is not followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    /// `key`: the faulty key as it is written, behind its sections; empty where no one key is at fault.
    #[error("{}:{line}: {problem}", path.display())]
    Wrong { path: PathBuf, line: usize, key: String, problem: String },
    #[error("the configuration cannot be written: {0}")]
    Unwritable(#[from] yaml_serde::Error),
    /// The environment contradicts the configuration.
    #[error("{0}")]
    Environment(String),
}

impl Error {
    fn wrong(path: &Path, line: usize, key: String, problem: &str) -> Self {
        Self::Wrong { path: path.to_owned(), line, key, problem: without_passwords(problem) }
    }
}

impl Config {
    /// Reads the configuration beneath `root`; what a machine without one gets is [`Config::parse`] of nothing.
    ///
    /// # Errors
    /// When the file is not root's alone, too large, or says something that cannot be.
    pub fn read(root: &Root) -> Result<Self, Error> {
        Self::read_beside(root, &ClusterBloom::default())
    }

    /// Reads the configuration beneath `root`; `environment` counts where the file lacks a key.
    ///
    /// # Errors
    /// When the file is not root's alone, too large, or wrong, or the environment contradicts it.
    pub fn read_beside(root: &Root, environment: &ClusterBloom) -> Result<Self, Error> {
        match Self::read_file(root, Path::new(PATH), environment) {
            Err(Error::Unreadable(error)) if error.is_not_found() => {
                Self::parse_beside(&root.shown(PATH), "", environment)
            }
            other => other,
        }
    }

    /// Reads a configuration that must be there.
    ///
    /// # Errors
    /// When the file is absent, not root's alone, too large, or says something that cannot be.
    pub fn read_file(root: &Root, path: &Path, environment: &ClusterBloom) -> Result<Self, Error> {
        let shown = root.shown(path);
        let bytes = root.read_trusted(path, LIMIT)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            Error::wrong(&shown, line, String::new(), "this line is not UTF-8 text")
        })?;
        Self::parse_beside(&shown, &text, environment)
    }

    /// Reads a configuration from its text. Errors name it by `path`.
    ///
    /// # Errors
    /// Names the line that is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        Self::parse_beside(path, text, &ClusterBloom::default())
    }

    /// Reads a configuration from its text; `environment` counts where the text lacks a key.
    pub(crate) fn parse_beside(path: &Path, text: &str, environment: &ClusterBloom) -> Result<Self, Error> {
        let wrong = |fault: Fault| Error::wrong(path, fault.line, fault.key(), &fault.to_string());
        let tree = yaml::parse(text).map_err(wrong)?;
        // Nothing but comments is null in YAML, and here a configuration without keys.
        let (document, spellings) = yaml::read::<Option<Document>>(&tree).map_err(wrong)?;
        let spelling = |it: &Spelling| {
            format!("{}:{}: {} is spelled {} now", path.display(), it.line, it.written, it.key)
        };
        let spellings = spellings.iter().map(spelling).collect();
        let source = Source { path: path.to_owned(), text: text.to_owned(), tree };
        let config = document.unwrap_or_default().resolve(source, environment)?;
        Ok(Self { spellings, ..config })
    }

    /// The configuration of these keys, and its text behind `header`, a comment. `path`: where that will be.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn written(path: &Path, header: &str, keys: &Document) -> Result<Self, Error> {
        Self::parse(path, &format!("{header}{}", keys.text()?))
    }

    /// The file that the configuration was read from, with the Root in front, as messages show it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// The text that the configuration was read from; empty where there was no file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// The release of AMD's kernel driver that is to be there, where apt brings it.
    #[must_use]
    pub fn driver_release(&self) -> Option<&Release> {
        match &self.driver {
            Managed::On(Build::Release(release)) => Some(release),
            Managed::On(Build::Installer) | Managed::Off(_) => None,
        }
    }

    /// Whether the configuration asks for any package, so that apt's files have to be read.
    #[must_use]
    pub fn wants_packages(&self) -> bool {
        let Packages { container_toolkit, rocm_smi, .. } = &self.packages;
        container_toolkit.is_on() || rocm_smi.is_on() || self.rocm.is_on() || self.driver.is_on()
    }

    /// Whether the configuration has no key at all: it is absent, empty, or has nothing but comments.
    #[must_use]
    pub fn says_nothing(&self) -> bool {
        self.source.tree.has_no_key()
    }

    /// Whether the configuration has this key, such as `exporter.listen`, with a value or without.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.source.tree.find(key).is_some()
    }

    /// An error about a key of this configuration that only the machine could tell: with the key's line, or
    /// that of `item` in its list.
    #[must_use]
    pub fn wrong(&self, key: &str, item: &str, problem: impl Into<String>) -> Error {
        self.source.wrong(key, Some(item), problem)
    }
}

/// The text of a configuration as JSON, whatever keys it has: numbers that JSON would write otherwise, such as 30.10, as
/// text.
///
/// # Errors
/// When the text is no YAML, or a key is there twice.
pub fn json(text: &str) -> Result<serde_json::Value, Fault> {
    Ok(yaml::parse(text)?.json())
}

impl Source {
    /// Refuses a value of a key: `fits` says what is wrong, after the key's name.
    fn check<T>(&self, key: &str, value: &str, fits: Result<T, String>) -> Result<T, Error> {
        fits.map_err(|problem| self.wrong(key, Some(value), format!("{key} {problem}")))
    }

    /// `hint`: what ends the sentence about a number that does not fit.
    fn check_seconds(
        &self,
        key: &str,
        seconds: u32,
        fit: RangeInclusive<u32>,
        hint: &str,
    ) -> Result<(), Error> {
        if fit.contains(&seconds) {
            return Ok(());
        }
        let problem = format!("{key} is {seconds}; it takes {} to {} seconds{hint}", fit.start(), fit.end());
        Err(self.wrong(key, None, problem))
    }

    /// `key`: as it is written, behind its sections: `containerd.runtime`.
    fn wrong(&self, key: &str, item: Option<&str>, problem: impl Into<String>) -> Error {
        Error::wrong(&self.path, self.tree.line_of(key, item), key.to_owned(), &problem.into())
    }
}

/// Reads a section or key that may have no value, which is null in YAML, as its default.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(section: D) -> Result<T, D::Error> {
    Option::deserialize(section).map(Option::unwrap_or_default)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
