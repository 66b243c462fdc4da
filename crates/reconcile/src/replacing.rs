//! Replacing a file by what a plan wants there, and ending a replacement in which a run was killed.
//!
//! The new file and the old one are exchanged, compared, and exchanged back where somebody had changed the old one. A run
//! that is killed between the two leaves that edit under a temporary name.

use std::path::{Path, PathBuf};

use root::{Attributes, New, Root};
use serde::{Deserialize, Serialize};

use crate::plan::Target;
use crate::state::{Found, Unseen};
use crate::work::Work;
use crate::{State, unpack};

/// What a run was about to replace, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacing {
    pub from: State,
    pub to: State,
}

/// Puts an edit back that a killed run has displaced, and takes away what else it has left. Where the file was changed
/// again since, the displaced edit stays beside it: the answer names what stays.
///
/// # Errors
/// When an edit can be neither put back nor kept: it stays under its temporary name.
pub(crate) fn end(
    root: &Root,
    path: &Path,
    replacing: Option<&Replacing>,
) -> Result<Vec<PathBuf>, root::Error> {
    let look = |path: &Path| -> Result<State, Unseen> { Ok(Found::look(root, path)?.state()) };
    if let Some(Replacing { from, to }) = replacing {
        let is_known = |left: &Path| look(left).is_ok_and(|state| state == *from || state == *to);
        let is_theirs = |left: &PathBuf| !is_known(left) && !root.is_half_written(left);
        for left in root.left_beside(path).into_iter().filter(is_theirs) {
            if look(path).is_ok_and(|state| state == *to) {
                root.put_back(&left, path)?;
            } else {
                root.keep_beside(&left)?;
            }
        }
    }
    root.sweep_all(path);
    Ok(root.kept_beside(path))
}

impl Work<'_> {
    /// Puts a target in place of `from`, and of nothing else that somebody has put there since.
    pub(crate) fn bring_about(&self, path: &Path, from: &State, target: &Target) -> Result<(), root::Error> {
        let new = match target {
            Target::File { bytes, mode, owner } => {
                New::File { bytes, how: Attributes { mode: *mode, owner: *owner } }
            }
            Target::Link { target } => New::Link(target),
            Target::Absent => New::Nothing,
            Target::Node { mode, uid, gid } => return self.root().set_node(path, *mode, *uid, *gid),
            Target::UnpackedGone => return unpack::remove(self.root(), path),
            // See installing.rs, unpack/ and module.rs. What is fetched is a file by now.
            Target::Package(_)
            | Target::Fetched { .. }
            | Target::Unpacked(_)
            | Target::Load { .. }
            | Target::Unload { .. } => return Ok(()),
        };
        let is_from = |path: &Path| Found::look(self.root(), path).is_ok_and(|found| found.state() == *from);
        self.root().replace(path, new, &is_from)
    }
}
