use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Error, Reader, Root};

/// A description from which any thread can open a Root again.
#[derive(Clone)]
pub struct Place {
    path: PathBuf,
    reader: Option<Arc<dyn Reader>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.path).finish()
    }
}

impl Place {
    /// # Errors
    /// Fails where [`Root::open`] fails.
    pub fn open(&self) -> Result<Root, Error> {
        Ok(Root { reader: self.reader.clone(), ..Root::open(&self.path)? })
    }

    /// The Root's own path, as a person at a shell would name it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A folder, which need not be there yet.
impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self { path, reader: None }
    }
}

impl Root {
    /// The place from which this Root can be opened again, with its [`Reader`].
    #[must_use]
    pub fn place(&self) -> Place {
        Place { path: self.path.clone(), reader: self.reader.clone() }
    }
}
