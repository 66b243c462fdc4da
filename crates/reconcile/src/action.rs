use std::path::PathBuf;

use root::Attributes;
use serde::{Deserialize, Serialize};

use crate::{Check, Edit, Effect, Module, Package, Unpacked, Use};

/// One thing that should be so. Data, not behaviour: a plan lists it, and a receipt holds what undo needs of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Beneath the Root; of a package [`Package::path`], of a module [`Module::path`].
    pub path: PathBuf,
    pub kind: Kind,
    pub stage: Stage,
    /// Why it should be so, as a plan tells it: "engines find the GPUs here".
    pub reason: String,
    /// What a change of it makes necessary: once, at the end, and on the way back too unless `back` says otherwise.
    pub effects: Vec<Effect>,
    /// What taking it back makes necessary, where that is more than what this change does.
    pub back: Option<Vec<Effect>>,
    /// Whose part of Desired it is: see [`crate::Desired::of`].
    pub concern: String,
    /// What must be there before it can be brought about: a repository's key before apt is told of the repository.
    pub needs: Vec<PathBuf>,
    /// Settings that would name nothing without it: while one of them stands, it is not taken away.
    pub uses: Vec<Use>,
    /// Who else is known to write this path, for saying who contests it: "the Concourse charm".
    pub rival: Option<String>,
}

/// What kind of thing it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A file or link that is ours.
    Owned(Content),
    /// Somebody else's file, in which some keys are ours. A file that is not there counts as an empty one.
    Edited(Edit),
    /// A device node that is there: group and permission bits. Nothing is done where there is no node.
    Node { mode: u32, gid: u32 },
    /// A package of the machine's distribution, by apt.
    Package(Package),
    /// A folder that an archive from elsewhere becomes. The path is the folder's.
    Unpacked(Unpacked),
    /// A module of the kernel, loaded now. Not in a container, whose kernel is another's: that is for the caller to see.
    Module(Module),
}

/// What an owned path holds.
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
    /// As JSON and people name it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Owned(_) => "owned",
            Self::Edited(_) => "edited",
            Self::Node { .. } => "node",
            Self::Package(_) => "package",
            Self::Unpacked(_) => "unpacked",
            Self::Module(_) => "module",
        }
    }
}

impl Action {
    /// A text file of root's that is ours, readable by all.
    #[must_use]
    pub fn file(stage: Stage, path: impl Into<PathBuf>, text: impl Into<String>, reason: &str) -> Self {
        let attributes = Attributes { mode: 0o644, owner: None };
        let content = Content::File { bytes: text.into().into_bytes(), attributes };
        Self::new(stage, path, Kind::Owned(content), reason)
    }

    /// An edit of somebody else's file.
    #[must_use]
    pub fn edit(stage: Stage, path: impl Into<PathBuf>, edit: Edit, reason: &str) -> Self {
        Self::new(stage, path, Kind::Edited(edit), reason)
    }

    /// A package of the machine's distribution.
    #[must_use]
    pub fn package(package: Package, reason: &str) -> Self {
        Self::new(Stage::Shape, package.path(), Kind::Package(package), reason)
    }

    /// A folder that an archive becomes.
    #[must_use]
    pub fn unpacked(path: impl Into<PathBuf>, unpacked: Unpacked, reason: &str) -> Self {
        Self::new(Stage::Shape, path, Kind::Unpacked(unpacked), reason)
    }

    /// A module of the kernel, loaded now.
    #[must_use]
    pub fn module(name: impl Into<String>, reason: &str) -> Self {
        let module = Module { name: name.into() };
        Self::new(Stage::Shape, module.path(), Kind::Module(module), reason)
    }

    #[must_use]
    pub fn new(stage: Stage, path: impl Into<PathBuf>, kind: Kind, reason: &str) -> Self {
        let (path, reason) = (path.into(), reason.to_owned());
        Self {
            path,
            kind,
            stage,
            reason,
            effects: Vec::new(),
            back: None,
            concern: String::new(),
            needs: Vec::new(),
            uses: Vec::new(),
            rival: None,
        }
    }

    /// The same, and a change of it needs this.
    #[must_use]
    pub fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// The same, and not brought about before this is there: a file, or another action's package or module
    /// (`package:NAME`, `module:NAME`), which must have come in this run or be right.
    #[must_use]
    pub fn after(mut self, path: impl Into<PathBuf>) -> Self {
        self.needs.push(path.into());
        self
    }

    /// The same, and taking it back needs these and no others.
    #[must_use]
    pub fn taken_back_with(mut self, effects: Vec<Effect>) -> Self {
        self.back = Some(effects);
        self
    }

    /// What taking it back makes necessary.
    #[must_use]
    pub fn effects_back(&self) -> &[Effect] {
        self.back.as_ref().unwrap_or(&self.effects)
    }

    /// The same, and not taken away while these settings name it.
    #[must_use]
    pub fn used_by(mut self, uses: &[Use]) -> Self {
        self.uses.extend_from_slice(uses);
        self
    }

    /// The same, and somebody else is known to write this path.
    #[must_use]
    pub fn contested_by(mut self, rival: &str) -> Self {
        self.rival = Some(rival.to_owned());
        self
    }
}
