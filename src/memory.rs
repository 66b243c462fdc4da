//! What is remembered from one apply to the next, beside the receipt: what words of the configuration meant, which
//! version a program has, which built-in template an override was made beside.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use amdgpu::Gpu;
use root::{Attributes, Root, Written};
use serde::{Deserialize, Serialize};

use crate::driver::Attempt;
use crate::engines::Known;
use crate::render::Sums;

const PATH: &str = "/var/lib/rocworker/memory.json";
const LIMIT: usize = 4 << 20;
const VERSION: u32 = 1;

/// Everything that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    schema_version: u32,
    #[serde(default)]
    pub chosen: Chosen,
    /// Versions of programs, by path.
    #[serde(default)]
    pub versions: BTreeMap<PathBuf, Known>,
    /// Beside which built-in template each override was first seen.
    #[serde(default)]
    pub overrides: BTreeMap<String, Sums>,
    /// The last reboot that was asked for because of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Attempt>,
}

/// What indexes and render names of `gpu-device-ids` meant when they were first applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Chosen(BTreeMap<String, Choice>);

/// A GPU by what stays its own: its uuid, else its card's PCI address and its place among the card's partitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    pub pci: String,
    /// `None`: the GPU has none of its own.
    pub uuid: Option<String>,
    pub partition: Option<u32>,
}

/// Why what is remembered cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    #[error("{} cannot be read: {problem}; move it away: words of gpu-device-ids are then looked up anew", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "{} has schema_version {found}, which another rocworker wrote: install that one again, and undo with it before \
         going back",
        path.display()
    )]
    Newer { path: PathBuf, found: u32 },
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            schema_version: VERSION,
            chosen: Chosen::default(),
            versions: BTreeMap::new(),
            overrides: BTreeMap::new(),
            driver: None,
        }
    }
}

impl Memory {
    /// What is remembered; nothing where nothing is.
    ///
    /// # Errors
    /// When it cannot be read or believed, or was written by a newer version.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let bytes = match root.read_trusted(PATH, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let damaged = |problem| Error::Damaged { path: root.shown(PATH), problem };
        let memory: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if memory.schema_version != VERSION {
            let found = memory.schema_version;
            return Err(Error::Newer { path: root.shown(PATH), found });
        }
        Ok(memory)
    }

    /// Remembers it; nothing is written when it is what stands there, and nothing is left when there is nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, root: &Root) -> Result<Written, root::Error> {
        if *self == Self::default() {
            return root.remove(PATH);
        }
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        root.write(PATH, &text, Attributes { mode: 0o644, owner: None })
    }
}

impl Chosen {
    #[must_use]
    pub fn get(&self, word: &str) -> Option<&Choice> {
        self.0.get(word)
    }

    pub(crate) fn insert(&mut self, word: &str, choice: Choice) {
        self.0.insert(word.to_owned(), choice);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Choice)> {
        self.0.iter().map(|(word, choice)| (word.as_str(), choice))
    }
}

impl Choice {
    /// `None` of a GPU whose card is not known.
    pub(crate) fn of(gpu: &Gpu) -> Option<Self> {
        Some(Self {
            pci: gpu.pci?.to_string(),
            uuid: gpu.uuid.as_ref().ok().map(ToString::to_string),
            partition: gpu.partition.as_ref().map(|partition| partition.id),
        })
    }

    /// Whether this is the GPU that was chosen: a card that stands in another slot by now is still the same, and
    /// another card in the same slot is not.
    #[must_use]
    pub fn is(&self, gpu: &Gpu) -> bool {
        let Some(now) = Self::of(gpu) else { return false };
        match (&self.uuid, &now.uuid) {
            (Some(ours), Some(its)) => ours == its,
            (None, None) => self.pci == now.pci && self.partition == now.partition,
            _ => false,
        }
    }

    pub(crate) fn gone(&self, word: &str) -> String {
        format!(
            "gpu-device-ids names {word}, which was {self} when it was first applied, and that GPU is not there any \
             more: put it back, or name another GPU by its PCI address or uuid (rocworker detect)"
        )
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pci)?;
        if let Some(partition) = self.partition {
            write!(f, " partition {partition}")?;
        }
        self.uuid.as_ref().map_or(Ok(()), |uuid| write!(f, " ({uuid})"))
    }
}
