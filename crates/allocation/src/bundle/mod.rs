//! A container's `config.json` (OCI runtime-spec), read for what matters and edited in place.
//!
//! The text is scanned once, and only the places of what matters are kept. An edit splices text at these
//! places: every other byte stays as it was, unknown fields, order, number spelling and whitespace
//! included.
//!
//! # Whose reading counts
//! runc reads the file with Go's decoder, which unescapes keys, matches them without regard to case, and
//! merges what appears twice. So a key is recognised here in every spelling that Go takes for it, and edited
//! in place. Where one that matters appears twice, or has a wrong type, it is not clear what the
//! bundle means: [`Bundle::parse`] refuses it, and the caller looks through its strings for a request, since a container
//! that asks for nothing is not hindered by it.
//!
//! What does not matter here is passed over by its brackets, and runc says whether it is JSON. Where it is none, what is
//! made of it is none either.

mod devices;
mod entries;
mod hooks;
mod inject;
mod mounts;
mod places;
mod rlimits;

use std::borrow::Cow;

pub use devices::{Device, Node};
pub use entries::Mount;
pub use inject::{Injection, ProcessEdits};
pub use mounts::{mount_over, rest_behind};
pub(crate) use places::Process;

use crate::{
    Error,
    gids::UserNamespace,
    json::{Container, Fault, Scanner, Span},
    splice::{ARRAY, OBJECT, Place},
};
use places::Linux;

/// A bundle's `config.json`, of which only the places of what matters are known.
#[derive(Clone, Debug, Default)]
pub struct Bundle<'a> {
    text: &'a str,
    root: Container,
    /// Of each value of `root`.
    roots: Vec<Span>,
    process_place: Place,
    process: Process<'a>,
    linux_place: Place,
    linux: Linux,
    annotations: Place,
    annotation_keys: Vec<Cow<'a, str>>,
    mounts: Place,
    hooks: Place,
}

impl<'a> Bundle<'a> {
    /// Finds what matters.
    ///
    /// # Errors
    /// The text is not one JSON object, as far as is looked at, or is nested deeper than 127. Or it has a key that matters
    /// twice, or with a value of another type.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut bundle = Self { text, ..Self::default() };
        bundle.read().map_err(|fault| fault.of(text))?;
        Ok(bundle)
    }

    fn read(&mut self) -> Result<(), Fault> {
        let mut scanner = Scanner::new(self.text);
        self.root = scanner.object_of(|scanner, key| {
            if key.names("process") {
                let read = |scanner: &mut _| self.process.read(scanner);
                self.process_place.read(scanner, (key, "process"), OBJECT, read)
            } else if key.names("linux") {
                self.linux_place.read(scanner, (key, "linux"), OBJECT, |scanner| self.linux.read(scanner))
            } else if key.names("mounts") {
                self.mounts.pass(scanner, (key, "mounts"), ARRAY)
            } else if key.names("root") {
                self.roots.push(scanner.pass()?);
                Ok(())
            } else if key.names("hooks") {
                self.hooks.pass(scanner, (key, "hooks"), OBJECT)
            } else if key.names("annotations") {
                self.annotations.read(scanner, (key, "annotations"), OBJECT, |scanner| {
                    scanner.object(|scanner, key| {
                        self.annotation_keys.push(key.decode());
                        scanner.pass().map(drop)
                    })
                })
            } else {
                scanner.pass().map(drop)
            }
        })?;
        scanner.finish()
    }

    /// `process.env`, entry by entry.
    pub fn env(&self) -> impl Iterator<Item = &str> {
        self.process.entries.iter().map(|entry| &*entry.text)
    }

    /// The keys of `annotations`.
    pub fn annotation_keys(&self) -> impl Iterator<Item = &str> {
        self.annotation_keys.iter().map(|key| &**key)
    }

    /// The user namespace that the bundle asks for (`linux.namespaces`, `uidMappings`, `gidMappings`).
    ///
    /// # Errors
    /// One of these keys cannot be read.
    pub fn user_namespace(&self) -> Result<UserNamespace, Error> {
        let namespaces: Vec<entries::Namespace<'_>> =
            entries::read(self.text, self.linux.namespaces, "linux.namespaces")?;
        let Some(user) = namespaces.into_iter().find(|namespace| namespace.kind == "user") else {
            return Ok(UserNamespace::Host);
        };
        let uids = entries::read(self.text, self.linux.uid_mappings, "linux.uidMappings")?;
        let gids = entries::read(self.text, self.linux.gid_mappings, "linux.gidMappings")?;
        match user.path {
            Some(path) if gids.is_empty() && !path.is_empty() => {
                Ok(UserNamespace::Joined { path: path.into_owned() })
            }
            _ => Ok(UserNamespace::Mapped { uids, gids }),
        }
    }

    /// `linux.devices`.
    ///
    /// # Errors
    /// An entry is not a device.
    pub fn devices(&self) -> Result<Vec<Device<'a>>, Error> {
        entries::read(self.text, self.linux.devices, "linux.devices")
    }

    /// `mounts`.
    ///
    /// # Errors
    /// An entry is not a mount.
    pub fn mounts(&self) -> Result<Vec<Mount<'a>>, Error> {
        entries::read(self.text, self.mounts, "mounts")
    }

    /// `linux.cgroupsPath`; the last one where it appears twice, as Go's decoder has it.
    ///
    /// # Errors
    /// It is no string.
    pub fn cgroups_path(&self) -> Result<Option<String>, Error> {
        let Some(span) = self.linux.cgroups_path else { return Ok(None) };
        let path = Scanner::at(self.text, span.start).optional(Scanner::string_of_its_own);
        path.map_err(|fault| entries::unreadable(self.text, "linux.cgroupsPath", fault))
    }

    /// `root.path`; None where it is not plain to see. Of several `root` Go's decoder takes the last path.
    #[must_use]
    pub fn rootfs(&self) -> Option<Cow<'a, str>> {
        let mut path = None;
        for root in &self.roots {
            let read = Scanner::at(self.text, root.start).object_of(|scanner, key| {
                if !key.names("path") {
                    return scanner.pass().map(drop);
                }
                path = Some(scanner.text()?);
                Ok(())
            });
            read.ok()?;
        }
        path
    }
}

#[cfg(test)]
mod tests;
