//! The entries of the short lists that an edit has to look into.

use std::borrow::Cow;

use raw_json::Text;

use crate::{
    Error,
    gids::IdMapping,
    object::{Object, list},
    path::clean,
};

/// A line of `linux.uidMappings` or `linux.gidMappings`.
pub(super) fn mapping(entry: &Object<'_>) -> Result<IdMapping, Error> {
    let number = |name| entry.needed(name, entry.number(name)?);
    Ok(IdMapping { container_id: number("containerID")?, host_id: number("hostID")?, size: number("size")? })
}

#[derive(Debug)]
pub(super) struct Namespace<'a> {
    pub(super) kind: Text<'a>,
    pub(super) path: Option<Text<'a>>,
}

impl<'a> Namespace<'a> {
    pub(super) fn read(entry: &Object<'a>) -> Result<Self, Error> {
        Ok(Self { kind: entry.needed("type", entry.text("type")?)?, path: entry.text("path")? })
    }
}

/// A mount that the bundle has already, of `mounts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    pub destination: Cow<'a, str>,
    pub kind: Option<Text<'a>>,
    pub source: Option<Text<'a>>,
    options: Vec<Text<'a>>,
    /// The value as the bundle spells it.
    pub(super) value: &'a str,
}

impl<'a> Mount<'a> {
    pub(super) fn read(entry: &Object<'a>) -> Result<Self, Error> {
        Ok(Self {
            destination: entry.needed("destination", entry.text("destination")?)?.0,
            kind: entry.text("type")?,
            source: entry.text("source")?,
            options: entry.texts("options")?,
            value: entry.value,
        })
    }
}

impl Mount<'_> {
    /// Whether the mount's destination is this cleaned path.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        clean(&self.destination) == path
    }

    /// Whether the mount shows a file or folder of the machine. For runc an option decides that as well as
    /// the type.
    #[must_use]
    pub fn is_bind(&self) -> bool {
        let has = |name| self.options.iter().any(|option| &**option == name);
        self.kind.as_deref() == Some("bind") || has("bind") || has("rbind")
    }

    /// Whether the mount is a file system of its own that begins empty, or with the kernel's own nodes only.
    #[must_use]
    pub fn has_no_files(&self) -> bool {
        !self.is_bind() && matches!(self.kind.as_deref(), Some("tmpfs" | "devtmpfs"))
    }

    /// Whether the mount limits its number of files. How many of them runc itself needs is not known.
    #[must_use]
    pub fn counts_its_files(&self) -> bool {
        self.options.iter().any(|option| option.starts_with("nr_inodes="))
    }

    /// Whether the mount is read-only: the last of `ro`, `rro` and `rw` counts.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let access = self.options.iter().rfind(|option| matches!(&***option, "ro" | "rro" | "rw"));
        access.is_some_and(|access| &**access != "rw")
    }
}

/// Reads the entries of a list; none where there is no list. `key` names it in an error.
pub(super) fn read<'a, T>(
    text: &'a str,
    place: Option<&'a str>,
    key: &str,
    entry: impl Fn(&Object<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let read = |value| Object::of(text, value).and_then(|object| entry(&object));
    list(place).into_iter().map(read).collect::<Result<_, _>>().map_err(|error| unreadable(key, &error))
}

/// An entry of a list cannot be read, with what is wrong about it, and where.
pub(super) fn unreadable(key: &str, error: &Error) -> Error {
    Error::new(format!("the key {key} cannot be read: {error}"))
}
