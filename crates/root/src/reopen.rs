use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::Files;
use crate::memory::Tree;
use crate::{Asked, Beneath, Error, Reader, Root};

/// A description from which any thread can open a Root again.
#[derive(Clone)]
pub struct Place(Kind);

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.path()).finish()
    }
}

#[derive(Clone)]
enum Kind {
    Folder(PathBuf, Option<Arc<dyn Reader>>),
    Memory(Arc<Tree>),
}

impl Place {
    /// # Errors
    /// Fails where [`Root::open`] fails; files in memory never do.
    pub fn open(&self) -> Result<Root, Error> {
        match &self.0 {
            Kind::Folder(path, reader) => Ok(Root { reader: reader.clone(), ..Root::open(path)? }),
            Kind::Memory(tree) => Ok(Root::of_tree(tree.clone())),
        }
    }

    /// The Root's own path, as a person at a shell would name it; of another machine's files that machine's `/`.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.0 {
            Kind::Folder(path, _) => path,
            Kind::Memory(_) => Path::new("/"),
        }
    }
}

/// A folder, which need not be there yet.
impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self(Kind::Folder(path, None))
    }
}

impl Root {
    /// A Root over another machine's files as they were read there. Nothing is ever written to them.
    ///
    /// A path that was neither read nor listed gives [`Error::NotRead`]. Paths have no prefix: they are spelt
    /// as on that machine.
    #[must_use]
    pub fn of_files(files: Files) -> Self {
        Self::of_tree(Arc::new(Tree::of(files)))
    }

    fn of_tree(tree: Arc<Tree>) -> Self {
        let owner = tree.reader();
        Self::of(Beneath::Memory(tree), Path::new("/"), owner)
    }

    /// The place from which this Root can be opened again, with its [`Reader`].
    #[must_use]
    pub fn place(&self) -> Place {
        Place(match &self.beneath {
            Beneath::Folder(_) => Kind::Folder(self.path.clone(), self.reader.clone()),
            Beneath::Memory(tree) => Kind::Memory(tree.clone()),
        })
    }

    /// Whether the Root holds another machine's files in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.memory().is_some()
    }

    /// The paths of another machine that a caller asked about and the script did not read. Empty for a folder's Root.
    #[must_use]
    pub fn not_read(&self) -> BTreeMap<PathBuf, Asked> {
        self.memory().map(Tree::unknown).unwrap_or_default()
    }

    pub(crate) fn memory(&self) -> Option<&Tree> {
        match &self.beneath {
            Beneath::Folder(_) => None,
            Beneath::Memory(tree) => Some(tree),
        }
    }
}
