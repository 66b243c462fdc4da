//! A folder that an archive becomes: looked through before anything of it is written, unpacked beside its place, and put
//! there in one step.

mod manifest;
mod reader;
mod unmanaged;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use root::{Attributes, Kind, Root};

use super::case::{Case, Observed, Planned, Unchanged};
use super::file;
use crate::apt::fetch::{RESERVE, sweep};
use crate::apt::{PackageManager, Step};
use crate::digest::Digest;
use crate::error::Error;
use crate::model::{Change, Entry, Found, Managed, State, Target, Unpacked, Verb};
use crate::receipt::{Failure, Journal};

use manifest::Manifest;
pub(super) use manifest::sweep as sweep_manifests;
use reader::{Archive, Contents};
pub use unmanaged::unpack;

/// How many paths a sentence names.
const NAMED: usize = 3;

/// The place of a folder until it is complete, and during its removal: beside its final place, on that file
/// system.
fn staging(path: &Path) -> PathBuf {
    let mut name = OsString::from(".rocworker-");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

pub(super) fn plan(case: &Case<'_>, wanted: &Unpacked) -> Planned {
    let Case { seen: Observed { root, .. }, action, found, held, .. } = *case;
    let from = found.state();
    let Some(path) = action.path.path() else { return Err(format!("{} is no path", action.path).into()) };
    if !found.is_absent() {
        if !is_folder(root, path) {
            return Err(
                format!("{from} is there, which rocworker does not replace: move it out of the way").into()
            );
        }
        let Some(Managed::Unpacked { sha256, .. }) = held.map(|entry| &entry.managed) else {
            return Err(Unchanged::Blocked(
                "a folder is there, which rocworker has not unpacked: move it out of the way, or name another \
                 version in the configuration"
                    .to_owned(),
            ));
        };
        if *sha256 != wanted.sha256 {
            let sha256 = sha256.as_str();
            return Err(Unchanged::Blocked(format!(
                "another archive was unpacked there, with the SHA-256 {sha256}: rocworker undo, then apply again"
            )));
        }
        return Err(match wanted.holds.iter().find(|it| !root.exists(path.join(it))) {
            None => Unchanged::InSync,
            Some(missing) => Unchanged::Blocked(format!(
                "{} is missing from it: rocworker undo --force, then apply again",
                missing.display()
            )),
        });
    }
    let verb = match held {
        Some(entry) if !entry.managed.is_begun() => Verb::Repair,
        _ => Verb::Create,
    };
    let managed = Managed::Unpacked { sha256: wanted.sha256.clone(), begun: true };
    let entry = Entry::of(action, State::Absent, managed, case.repairs()?);
    let to = State::Other { what: format!("what {} gives", wanted.url) };
    Ok(Change::forward(action, verb, (from, to), Target::Unpacked(wanted.clone()), entry))
}

fn is_folder(root: &Root, path: &Path) -> bool {
    root.lstat(path).is_ok_and(|meta| meta.kind == Kind::Directory)
}

pub(super) fn apply(
    journal: &mut Journal<'_>,
    change: &Change,
    wanted: &Unpacked,
    now: u64,
    hear: &mut dyn FnMut(Step),
) -> Result<(), Failure> {
    let manager = journal.manager("archives are fetched and unpacked")?;
    file::write(journal, change, now, |root, path| {
        let Unpacked { url, sha256, holds } = wanted;
        let source = Source { url, sha256: Some(sha256), holds };
        let save = |manifest: &Manifest, sha256: &Digest| manifest.save(root, sha256);
        let unpacked = put(root, &manager, path, &source, save, hear);
        sweep_of(root, path);
        unpacked.map(drop)
    })
}

/// An archive, what it must be, and what it must hold.
#[derive(Debug)]
pub struct Source<'a> {
    pub url: &'a str,
    /// `None`: it is trusted for its server alone.
    pub sha256: Option<&'a Digest>,
    pub holds: &'a [PathBuf],
}

/// Puts what an archive holds at a path. `save`: what becomes of the list of it, before it is there.
fn put(
    root: &Root,
    manager: &PackageManager,
    path: &Path,
    source: &Source<'_>,
    save: impl FnOnce(&Manifest, &Digest) -> Result<(), Error>,
    hear: &mut dyn FnMut(Step),
) -> Result<Digest, String> {
    let Source { url, sha256, holds } = source;
    sweep_older(root, path);
    let file = manager.fetch_archive(root, url, hear)?;
    let archive = Archive { file: &file, programs: manager.programs() };
    let refused = |problem: String| format!("what came from {url} is not used: {problem}");
    let found = archive.digest(hear).map_err(|fault| refused(fault.to_string()))?;
    sha256.map_or(Ok(()), |sha256| sha256.check(&found)).map_err(refused)?;
    let contents = archive.look_through(hear).map_err(|fault| refused(fault.to_string()))?;
    if let Some(missing) = holds.iter().find(|it| !contents.holds(it)) {
        return Err(refused(format!("{} is not in it", missing.display())));
    }
    let beside = staging(path);
    let failed = |error: root::Error| error.to_string();
    root.remove_tree(&beside).map_err(failed)?;
    // Only root looks into it before it is whole.
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
    save(&manifest, &found).map_err(|error| error.to_string())?;
    root.sync(&beside).map_err(failed)?;
    root.rename_new(&beside, path).map_err(failed)?;
    Ok(found)
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

pub(super) fn revert(root: &Root, entry: &Entry, sha256: &Digest, found: &Found, force: bool) -> Planned {
    let (from, Some(path)) = (found.state(), entry.path.path()) else { return Err(Unchanged::Gone) };
    let strangers = match &from {
        // The folder had left its place when a run was killed.
        State::Absent if root.lstat(staging(path)).is_ok() => Ok(Vec::new()),
        State::Absent => return Err(Unchanged::Gone),
        State::Other { .. } if is_folder(root, path) => {
            if force {
                Ok(Vec::new())
            } else {
                Manifest::read(root, sha256)
                    .map_err(|error| error.to_string())
                    .and_then(|it| it.strangers(root, path).map_err(|error| error.to_string()))
            }
        }
        other => {
            let text = format!("{other} is there now, which rocworker did not put there");
            return Err(Unchanged::GoneBut(text));
        }
    };
    let strangers = strangers.map_err(|error| {
        Unchanged::Left(format!("rocworker cannot read what it has unpacked there: {error}"))
    })?;
    if strangers.is_empty() {
        return Ok(Change::back(entry, Verb::Remove, (from, State::Absent), Target::UnpackedGone));
    }
    let shown = |it: &PathBuf| root.shown(path.join(it)).display().to_string();
    let mut names: Vec<String> = strangers.iter().take(NAMED).map(shown).collect();
    if strangers.len() > NAMED {
        names.push(format!("{} more", strangers.len() - NAMED));
    }
    Err(Unchanged::Left(format!(
        "it stays whole, since these were added or changed in it: {}; move them elsewhere, then undo again, or remove \
         everything with rocworker undo --force",
        names.join(", ")
    )))
}

/// Takes the folder away: out of its place in one step, then piece by piece. One in which something is mounted stays.
pub(super) fn remove(journal: &mut Journal<'_>, change: &Change, now: u64) -> Result<(), Failure> {
    file::write(journal, change, now, |root, path| {
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
    })
}

/// Removes what a run left that was killed at a folder: the archive, and what is beside the folder's place.
pub(super) fn sweep_of(root: &Root, path: &Path) {
    sweep(root);
    // The next run reports a folder that cannot be removed now.
    root.remove_tree(staging(path)).ok();
}

/// Removes what killed runs left beside a folder's place on behalf of its other versions: `.rocworker-rocm-7.10.0` beside
/// `rocm-7.11.0`. The caller has the lock, so no other run is at work on them.
fn sweep_older(root: &Root, path: &Path) {
    let beside = staging(path);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(OsStr::to_str)) else {
        return;
    };
    let Some((what, _)) = name.split_once('-') else { return };
    let prefix = format!(".rocworker-{what}-");
    for other in root.list(folder).unwrap_or_default() {
        let place = folder.join(&other);
        let is_left = other.as_encoded_bytes().starts_with(prefix.as_bytes()) && place != beside;
        if is_left && is_folder(root, &place) {
            // A folder that cannot be removed hinders nothing.
            root.remove_tree(&place).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_a_killed_run_left_of_another_version_goes() {
        let top = tempfile::tempdir().unwrap();
        let opt = top.path().join("opt");
        for folder in [".rocworker-rocm-7.10.0/lib", ".rocworker-other-1/lib", "rocm-7.9.0/lib"] {
            fs::create_dir_all(opt.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("rocm-7.9.0", opt.join(".rocworker-rocm-link")).unwrap();
        let root = Root::open(top.path()).unwrap();
        sweep_older(&root, Path::new("/opt/rocm-7.11.0"));
        let mut there = root.list("/opt").unwrap();
        there.sort();
        let stays = [".rocworker-other-1", ".rocworker-rocm-link", "rocm-7.9.0"];
        assert_eq!(there, stays);
        assert!(opt.join("rocm-7.9.0/lib").exists());
    }
}
