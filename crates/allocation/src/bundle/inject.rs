//! The edit of a bundle.

use super::{Bundle, Node, Process, entries, rlimits};
use crate::{
    Error,
    folder::Folder,
    object::{ARRAY, OBJECT, list, number},
    splice::{Members, Splices, joined},
};

/// Everything that the wrapper adds to a bundle.
#[derive(Clone, Debug, Default)]
pub struct Injection<'i> {
    pub nodes: Vec<Node<'i>>,
    pub process: ProcessEdits<'i>,
    /// The size of /dev/shm, in bytes, unless that is mounted from elsewhere.
    pub shm_bytes: Option<u64>,
    /// Folders of the machine, each mounted where nothing is mounted.
    pub folders: &'i [Folder],
}

/// Edits of the container's first process, and of each that `exec` starts in it later.
#[derive(Clone, Debug, Default)]
pub struct ProcessEdits<'i> {
    /// Additional gids, in the container's numbering.
    pub gids: Vec<u32>,
    /// `KEY=VALUE`, each for a process that does not set the variable itself.
    pub env: Vec<&'i str>,
    /// The least limit of locked memory, in bytes; [`crate::policy::UNLIMITED`] is no limit.
    pub memlock_bytes: Option<u64>,
}

impl ProcessEdits<'_> {
    /// Whether the process needs no edit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { gids, env, memlock_bytes } = self;
        gids.is_empty() && env.is_empty() && memlock_bytes.is_none()
    }
}

impl Bundle<'_> {
    /// The text with the injection in it, or None when it has all of it already. See [`Bundle::edit`].
    ///
    /// # Errors
    /// Fails where [`Bundle::edit`] fails.
    pub fn inject(&self, injection: &Injection<'_>) -> Result<Option<String>, Error> {
        self.edit(injection, &mut |_| {})
    }

    /// The text with the injection in it, or None when it already has all of it.
    ///
    /// A device at the path of a node is kept if it is that node; its rule is still added where it is
    /// missing. Rules go to the end of the list: on runc, one before the deny-all has no effect. A bundle
    /// without a process gets no edits of a process.
    ///
    /// Calls `warn` with a sentence for each part that it leaves out without an error.
    ///
    /// # Errors
    /// A list that must be looked into cannot be read, or the bundle has another
    /// device at the path of a node.
    pub fn edit(
        &self,
        injection: &Injection<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Option<String>, Error> {
        let text = self.text();
        let mut splices = Splices::of(text);
        let mut root = Members::default();
        if let Some(process) = &self.process {
            let members = process.extend(text, &injection.process, &mut splices, "process.")?;
            splices.extend(Some(process.object.value), OBJECT, members.0);
        }
        root.add("linux", self.extend_linux(&injection.nodes, &mut splices)?);
        root.add(
            "mounts",
            super::mounts::extend(
                text,
                self.mounts,
                (injection.shm_bytes, injection.folders),
                &mut splices,
                warn,
            )?,
        );
        splices.extend(Some(self.root.value), OBJECT, root.0);
        Ok(splices.edited())
    }
}

impl Process<'_> {
    /// The members that a process object lacks; what it has already is edited in place.
    pub(crate) fn extend(
        &self,
        text: &str,
        edits: &ProcessEdits<'_>,
        splices: &mut Splices<'_>,
        prefix: &str,
    ) -> Result<Members, Error> {
        let ProcessEdits { gids, env, memlock_bytes } = edits;
        let mut user = Members::default();
        if !gids.is_empty() {
            let present =
                list(self.gids).into_iter().map(|gid| number(text, gid)).collect::<Result<Vec<u32>, _>>();
            let mut present = present
                .map_err(|error| entries::unreadable(&[prefix, "user.additionalGids"].concat(), &error))?;
            let there = present.len();
            for gid in gids {
                if !present.contains(gid) {
                    present.push(*gid);
                }
            }
            let missing = joined(present.get(there..).unwrap_or_default());
            user.add("additionalGids", splices.extend(self.gids, ARRAY, missing));
        }
        let mut missing: Vec<&str> = Vec::new();
        for entry in env {
            let mut all = self.entries.iter().map(|entry| &**entry).chain(missing.iter().copied());
            if !all.any(|other| key_of(other) == key_of(entry)) {
                missing.push(entry);
            }
        }
        let mut members = Members::default();
        if let Some(bytes) = memlock_bytes {
            members.add("rlimits", rlimits::extend(text, &self.object, *bytes, splices, prefix)?);
        }
        members.add("user", splices.extend(self.user, OBJECT, user.0));
        members.add("env", splices.extend(self.env, ARRAY, joined(&missing)));
        Ok(members)
    }
}

fn key_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(key, _)| key)
}
