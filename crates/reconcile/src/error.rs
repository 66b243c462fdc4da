use std::path::PathBuf;

pub(crate) use root::if_there;

/// Why nothing could be planned, applied or reverted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error("{0}: only root may read it, and it says what rocworker manages here: run this as root")]
    Denied(root::Error),
    #[error(
        "{}, where rocworker keeps its state, is no folder or is behind a symbolic link, so nothing could be undone: put the \
         folder itself there, or mount it there",
        path.display()
    )]
    NoFolder { path: PathBuf },
    #[error(
        "{} cannot be read: {problem}; it records what rocworker changed, so rocworker changes nothing now: restore it \
         from a backup, or move it away and revert by hand what `rocworker history` lists",
        path.display()
    )]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "{} cannot be read: {problem}; it holds what was there before the first apply, so the path stays as it is: \
         restore it from a backup, or put the path right by hand, then rocworker undo --force",
        path.display()
    )]
    Lost { path: PathBuf, problem: String },
    #[error(
        "{} has schema_version {found}, which a newer rocworker wrote; this one reads up to {known}: install the newer \
         one again, and undo with it before going back",
        path.display()
    )]
    Newer { path: PathBuf, found: u64, known: u32 },
    #[error("{} cannot be read: {problem}; move it away: it only records what happened", path.display())]
    History { path: PathBuf, problem: String },
    #[error("the receipt cannot be written as JSON: {0}")]
    Json(serde_json::Error),
}
