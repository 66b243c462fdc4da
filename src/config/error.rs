use std::path::PathBuf;

/// Why a configuration is not followed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Unreadable(#[from] root::Error),
    #[error("{}:{line}: {problem}", path.display())]
    Wrong { path: PathBuf, line: usize, problem: String },
}
