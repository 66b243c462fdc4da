//! An archive, as a plan wants it: fetched, checked, looked through, unpacked beside its place, and put there.

use std::path::Path;

use root::{Attributes, Root};

use super::archive::{Archive, Contents};
use super::{Manifest, Unpacked, staging};
use crate::apt::Hands;
use crate::fetch::sweep;
use crate::plan::Change;
use crate::state::Found;
use crate::work::Work;
use crate::{Error, Step};

/// Whether a change was made, and why it was not.
type Made = Result<(), String>;

/// What a file system should have left when everything is there, in bytes: a full one hinders more than the archive helps.
pub(crate) const RESERVE: u64 = 256 << 20;

impl Work<'_> {
    /// The outer error is one of the receipt, the inner one of this change.
    pub(crate) fn make_unpacked(
        &mut self,
        change: &Change,
        wanted: &Unpacked,
        now: u64,
        hear: &mut dyn FnMut(Step),
    ) -> Result<Made, Error> {
        let Some(hands) = self.hands().cloned() else {
            return Ok(Err("archives are fetched and unpacked on the running machine only".to_owned()));
        };
        let path = change.path.as_path();
        match Found::look(self.root(), path).map(|found| found.state()) {
            Ok(state) if state == change.from => {}
            Ok(state) => return Ok(Err(format!("{state} stands there by now: run it again"))),
            Err(error) => return Ok(Err(error.to_string())),
        }
        let until_now = self.receipt().clone();
        let missing = self.root().missing_folders(path);
        self.receipt_mut().add_folders(missing);
        self.begin_change(change, now)?;
        let made = unpack(self.root(), &hands, path, wanted, hear);
        sweep_of(self.root(), path);
        match made {
            Ok(()) => {
                self.end_change(change, now);
                Ok(Ok(()))
            }
            Err(text) => {
                self.take_back(until_now, change);
                Ok(Err(text))
            }
        }
    }
}

/// Takes away what a run left that was killed at a folder: the archive, and what stands beside the folder's place.
pub(crate) fn sweep_of(root: &Root, path: &Path) {
    sweep(root);
    // Where it does not go, the next run tells it.
    root.remove_tree(staging(path)).ok();
}

/// Takes a folder away: out of its place in one step, then piece by piece. One in which something is mounted stays.
pub(crate) fn remove(root: &Root, path: &Path) -> Result<(), root::Error> {
    let beside = staging(path);
    if root.mount_beneath(path).is_some() {
        // Says so, and does not move it.
        return root.remove_tree(path);
    }
    if root.lstat(path).is_ok() {
        root.remove_tree(&beside)?;
        root.rename_new(path, &beside)?;
    }
    root.remove_tree(&beside)
}

fn unpack(
    root: &Root,
    hands: &Hands,
    path: &Path,
    wanted: &Unpacked,
    hear: &mut dyn FnMut(Step),
) -> Result<(), String> {
    let Unpacked { url, sha256, holds } = wanted;
    let file = hands.fetch_archive(root, url, hear)?;
    let archive = Archive { file: &file, programs: hands.programs() };
    let refused = |problem: String| format!("what came from {url} is not used: {problem}");
    let found = archive.digest(hear).map_err(|fault| refused(fault.to_string()))?;
    if found != *sha256 {
        return Err(refused(format!(
            "its SHA-256 is {}, and {} is configured",
            found.as_str(),
            sha256.as_str()
        )));
    }
    let contents = archive.look_through(hear).map_err(|fault| refused(fault.to_string()))?;
    if let Some(missing) = holds.iter().find(|it| !contents.holds(it)) {
        return Err(refused(format!("{} is not in it", missing.display())));
    }
    let beside = staging(path);
    let failed = |error: root::Error| error.to_string();
    root.remove_tree(&beside).map_err(failed)?;
    // Nobody but root looks into it before it is whole.
    root.make_folder(&beside, Attributes { mode: 0o700, owner: None }).map_err(failed)?;
    let free = root.free_space(&beside).map_err(failed)?;
    if free < contents.bytes.saturating_add(RESERVE) {
        return Err(format!(
            "it takes {} MiB unpacked, and the file system of {} has {} MiB left, of which {} are to stay free: make room \
             there, then apply again",
            contents.bytes >> 20,
            root.shown(path).display(),
            free >> 20,
            RESERVE >> 20
        ));
    }
    archive.unpack(&root.shown(&beside), hear).map_err(|fault| refused(fault.to_string()))?;
    let manifest = Manifest::of(root, &beside).map_err(failed)?;
    open_folders(root, &beside, &manifest, &contents).map_err(failed)?;
    manifest.save(root, sha256).map_err(|error| error.to_string())?;
    root.sync(&beside).map_err(failed)?;
    root.rename_new(&beside, path).map_err(failed)
}

/// Folders of which the archive says nothing are as this run's umask made them: others are to read them too.
fn open_folders(
    root: &Root,
    top: &Path,
    manifest: &Manifest,
    contents: &Contents,
) -> Result<(), root::Error> {
    let how = Attributes { mode: 0o755, owner: None };
    for folder in manifest.folders().filter(|it| !contents.names_folder(it)) {
        root.give_folder(top.join(folder), how)?;
    }
    root.give_folder(top, how)
}
