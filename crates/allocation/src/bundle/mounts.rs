//! `mounts`: the size of /dev/shm, and the machine's folders.

use raw_json::Text;
use serde::Serialize;

use super::entries::{self, Mount};
use crate::{
    Error,
    folder::Folder,
    object::{ARRAY, OBJECT, Object, list},
    path::clean,
    splice::{Members, Splices, joined, json},
};

const SHM: &str = "/dev/shm";

/// Sets the size of /dev/shm and adds the mounts of folders that are not there yet. Returns the whole list if the bundle
/// has none. Calls `warn` with what it leaves out.
pub(super) fn extend(
    text: &str,
    place: Option<&str>,
    (shm_bytes, folders): (Option<u64>, &[Folder]),
    splices: &mut Splices<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<Option<String>, Error> {
    if shm_bytes.is_none() && folders.is_empty() {
        return Ok(None);
    }
    let present = match entries::read(text, place, "mounts", Mount::read) {
        Ok(present) => present,
        Err(error) if shm_bytes.is_some() => return Err(error),
        // A container that asks for nothing must still start.
        Err(error) => {
            warn(&format!(
                "the policy's folders are not mounted, since its mounts cannot be edited: {error}"
            ));
            return Ok(None);
        }
    };
    let mut missing: Vec<New<'_>> = Vec::new();
    let size = shm_bytes.map(|bytes| format!("size={bytes}"));
    if let Some(size) = &size {
        // The last of several mounts at one place covers the others.
        match present.iter().rfind(|mount| mount.is_at(SHM)) {
            // `runc spec` writes these options.
            None => {
                let options = vec!["nosuid", "noexec", "nodev", "mode=1777", size];
                missing.push(New { destination: SHM, kind: "tmpfs", source: "shm", options });
            }
            Some(mount) if mount.kind.as_deref() == Some("tmpfs") => {
                resize(text, mount.value, size, splices)?
            }
            Some(_) => warn(
                "its /dev/shm is no tmpfs of its own, and keeps its size: shm_bytes in the policy does not count here",
            ),
        }
    }
    let there: Vec<_> =
        present.iter().map(|mount| (clean(&mount.destination), mount.source.as_deref())).collect();
    for folder in folders {
        if there.iter().any(|(destination, source)| decides_about(destination, *source, &folder.path)) {
            continue;
        }
        let (access, kept) = if folder.writable { ("rw", &[][..]) } else { ("ro", &*folder.kept) };
        let options = [&["rbind", access], kept].concat();
        missing.push(New { destination: &folder.path, kind: "bind", source: &folder.path, options });
    }
    Ok(splices.extend(place, ARRAY, joined(&missing)))
}

/// A mount that is added.
#[derive(Serialize)]
struct New<'m> {
    destination: &'m str,
    #[serde(rename = "type")]
    kind: &'static str,
    source: &'m str,
    options: Vec<&'m str>,
}

/// The mount in which a path of the container lies, and the path in it: of several the last one, which covers the others.
#[must_use]
pub fn mount_over<'m, 'a>(mounts: &'m [Mount<'a>], path: &str) -> Option<(&'m Mount<'a>, String)> {
    mounts.iter().rev().find_map(|mount| rest_behind(&mount.destination, path).map(|rest| (mount, rest)))
}

/// The rest of a path behind one at or above it, however both are spelt.
#[must_use]
pub fn rest_behind(above: &str, path: &str) -> Option<String> {
    let (above, path) = (clean(above), clean(path));
    let rest = path.strip_prefix(above.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
}

/// Whether a mount prevents that a folder is mounted at `path`. It may be at that path, or beneath it, where
/// the folder would cover it. It may also be above: the wrapper makes no folder in a user's volume. Only a
/// mount of the host's own folder at its own path has the folder already.
fn decides_about(destination: &str, source: Option<&str>, path: &str) -> bool {
    let is_beneath = |rest: &str| rest.starts_with('/');
    match path.strip_prefix(destination) {
        Some("") => true,
        Some(below) => is_beneath(below) && source != Some(destination),
        None => destination.strip_prefix(path).is_some_and(is_beneath),
    }
}

/// Puts the option in place of each size that the mount has, or behind its others.
fn resize(text: &str, mount: &str, size: &str, splices: &mut Splices<'_>) -> Result<(), Error> {
    let options = Object::of(text, mount)?.container("options", ARRAY)?;
    let mut has_size = false;
    for option in list(options) {
        let is = Text::of(option).unwrap_or_default();
        has_size |= is.starts_with("size=");
        if is.starts_with("size=") && &*is != size {
            splices.replace(option, json(size));
        }
    }
    if !has_size {
        let mut members = Members::default();
        members.add("options", splices.extend(options, ARRAY, json(size)));
        splices.extend(Some(mount), OBJECT, members.0);
    }
    Ok(())
}
