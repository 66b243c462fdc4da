//! `mounts`: what devices bring, the size of /dev/shm, and the machine's folders.

use serde::Serialize;

use super::{
    Injection,
    entries::{self, Mount},
};
use crate::{
    Error,
    json::{Fault, Scanner},
    path::clean,
    splice::{ARRAY, Members, OBJECT, Place, Splices, elements, json},
};

const SHM: &str = "/dev/shm";

/// Adds the mounts that are not there yet. Returns the whole list if the bundle has none. Calls `warn` with what it
/// leaves out.
pub(super) fn extend(
    text: &str,
    place: Place,
    injection: &Injection<'_>,
    splices: &mut Splices,
    warn: &mut dyn FnMut(&str),
) -> Result<Option<String>, Error> {
    let Injection { mounts, shm_bytes, folders, .. } = injection;
    let for_gpus = !mounts.is_empty() || shm_bytes.is_some();
    let present: Vec<(usize, Mount<'_>)> = match entries::read_with_places(text, place, "mounts") {
        Ok(present) => present,
        Err(error) if for_gpus => return Err(error),
        // A container that asks for nothing starts all the same.
        Err(error) => {
            warn(&format!(
                "the policy's folders are not mounted, since its mounts cannot be edited: {error}"
            ));
            return Ok(None);
        }
    };
    let mut missing: Vec<New<'_>> = Vec::new();
    for (at, mount) in mounts.iter().enumerate() {
        let repeated = mounts.iter().take(at).any(|earlier| earlier == mount);
        if repeated || present.iter().any(|(_, present)| present.is(mount)) {
            continue;
        }
        missing.push(New {
            destination: &mount.container_path,
            kind: mount.kind.as_deref(),
            source: &mount.host_path,
            options: mount.options.iter().map(|option| &**option).collect(),
        });
    }
    let size = shm_bytes.map(|bytes| format!("size={bytes}"));
    if let Some(size) = &size {
        // Of several, the last one covers the others.
        match present.iter().rfind(|(_, mount)| clean(&mount.destination) == SHM) {
            // As `runc spec` has it.
            None => {
                let options = vec!["nosuid", "noexec", "nodev", "mode=1777", size];
                missing.push(New { destination: SHM, kind: Some("tmpfs"), source: "shm", options });
            }
            Some((at, mount)) if mount.kind.as_deref() == Some("tmpfs") => {
                resize(text, *at, size, splices).map_err(|fault| fault.of(text))?;
            }
            Some(_) => warn(
                "its /dev/shm is no tmpfs of its own, and keeps its size: shm_bytes in the policy does not count here",
            ),
        }
    }
    let brought = mounts.iter().map(|mount| (clean(&mount.container_path), Some(&*mount.host_path)));
    let there = present.iter().map(|(_, mount)| (clean(&mount.destination), mount.source.as_deref()));
    let there: Vec<_> = there.chain(brought).collect();
    for folder in *folders {
        if there.iter().any(|(destination, source)| decides_about(destination, *source, &folder.path)) {
            continue;
        }
        let (access, kept) = if folder.writable { ("rw", &[][..]) } else { ("ro", &*folder.kept) };
        let options = [&["rbind", access], kept].concat();
        missing.push(New { destination: &folder.path, kind: Some("bind"), source: &folder.path, options });
    }
    Ok(splices.extend(place, ARRAY, elements(&missing)))
}

/// A mount that is added.
#[derive(Serialize)]
struct New<'m> {
    destination: &'m str,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'m str>,
    source: &'m str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
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

/// Whether a mount is in the place of a folder. It may be at its path, or beneath it, where the folder would cover it.
/// It may be above it: the wrapper makes no folder in a user's volume; only the host's own folder has it already.
fn decides_about(destination: &str, source: Option<&str>, path: &str) -> bool {
    let is_beneath = |rest: &str| rest.starts_with('/');
    match path.strip_prefix(destination) {
        Some("") => true,
        Some(below) => is_beneath(below) && source != Some(destination),
        None => destination.strip_prefix(path).is_some_and(is_beneath),
    }
}

/// Puts the option in place of each size that the mount at this offset has, or behind its others.
fn resize(text: &str, at: usize, size: &str, splices: &mut Splices) -> Result<(), Fault> {
    let (mut options, mut has_size) = (Place::Absent, false);
    let mount = Scanner::at(text, at).object(|scanner, key| {
        // It was read before: in no other spelling, and once.
        if !key.is("options") {
            return scanner.skip().map(drop);
        }
        options = match scanner.peek()? {
            b'n' => Place::Null(scanner.skip()?),
            _ => Place::Here(scanner.array(|scanner| {
                let option = scanner.string()?;
                let is = option.decode();
                has_size |= is.starts_with("size=");
                if is.starts_with("size=") && is != size {
                    splices.replace(option.span, json(size));
                }
                Ok(())
            })?),
        };
        Ok(())
    })?;
    if !has_size {
        let mut members = Members::default();
        members.add("options", splices.extend(options, ARRAY, json(size)));
        splices.extend(Place::Here(mount), OBJECT, members.0);
    }
    Ok(())
}
