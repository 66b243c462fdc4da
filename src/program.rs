//! Where the wrapper's program is, or comes from.

use std::path::{Path, PathBuf};

use root::{Kind, Root};

/// Where the package puts it. It is then used as it stands there.
pub const PACKAGED: &str = "/usr/lib/rocworker/runc-amd-wrapper";

/// Where it is copied to from beside this program, when no package has it.
pub const INSTALLED: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";

/// More than it has in any build.
const LIMIT: usize = 256 << 20;

/// The wrapper's program, as engines are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Beneath the Root.
    pub path: PathBuf,
    /// What should stand there by our hand; `None`: a package's, which is left as it is.
    pub bytes: Option<Vec<u8>>,
}

/// Whether a path is one at which the wrapper stands or stood by our hand: a package may come after a copy.
#[must_use]
pub fn is_ours(path: &str) -> bool {
    [PACKAGED, INSTALLED].contains(&path)
}

impl Program {
    /// The package's; else the one beside this program, to be copied; else the one that was copied earlier.
    ///
    /// # Errors
    /// Where there is none, or it may not be believed: engines are then not told of it.
    pub fn find(root: &Root, beside: Option<&Path>) -> Result<Self, String> {
        if let Ok(meta) = root.lstat(PACKAGED)
            && meta.kind == Kind::Regular
        {
            root.believe(Path::new(PACKAGED), &meta).map_err(|error| error.to_string())?;
            return Ok(Self { path: PACKAGED.into(), bytes: None });
        }
        let installed = || {
            let bytes = root.read_trusted(INSTALLED, LIMIT)?;
            Ok(Self { path: INSTALLED.into(), bytes: Some(bytes) })
        };
        let here = Root::open(Path::new("/")).map_err(|error| error.to_string())?;
        match beside.map(|path| here.read_trusted(path, LIMIT)) {
            Some(Ok(bytes)) => Ok(Self { path: INSTALLED.into(), bytes: Some(bytes) }),
            Some(Err(error)) if !error.is_not_found() => Err(error.to_string()),
            _ => installed().map_err(|error: root::Error| match error.is_not_found() {
                true => format!(
                    "runc-amd-wrapper is neither at {PACKAGED} nor beside the program rocworker: put it there, then \
                     apply again"
                ),
                false => error.to_string(),
            }),
        }
    }
}
