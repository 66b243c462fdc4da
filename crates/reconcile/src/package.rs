//! A package of the machine's distribution: one that should be there, or should not.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Installer;

/// What the path of a package begins with, in a plan and in a receipt: `package:rocm-smi-lib`.
const PREFIX: &str = "package:";

/// A package of dpkg's, and what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// As dpkg names it; `NAME:ARCHITECTURE` for one of another architecture than the machine's.
    pub name: String,
    pub want: Want,
    /// `None`: apt has it from a repository.
    pub installer: Option<Installer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Installed: in this version exactly, or in any that is there or to be had.
    Present { version: Option<String> },
    /// Not installed. What it leaves of its configuration may stay.
    Absent,
}

/// A package that came with one that was asked for, or is that one: it was not there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Came {
    /// As dpkg names it.
    pub name: String,
    pub version: String,
    /// Its configuration was there before, from an earlier time: undo leaves that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_configuration: bool,
    /// An installer asked for it by name, so that apt notes it as installed by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// It was seen as apt notes what came for the sake of others, after apt had come to its end: if apt has it
    /// otherwise later, that is somebody's doing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub noted: bool,
}

impl Package {
    /// Any version: one that is there is right.
    #[must_use]
    pub fn present(name: impl Into<String>) -> Self {
        Self { name: name.into(), want: Want::Present { version: None }, installer: None }
    }

    /// This version and no other.
    #[must_use]
    pub fn exactly(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), want: Want::Present { version: Some(version.into()) }, installer: None }
    }

    /// The same from a file, with what the program installs that it brings.
    #[must_use]
    pub fn by(self, installer: Installer) -> Self {
        Self { installer: Some(installer), ..self }
    }

    #[must_use]
    pub fn absent(name: impl Into<String>) -> Self {
        Self { name: name.into(), want: Want::Absent, installer: None }
    }

    /// What stands for a path where a package is meant: no file has such a name, since it does not begin at the Root.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("{PREFIX}{}", self.name))
    }
}

/// The package that a path of an action, entry or change names, if it names one.
pub(crate) fn named(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// Whether a path of an action, entry, change or finding names a package and no file.
#[must_use]
pub fn is_package(path: &Path) -> bool {
    named(path).is_some()
}
