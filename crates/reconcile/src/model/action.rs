use std::fmt;
use std::path::PathBuf;

use edit::Edit;
use root::Attributes;
use serde::{Deserialize, Serialize};

use super::{Effect, Resource, Use};
use crate::apt::{Check, Installer};
use crate::digest::Digest;

/// A desired state of one resource. Data, not behaviour: a plan lists it, and a receipt holds what undo needs
/// of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub path: Resource,
    pub kind: Kind,
    pub stage: Stage,
    /// Why it should be so, as a plan says it: "engines find the GPUs here".
    pub reason: String,
    /// The effects of a change, run once at the end, and of its revert unless `back` is set.
    pub effects: Vec<Effect>,
    /// The effects of a revert, where they are more than those of the change.
    pub back: Option<Vec<Effect>>,
    /// The component to which the action belongs: see [`crate::Desired::of`].
    pub component: String,
    /// Resources that must exist before this one is applied: a repository's key before the repository.
    pub needs: Vec<Resource>,
    /// Settings that would name nothing without this resource, which stays while one of them is set.
    pub uses: Vec<Use>,
    /// Another program that is known to write this path, for a message about the conflict: "the Concourse
    /// charm".
    pub rival: Option<String>,
    /// Whether the machine works without the resource: then a run that cannot apply it has not failed.
    pub is_optional: bool,
}

/// The kind of an action, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A managed file or link.
    Owned(Content),
    /// A file of another program with managed keys. A file that is not there counts as an empty one.
    Edited(Edit),
    /// A device node that is there: group and permission bits. Nothing is done where there is no node.
    Node { mode: u32, gid: u32 },
    /// A package of the machine's distribution, by apt.
    Package(Package),
    /// A folder that an archive from elsewhere becomes. The path is the folder's.
    Unpacked(Unpacked),
    /// A module of the kernel, loaded now. Not in a container, whose kernel is another's: that is for the caller to see.
    Module,
    /// A value of the kernel in a file of sysfs, until the next boot.
    Value(Value),
}

/// A kind without what it holds, as JSON and people name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    Owned,
    Edited,
    Node,
    Package,
    Unpacked,
    Module,
    Value,
}

/// A value that the kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    pub text: String,
    /// The value to which an undo returns: the one before the first write, which the kernel may have changed since.
    pub before: String,
    /// The kernel only keeps the value as a request, which takes effect later: the file says the old one until then.
    pub is_requested: bool,
    /// What errors of the kernel mean here, by errno: what to do.
    pub meanings: &'static [(i32, &'static str)],
}

/// A package of dpkg's, and what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// dpkg's name; `NAME:ARCHITECTURE` for an architecture other than the machine's.
    pub name: String,
    pub want: Want,
    /// A source of the package's own; `None`: apt has the package from a repository.
    pub installer: Option<Installer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Installed: in this version exactly, or in any that is there or to be had.
    Present { version: Option<String> },
    /// The package is not installed; its configuration may stay.
    Absent,
}

/// An archive (`.tar.gz`), and what it must hold. The path of its action is the folder that it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// `http:`, `https:` or `file:`.
    pub url: String,
    pub sha256: Digest,
    /// Paths that must exist afterwards, relative to the folder: `bin`, `lib`, `include`.
    pub holds: Vec<PathBuf>,
}

/// The content of an owned path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    File {
        bytes: Vec<u8>,
        attributes: Attributes,
    },
    /// A symbolic link, as it is written.
    Link {
        target: PathBuf,
    },
    /// A file whose bytes come from elsewhere. One that is there and holds against the check is right, whatever its
    /// bytes.
    Fetched {
        url: String,
        check: Check,
        attributes: Attributes,
    },
}

/// The first stage changes what is true; the machine is detected again before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Packages, udev, modules, nodes.
    Shape,
    /// CDI, engines, policy, tags.
    Expose,
}

impl Kind {
    #[must_use]
    pub fn name(&self) -> KindName {
        match self {
            Self::Owned(_) => KindName::Owned,
            Self::Edited(_) => KindName::Edited,
            Self::Node { .. } => KindName::Node,
            Self::Package(_) => KindName::Package,
            Self::Unpacked(_) => KindName::Unpacked,
            Self::Module => KindName::Module,
            Self::Value(_) => KindName::Value,
        }
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owned => "owned",
            Self::Edited => "edited",
            Self::Node => "node",
            Self::Package => "package",
            Self::Unpacked => "unpacked",
            Self::Module => "module",
            Self::Value => "value",
        })
    }
}

impl Package {
    /// A package of any version: one that is installed is right.
    #[must_use]
    pub fn present(name: impl Into<String>) -> Self {
        Self { name: name.into(), want: Want::Present { version: None }, installer: None }
    }

    /// A package of exactly this version.
    #[must_use]
    pub fn exactly(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), want: Want::Present { version: Some(version.into()) }, installer: None }
    }

    /// Installs the package from a file, and with it what the program in that file installs.
    #[must_use]
    pub fn by(self, installer: Installer) -> Self {
        Self { installer: Some(installer), ..self }
    }

    #[must_use]
    pub fn absent(name: impl Into<String>) -> Self {
        Self { name: name.into(), want: Want::Absent, installer: None }
    }

    /// The resource that names the package in actions, entries and changes.
    #[must_use]
    pub fn resource(&self) -> Resource {
        Resource::Package(self.name.clone())
    }
}

impl Action {
    /// A managed text file of root's, readable by all.
    #[must_use]
    pub fn file(stage: Stage, path: impl Into<Resource>, text: impl Into<String>, reason: &str) -> Self {
        let attributes = Attributes { mode: 0o644, owner: None };
        let content = Content::File { bytes: text.into().into_bytes(), attributes };
        Self::new(stage, path, Kind::Owned(content), reason)
    }

    /// An edit of another program's file.
    #[must_use]
    pub fn edit(stage: Stage, path: impl Into<Resource>, edit: Edit, reason: &str) -> Self {
        Self::new(stage, path, Kind::Edited(edit), reason)
    }

    /// A package of the machine's distribution.
    #[must_use]
    pub fn package(package: Package, reason: &str) -> Self {
        Self::new(Stage::Shape, package.resource(), Kind::Package(package), reason)
    }

    /// A folder that an archive becomes.
    #[must_use]
    pub fn unpacked(path: impl Into<Resource>, unpacked: Unpacked, reason: &str) -> Self {
        Self::new(Stage::Shape, path, Kind::Unpacked(unpacked), reason)
    }

    /// A module of the kernel, loaded now.
    #[must_use]
    pub fn module(name: impl Into<String>, reason: &str) -> Self {
        Self::new(Stage::Shape, Resource::Module(name.into()), Kind::Module, reason)
    }

    #[must_use]
    pub fn new(stage: Stage, path: impl Into<Resource>, kind: Kind, reason: &str) -> Self {
        Self {
            path: path.into(),
            kind,
            stage,
            reason: reason.to_owned(),
            effects: Vec::new(),
            back: None,
            component: String::new(),
            needs: Vec::new(),
            uses: Vec::new(),
            rival: None,
            is_optional: false,
        }
    }

    /// Adds an effect that each change of this action needs.
    #[must_use]
    pub fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Applies only once `path` exists: a file, which this run must not have failed to write; or another action's package
    /// or module, which must have come in this run or be right.
    #[must_use]
    pub fn after(mut self, path: impl Into<Resource>) -> Self {
        self.needs.push(path.into());
        self
    }

    /// Sets the effects that reverting this action needs, in place of those of a change.
    #[must_use]
    pub fn reverted_with(mut self, effects: Vec<Effect>) -> Self {
        self.back = Some(effects);
        self
    }

    /// The effects of a revert.
    #[must_use]
    pub fn effects_back(&self) -> &[Effect] {
        self.back.as_ref().unwrap_or(&self.effects)
    }

    /// Keeps what this action made while one of these settings names it.
    #[must_use]
    pub fn used_by(mut self, uses: &[Use]) -> Self {
        self.uses.extend_from_slice(uses);
        self
    }

    /// Says whether the machine works without this action.
    #[must_use]
    pub fn optional(mut self, is_optional: bool) -> Self {
        self.is_optional = is_optional;
        self
    }

    /// Names a program that is known to write the path too.
    #[must_use]
    pub fn contested_by(mut self, rival: &str) -> Self {
        self.rival = Some(rival.to_owned());
        self
    }
}
