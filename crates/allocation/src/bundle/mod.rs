//! A container's `config.json` (OCI runtime-spec), read for what matters and edited in place.
//!
//! The text is scanned once, and only the places of what matters are kept. An edit splices text at these
//! places: every other byte stays as it was, unknown fields, order, number spelling and whitespace
//! included.
//!
//! # Whose reading counts
//! runc reads the file with Go's decoder, which unescapes keys, matches them without regard to case, and
//! merges what stands twice. So a key is recognised here in every spelling that Go takes for it, and edited
//! where it stands. Where one that matters stands twice, or has a wrong type, nobody can say what the
//! bundle means: [`Bundle::doubt`] says so and [`Bundle::inject`] refuses; a container that asks for
//! nothing is not hindered by it.
//!
//! What nobody wants to know here is gone past by its brackets, and runc says whether it is JSON. Where it is none, what is
//! made of it is none either.

mod entries;
mod error;
mod hooks;
mod inject;
mod mounts;
mod places;
mod rlimits;

use std::borrow::Cow;

pub use entries::{Device, Mount};
pub use error::Error;
pub use inject::{Injection, Node, ProcessEdits};
pub use mounts::{mount_over, rest_behind};
pub(crate) use places::{Doubt, Process};

use crate::{
    gids::UserNamespace,
    json::{Container, Misread, Scanner},
    splice::{Brackets, Place},
};
use places::{Key, Linux};

/// A bundle's `config.json`, of which only the places of what matters are known.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    text: &'a str,
    doubt: Doubt,
    root: Container,
    process_place: Place,
    process: Process<'a>,
    linux_place: Place,
    linux: Linux,
    annotation_keys: Vec<Cow<'a, str>>,
    mounts: Place,
    hooks: Place,
}

impl<'a> Bundle<'a> {
    /// Finds what matters.
    ///
    /// # Errors
    /// The text is not one JSON object, as far as is looked at, or is nested deeper than 127.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let mut scanner = Scanner::new(text);
        let mut doubt = Doubt::default();
        let (mut process_place, mut process) = (Place::Absent, Process::default());
        let (mut linux_place, mut linux) = (Place::Absent, Linux::default());
        let (mut mounts, mut hooks, mut annotations) = (Place::Absent, Place::Absent, Place::Absent);
        let mut annotation_keys = Vec::new();
        if scanner.peek()? != b'{' {
            return Err(Error::Syntax { offset: scanner.offset(), expected: "an object" });
        }
        let root = scanner.object(|scanner, key| {
            if key.names("process") {
                let read = |scanner: &mut _, doubt: &mut _| process.read(scanner, doubt, "process.");
                doubt.member(scanner, Key("", "process"), Brackets::Object, &mut process_place, read)
            } else if key.names("linux") {
                let read = |scanner: &mut _, doubt: &mut _| linux.read(scanner, doubt);
                doubt.member(scanner, Key("", "linux"), Brackets::Object, &mut linux_place, read)
            } else if key.names("mounts") {
                doubt.whole(scanner, Key("", "mounts"), Brackets::Array, &mut mounts)
            } else if key.names("hooks") {
                doubt.whole(scanner, Key("", "hooks"), Brackets::Object, &mut hooks)
            } else if key.names("annotations") {
                let key = Key("", "annotations");
                doubt.member(scanner, key, Brackets::Object, &mut annotations, |scanner, _| {
                    scanner.object(|scanner, key| {
                        annotation_keys.push(key.decode());
                        scanner.pass().map(drop)
                    })
                })
            } else {
                scanner.pass().map(drop)
            }
        })?;
        scanner.finish()?;
        Ok(Self {
            text,
            doubt,
            root,
            process_place,
            process,
            linux_place,
            linux,
            annotation_keys,
            mounts,
            hooks,
        })
    }

    /// Why this bundle cannot be edited, if it cannot: the first key in doubt.
    #[must_use]
    pub fn doubt(&self) -> Option<&Error> {
        self.doubt.0.as_ref()
    }

    /// `process.env`, entry by entry. Where the key stands twice, the entries of both.
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
    /// The bundle is in doubt, or one of these keys cannot be read.
    pub fn user_namespace(&self) -> Result<UserNamespace, Error> {
        self.certain()?;
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
    /// The bundle is in doubt, or an entry is not a device.
    pub fn devices(&self) -> Result<Vec<Device<'a>>, Error> {
        self.certain()?;
        entries::read(self.text, self.linux.devices, "linux.devices")
    }

    /// `mounts`.
    ///
    /// # Errors
    /// The bundle is in doubt, or an entry is not a mount.
    pub fn mounts(&self) -> Result<Vec<Mount<'a>>, Error> {
        self.certain()?;
        entries::read(self.text, self.mounts, "mounts")
    }

    /// `linux.cgroupsPath`; the last one where it stands twice, as Go's decoder has it.
    ///
    /// # Errors
    /// The bundle is in doubt, or it is no string.
    pub fn cgroups_path(&self) -> Result<Option<String>, Error> {
        self.certain()?;
        let Some(span) = self.linux.cgroups_path else { return Ok(None) };
        let path = Scanner::at(self.text, span.start).optional(Scanner::text);
        path.map(|path| path.map(Cow::into_owned)).map_err(|fault| Error::Unreadable {
            key: "linux.cgroupsPath".to_owned(),
            reason: Misread::of(self.text, fault).to_string(),
        })
    }

    /// `root.path`; None where it is not plain to see. Looked for only where it is wanted.
    #[must_use]
    pub fn rootfs(&self) -> Option<Cow<'a, str>> {
        let mut path = None;
        let root = Scanner::at(self.text, self.root.span.start).object(|scanner, key| {
            if !key.names("root") {
                return scanner.pass().map(drop);
            }
            let root = scanner.object_of(|scanner, key| {
                if !key.names("path") {
                    return scanner.pass().map(drop);
                }
                path = Some(scanner.text()?);
                Ok(())
            });
            root.map(drop)
        });
        path.filter(|_| root.is_ok())
    }

    fn certain(&self) -> Result<(), Error> {
        match &self.doubt.0 {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
