//! The entries of the short lists that an edit has to look into.
//!
//! Go's decoder takes a key in another case for the field, over the value that the field has already. An entry
//! with a key in another case, or with one twice, is refused, not guessed at.

use std::borrow::Cow;

use crate::{
    Error, cdi,
    gids::IdMapping,
    json::{Fault, Keyed, Scanner, keyed, object, spelt},
    path::clean,
    splice::Place,
};

keyed!(IdMapping, required ["containerID", "hostID", "size"], |mapping, scanner| {
    "containerID" => mapping.container_id = scanner.integer()?,
    "hostID" => mapping.host_id = scanner.integer()?,
    "size" => mapping.size = scanner.integer()?,
}, |_mapping, key| spelt::<Self>(key));

#[derive(Debug, Default)]
pub(super) struct Namespace<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) path: Option<Cow<'a, str>>,
}

keyed!(Namespace<'a>, required ["type"], |namespace, scanner| {
    "type" => namespace.kind = scanner.text()?,
    "path" => namespace.path = scanner.optional(Scanner::text)?,
}, |_namespace, key| spelt::<Self>(key));

/// A mount that the bundle has already, of `mounts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount<'a> {
    pub destination: Cow<'a, str>,
    pub kind: Option<Cow<'a, str>>,
    pub source: Option<Cow<'a, str>>,
    options: Vec<Cow<'a, str>>,
}

keyed!(Mount<'a>, required ["destination"], |mount, scanner| {
    "destination" => mount.destination = scanner.text()?,
    "type" => mount.kind = scanner.optional(Scanner::text)?,
    "source" => mount.source = scanner.optional(Scanner::text)?,
    "options" => mount.options = scanner.texts()?,
}, |_mount, key| spelt::<Self>(key));

impl Mount<'_> {
    /// Whether it is the mount of this path, which says what it means.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        clean(&self.destination) == path
    }

    /// Whether it shows a file or folder of the machine. For runc an option says so as well as the type.
    #[must_use]
    pub fn is_bind(&self) -> bool {
        let has = |name| self.options.iter().any(|option| option == name);
        self.kind.as_deref() == Some("bind") || has("bind") || has("rbind")
    }

    /// Whether it is a file system of its own in which at first there is nothing, or nothing but the kernel's own nodes.
    #[must_use]
    pub fn has_no_files(&self) -> bool {
        !self.is_bind() && matches!(self.kind.as_deref(), Some("tmpfs" | "devtmpfs"))
    }

    /// Whether it may hold so many files and no more: no count of those that runc itself puts there is known.
    #[must_use]
    pub fn counts_its_files(&self) -> bool {
        self.options.iter().any(|option| option.starts_with("nr_inodes="))
    }

    /// Of `ro` and `rw` the last one counts.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let access = self.options.iter().rfind(|option| matches!(&***option, "ro" | "rro" | "rw"));
        access.is_some_and(|access| access != "rw")
    }

    pub(super) fn is(&self, mount: &cdi::Mount<'_>) -> bool {
        self.destination == mount.container_path
            && self.source.as_deref() == Some(&*mount.host_path)
            && self.kind == mount.kind
            && self.options == mount.options
    }
}

#[derive(Debug, Default)]
pub(super) struct Hook<'a> {
    path: Cow<'a, str>,
    args: Vec<Cow<'a, str>>,
    env: Vec<Cow<'a, str>>,
    timeout: Option<i64>,
}

keyed!(Hook<'a>, required ["path"], |hook, scanner| {
    "path" => hook.path = scanner.text()?,
    "args" => hook.args = scanner.texts()?,
    "env" => hook.env = scanner.texts()?,
    "timeout" => hook.timeout = scanner.optional(Scanner::integer)?,
}, |_hook, key| spelt::<Self>(key));

impl Hook<'_> {
    pub(super) fn is(&self, hook: &cdi::Hook<'_>) -> bool {
        self.path == hook.path
            && self.args == hook.args
            && self.env == hook.env
            && self.timeout == hook.timeout
    }
}

/// Reads the entries of a list; none where there is no list.
pub(super) fn read<'a, T: Keyed<'a>>(text: &'a str, place: Place, key: &str) -> Result<Vec<T>, Error> {
    read_each(text, place, key, object)
}

/// The same with the place of each in the text.
pub(super) fn read_with_places<'a, T: Keyed<'a>>(
    text: &'a str,
    place: Place,
    key: &str,
) -> Result<Vec<(usize, T)>, Error> {
    read_each(text, place, key, |scanner| {
        scanner.peek()?;
        Ok((scanner.offset(), object(scanner)?))
    })
}

pub(super) fn read_each<'a, T>(
    text: &'a str,
    place: Place,
    key: &str,
    entry: impl FnMut(&mut Scanner<'a>) -> Result<T, Fault>,
) -> Result<Vec<T>, Error> {
    let Place::Here(container) = place else { return Ok(Vec::new()) };
    Scanner::at(text, container.span.start).list(entry).map_err(|fault| unreadable(text, key, fault))
}

/// An entry of a list cannot be read, with what is wrong about it, and where.
pub(super) fn unreadable(text: &str, key: &str, fault: Fault) -> Error {
    Error::new(format!("the key {key} cannot be read: {}", fault.of(text)))
}
