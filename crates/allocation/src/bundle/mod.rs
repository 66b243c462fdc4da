//! A container's `config.json` (OCI runtime-spec), read for what matters and edited in place.
//!
//! The objects on the way to an edit are read as members in order; everything else stays bytes. An edit splices text in:
//! every other byte stays as it was, unknown fields, order, number spelling and whitespace included.
//!
//! What matters is read as runc reads it (crate::object). Where [`Bundle::parse`] refuses a bundle, the caller looks
//! through its strings for a request, since a container that asks for nothing is not hindered by it.

mod devices;
mod entries;
mod inject;
mod mounts;
mod places;
mod rlimits;

pub use devices::{Device, Node};
pub use entries::Mount;
pub use inject::{Injection, ProcessEdits};
pub use mounts::{mount_over, rest_behind};
pub(crate) use places::Process;
use raw_json::Text;

use crate::{
    Error,
    gids::UserNamespace,
    object::{ARRAY, OBJECT, Object, unwanted},
};
use entries::Namespace;
use places::Linux;

/// A bundle's `config.json`, of which only the places of what matters are known.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    root: Object<'a>,
    /// `None` also where it is `null`: there is nothing that could use an edit.
    process: Option<Process<'a>>,
    linux_place: Option<&'a str>,
    linux: Linux<'a>,
    annotation_keys: Vec<Text<'a>>,
    mounts: Option<&'a str>,
}

impl<'a> Bundle<'a> {
    /// Finds the parts of a bundle's text that the wrapper reads or edits.
    ///
    /// # Errors
    /// The text is not one JSON object. Or it has a key that matters twice, or with a value of another type.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let root = Object::whole(text)?;
        let process = root.within(root.container("process", OBJECT)?)?.map(Process::read).transpose()?;
        let linux_place = root.container("linux", OBJECT)?;
        let linux = root.within(linux_place)?.map_or(Ok(Linux::default()), |linux| Linux::read(&linux))?;
        let annotations = root.within(root.container("annotations", OBJECT)?)?;
        let annotation_keys = annotations.map(|annotations| annotations.keys()).unwrap_or_default();
        Ok(Self {
            process,
            linux_place,
            linux,
            annotation_keys,
            mounts: root.container("mounts", ARRAY)?,
            root,
        })
    }

    fn text(&self) -> &'a str {
        self.root.document()
    }

    /// `process.env`, entry by entry.
    pub fn env(&self) -> impl Iterator<Item = &str> {
        self.process.iter().flat_map(|process| process.entries.iter().map(|entry| &**entry))
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
        let (text, linux) = (self.text(), &self.linux);
        let namespaces = entries::read(text, linux.namespaces, "linux.namespaces", Namespace::read)?;
        let Some(user) = namespaces.into_iter().find(|namespace| &*namespace.kind == "user") else {
            return Ok(UserNamespace::Host);
        };
        let uids = entries::read(text, linux.uid_mappings, "linux.uidMappings", entries::mapping)?;
        let gids = entries::read(text, linux.gid_mappings, "linux.gidMappings", entries::mapping)?;
        match user.path {
            Some(path) if gids.is_empty() && !path.is_empty() => {
                Ok(UserNamespace::Joined { path: path.0.into_owned() })
            }
            _ => Ok(UserNamespace::Mapped { uids, gids }),
        }
    }

    /// `linux.devices`.
    ///
    /// # Errors
    /// An entry is not a device.
    pub fn devices(&self) -> Result<Vec<Device<'a>>, Error> {
        entries::read(self.text(), self.linux.devices, "linux.devices", Device::read)
    }

    /// `mounts`.
    ///
    /// # Errors
    /// An entry is not a mount.
    pub fn mounts(&self) -> Result<Vec<Mount<'a>>, Error> {
        entries::read(self.text(), self.mounts, "mounts", Mount::read)
    }

    /// `linux.cgroupsPath`; the last one where it appears twice, as Go's decoder has it.
    ///
    /// # Errors
    /// The value is no string.
    pub fn cgroups_path(&self) -> Result<Option<String>, Error> {
        let Some(path) = self.linux.cgroups_path else { return Ok(None) };
        let read = Text::of(path).ok_or_else(|| unwanted(self.text(), path, "a string"));
        read.map(|path| Some(path.0.into_owned()))
            .map_err(|error| entries::unreadable("linux.cgroupsPath", &error))
    }

    /// `root.path`; None where it is not plain to see. Of several `root` Go's decoder takes the last path.
    #[must_use]
    pub fn rootfs(&self) -> Option<Text<'a>> {
        let mut path = None;
        for root in self.root.all("root") {
            if let Some(last) = Object::of(self.text(), root).ok()?.all("path").last() {
                path = Some(Text::of(last)?);
            }
        }
        path
    }
}

#[cfg(test)]
mod tests;
