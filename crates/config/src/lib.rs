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
mod managed;
mod packages;
mod path;
mod releases;
mod scalar;
pub mod selection;
mod ssh_host;
mod therock;
mod units;
mod wrapper;

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
pub use engines::{CONTAINERD_CONFIG, CRIO_CONFIG, Concourse, DOCKER_CONFIG, Engine, Existing};
pub use exporter::{ExistingUnit, Exporter};
pub use exporter::{ExporterDocument, address as listen_address};
pub use host::{ModuleOptions, Permissions};
pub use inventory::{Group, Inventory};
pub use managed::{Managed, Off};
use packages::RocmFrom;
pub use packages::{DKMS, InstallerFile, Packages, Repositories, Repository, Rocm, Tool};
pub use packages::{PackagesDocument, RepositoriesDocument, RocmDocument, Wanted};
pub use scalar::Size;
pub use scalar::Word;
pub use ssh_host::Host;
pub use therock::TheRock;
pub use units::{Boot, Daemon};
pub use wrapper::{Edits, Wrapper};

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
    pub inventory: Inventory,
    /// A sentence for each key with one of ClusterBloom's names that has no effect.
    pub unused_keys: Vec<String>,
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
}

/// Why a configuration is not followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    /// `key`: the faulty key as it is written, behind its sections; empty where the text is no configuration at all.
    #[error("{}:{line}: {problem}", path.display())]
    Wrong { path: PathBuf, line: usize, key: String, problem: String },
    /// The environment contradicts the configuration.
    #[error("{0}")]
    Environment(String),
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
            let source = Source { path: shown.clone(), text: String::new() };
            source.wrong_at(line, "", "this line is not UTF-8 text")
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
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let document = Document::parse(text).map_err(|(line, problem)| source.wrong_at(line, "", problem))?;
        document.resolve(source, environment)
    }

    /// The configuration of these keys, and its text behind `header`, a comment. `path`: where that will be.
    ///
    /// # Errors
    /// Names the key that is wrong.
    pub fn written(path: &Path, header: &str, keys: Document) -> Result<Self, Error> {
        let source = Source { path: path.to_owned(), text: format!("{header}{}", keys.text()) };
        keys.resolve(source, &ClusterBloom::default())
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
        let is_empty = |value: yaml_serde::Value| {
            value.is_null() || value.as_mapping().is_some_and(yaml_serde::Mapping::is_empty)
        };
        yaml_serde::from_str(self.text()).is_ok_and(is_empty)
    }

    /// An error about a key of this configuration that only the machine could tell: with the key's line, or
    /// that of `item` in its list.
    #[must_use]
    pub fn wrong(&self, key: &str, item: &str, problem: impl Into<String>) -> Error {
        self.source.wrong(key, Some(item), problem)
    }
}

impl Source {
    fn wrong_at(&self, line: usize, key: &str, problem: impl Into<String>) -> Error {
        Error::Wrong { path: self.path.clone(), line, key: key.to_owned(), problem: problem.into() }
    }

    /// Refuses a value of a key: `fits` says what is wrong, after the key's name.
    fn check<T>(&self, key: &str, value: &str, fits: Result<T, String>) -> Result<T, Error> {
        fits.map_err(|problem| self.wrong(key, Some(value), format!("{key} {problem}")))
    }

    fn check_seconds(&self, key: &str, seconds: u32, fit: RangeInclusive<u32>) -> Result<(), Error> {
        if fit.contains(&seconds) {
            return Ok(());
        }
        let problem = format!("{key} is not between {} and {} seconds", fit.start(), fit.end());
        Err(self.wrong(key, None, problem))
    }

    /// `key`: as it is written, behind its sections: `containerd.runtime`.
    fn wrong(&self, key: &str, item: Option<&str>, problem: impl Into<String>) -> Error {
        let lines = || (1..).zip(self.text.lines());
        let of_key = key.split('.').fold(1, |from, part| {
            let found = lines().find(|(number, line)| *number >= from && is_of_key(line, part));
            found.map_or(from, |(number, _)| number)
        });
        let of_item = item.and_then(|item| {
            lines().find(|(number, line)| {
                let is_named = || words(line).any(|word| word == item);
                *number >= of_key && (is_named() || line.contains(&format!("\"{item}\"")))
            })
        });
        self.wrong_at(of_item.map_or(of_key, |(number, _)| number), key, problem)
    }
}

/// Reads a section or key that may have no value, which is null in YAML, as its default.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(section: D) -> Result<T, D::Error> {
    Option::deserialize(section).map(Option::unwrap_or_default)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The words of a line of YAML, as far as a list of names needs: without dashes, brackets, commas and quotes.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '"' | '\'');
    line.split(is_between).filter(|word| !word.is_empty())
}

fn is_of_key(line: &str, key: &str) -> bool {
    line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'))
}
