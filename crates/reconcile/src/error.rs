use std::path::PathBuf;

pub(crate) use root::if_there;

/// Why nothing could be planned, done or taken back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error("{0}: only root reads it, and nobody else can tell what is rocworker's here: run it as root")]
    Denied(root::Error),
    #[error(
        "{} cannot be read: {problem}; it tells what rocworker changed, so nothing is changed now: restore it from a \
         backup, or move it away and take back by hand what `rocworker history` lists",
        path.display()
    )]
    Damaged { path: PathBuf, problem: String },
    #[error(
        "{} cannot be read: {problem}; it holds what stood there before rocworker came, so the path stays as it is: \
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
    #[error("{} cannot be read: {problem}; move it away: it only tells what happened", path.display())]
    History { path: PathBuf, problem: String },
    #[error("the receipt cannot be written as JSON: {0}")]
    Json(serde_json::Error),
}
