//! The edit of a bundle.

use super::{Bundle, Node, Process, entries, hooks, rlimits};
use crate::{
    Error,
    cdi::{Hook, Mount},
    folder::Folder,
    json::{Container, Scanner},
    splice::{ARRAY, Members, OBJECT, Place, Splices, elements, json},
};

/// What a container is given.
#[derive(Clone, Debug, Default)]
pub struct Injection<'i> {
    pub nodes: Vec<Node<'i>>,
    pub process: ProcessEdits<'i>,
    /// The size of /dev/shm, in bytes, unless that is mounted from elsewhere.
    pub shm_bytes: Option<u64>,
    /// Mounted where nothing is mounted.
    pub folders: &'i [Folder],
    pub mounts: Vec<&'i Mount<'i>>,
    pub hooks: Vec<&'i Hook<'i>>,
}

/// What the container's process is given, and each that is started in it later.
#[derive(Clone, Debug, Default)]
pub struct ProcessEdits<'i> {
    /// Additional gids, as they are called inside the container.
    pub gids: Vec<u32>,
    /// `KEY=VALUE`; an entry of the same key is replaced.
    pub env: Vec<&'i str>,
    /// `KEY=VALUE`; an entry of the same key is left.
    pub env_unless_set: Option<&'i str>,
    /// The least that it may lock in memory, in bytes; [`crate::policy::UNLIMITED`] is no limit.
    pub memlock_bytes: Option<u64>,
}

impl ProcessEdits<'_> {
    /// Whether a process stays as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { gids, env, env_unless_set, memlock_bytes } = self;
        gids.is_empty() && env.is_empty() && env_unless_set.is_none() && memlock_bytes.is_none()
    }
}

impl Bundle<'_> {
    /// The text with the injection in it, or None when it has all of it already. See [`Bundle::edit`].
    ///
    /// # Errors
    /// As [`Bundle::edit`].
    pub fn inject(&self, injection: &Injection<'_>) -> Result<Option<String>, Error> {
        self.edit(injection, &mut |_| {})
    }

    /// The text with the injection in it, or None when it has all of it already.
    ///
    /// A device at the path of a node is kept if it is that node. Its rule is added all the same if it
    /// is not there. Rules go to the end of the list: one before the deny-all is lost on runc. A bundle
    /// without a process gets nothing that is a process's.
    ///
    /// Calls `warn` with a sentence for what it leaves out without an error.
    ///
    /// # Errors
    /// A list that must be looked into cannot be read, or the bundle has another
    /// device at the path of a node.
    pub fn edit(
        &self,
        injection: &Injection<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Option<String>, Error> {
        let mut splices = Splices::default();
        let mut root = Members::default();
        if let Place::Here(process) = self.process_place {
            let members =
                self.process.extend(self.text, process, &injection.process, &mut splices, "process.")?;
            splices.extend(self.process_place, OBJECT, members.0);
        }
        root.add("linux", self.extend_linux(&injection.nodes, &mut splices)?);
        let Injection { mounts, shm_bytes, folders, .. } = injection;
        if !mounts.is_empty() || shm_bytes.is_some() || !folders.is_empty() {
            root.add("mounts", super::mounts::extend(self.text, self.mounts, injection, &mut splices, warn)?);
        }
        if !injection.hooks.is_empty() {
            root.add("hooks", hooks::extend(self.text, self.hooks, &injection.hooks, &mut splices)?);
        }
        splices.extend(Place::Here(self.root), OBJECT, root.0);
        Ok(splices.edited(self.text))
    }
}

impl Process<'_> {
    /// The members that a process object lacks; what it has already is edited in place.
    pub(crate) fn extend(
        &self,
        text: &str,
        place: Container,
        edits: &ProcessEdits<'_>,
        splices: &mut Splices,
        prefix: &'static str,
    ) -> Result<Members, Error> {
        let ProcessEdits { gids, env, env_unless_set, memlock_bytes } = edits;
        let mut user = Members::default();
        if !gids.is_empty() {
            let key = [prefix, "user.additionalGids"].concat();
            let mut present: Vec<u32> = entries::read_each(text, self.gids, &key, Scanner::integer)?;
            let there = present.len();
            for gid in gids {
                if !present.contains(gid) {
                    present.push(*gid);
                }
            }
            let missing = elements(present.get(there..).unwrap_or_default());
            user.add("additionalGids", splices.extend(self.gids, ARRAY, missing));
        }
        let mut missing: Vec<&str> = Vec::new();
        for (at, entry) in env.iter().enumerate() {
            let overridden = env.iter().skip(at + 1).any(|later| key_of(later) == key_of(entry));
            if overridden {
                continue;
            }
            let mut found = false;
            for present in self.entries.iter().filter(|present| key_of(&present.text) == key_of(entry)) {
                found = true;
                if present.text != *entry {
                    splices.replace(present.span, json(entry));
                }
            }
            if !found {
                missing.push(entry);
            }
        }
        if let Some(entry) = env_unless_set {
            let mut all = self.entries.iter().map(|entry| &*entry.text).chain(env.iter().copied());
            if !all.any(|other| key_of(other) == key_of(entry)) {
                missing.push(entry);
            }
        }
        let mut members = Members::default();
        if let Some(bytes) = memlock_bytes {
            members.add("rlimits", rlimits::extend(text, place, *bytes, splices, prefix)?);
        }
        members.add("user", splices.extend(self.user, OBJECT, user.0));
        members.add("env", splices.extend(self.env, ARRAY, elements(&missing)));
        Ok(members)
    }
}

fn key_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(key, _)| key)
}
