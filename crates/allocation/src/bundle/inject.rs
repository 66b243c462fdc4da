//! The edit of a bundle.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::{
    Bundle, Device, Error, Process,
    entries::{self, Rule},
    hooks, mounts, rlimits,
};
use crate::{
    cdi::{Hook, Mount},
    folder::Folder,
    json::Container,
    splice::{Brackets, Members, Place, Splices, elements, json},
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

impl Injection<'_> {
    /// Whether there is anything that `mounts` may have to have.
    fn adds_mounts(&self) -> bool {
        !self.mounts.is_empty() || self.shm_bytes.is_some() || !self.folders.is_empty()
    }
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

/// A character device and its cgroup rule, with the numbers that a stat of the host's node gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'i> {
    /// The path in the container.
    pub path: &'i str,
    pub major: u32,
    pub minor: u32,
    /// Permission bits; the type bits of a stat are cut off.
    pub file_mode: u32,
    /// As it is called inside the container; None leaves the key out, which is for runc to decide.
    pub uid: Option<u32>,
    /// As `uid`.
    pub gid: Option<u32>,
    /// What the device cgroup shall allow: some of `rwm`; empty adds no rule.
    pub access: &'i str,
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
    /// A device at the path of a node is kept if it is that node, and its rule is added all the same if it
    /// is not there. Rules go to the end of the list: one before the deny-all is lost on runc. A bundle
    /// without a process gets nothing that is a process's.
    ///
    /// `warn` is told, in a sentence, what is left out without being an error.
    ///
    /// # Errors
    /// The bundle is in doubt, a list that must be looked into cannot be read, or the bundle has another
    /// device at the path of a node.
    pub fn edit(
        &self,
        injection: &Injection<'_>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Option<String>, Error> {
        self.certain()?;
        let mut splices = Splices::default();
        let mut root = Members::default();
        if let Place::Here(process) = self.process_place {
            let members =
                self.process.extend(self.text, process, &injection.process, &mut splices, "process.")?;
            splices.extend(self.process_place, Brackets::Object, members.0);
        }
        root.add("linux", self.extend_linux(&injection.nodes, &mut splices)?);
        if injection.adds_mounts() {
            root.add("mounts", mounts::extend(self.text, self.mounts, injection, &mut splices, warn)?);
        }
        if !injection.hooks.is_empty() {
            root.add("hooks", hooks::extend(self.text, self.hooks, &injection.hooks, &mut splices)?);
        }
        splices.extend(Place::Here(self.root), Brackets::Object, root.0);
        Ok(splices.edited(self.text))
    }

    fn extend_linux(&self, nodes: &[Node<'_>], splices: &mut Splices) -> Result<Option<String>, Error> {
        if nodes.is_empty() {
            return Ok(None);
        }
        let nodes = distinct(nodes)?;
        let devices = missing_devices(&self.devices()?, &nodes)?;
        let rules = entries::read(self.text, self.linux.rules, "linux.resources.devices")?;
        let rules = missing_rules(&rules, &nodes);
        let mut resources = Members::default();
        resources.add("devices", splices.extend(self.linux.rules, Brackets::Array, rules));
        let mut linux = Members::default();
        linux.add("devices", splices.extend(self.linux.devices, Brackets::Array, devices));
        linux.add("resources", splices.extend(self.linux.resources, Brackets::Object, resources.0));
        Ok(splices.extend(self.linux_place, Brackets::Object, linux.0))
    }
}

impl Process<'_> {
    /// The members that a process object lacks; what it has already is edited where it stands.
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
            let mut present =
                entries::read_numbers(text, self.gids, &format_args!("{prefix}user.additionalGids"))?;
            let there = present.len();
            for gid in gids {
                if !present.contains(gid) {
                    present.push(*gid);
                }
            }
            let missing = elements(present.get(there..).unwrap_or_default());
            user.add("additionalGids", splices.extend(self.gids, Brackets::Array, missing));
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
        members.add("user", splices.extend(self.user, Brackets::Object, user.0));
        members.add("env", splices.extend(self.env, Brackets::Array, elements(&missing)));
        Ok(members)
    }
}

/// The nodes in their order, each path at which runc makes one once.
fn distinct<'n, 'i>(nodes: &'n [Node<'i>]) -> Result<Vec<&'n Node<'i>>, Error> {
    let mut at_path: HashMap<Cow<'_, str>, &Node<'_>> = HashMap::with_capacity(nodes.len());
    let mut distinct = Vec::with_capacity(nodes.len());
    for node in nodes {
        let first = *at_path.entry(clean(node.path)).or_insert(node);
        if std::ptr::eq(first, node) {
            distinct.push(node);
        } else if (first.major, first.minor) != (node.major, node.minor) {
            let name = |node: &Node<'_>| format!("c {}:{}", node.major, node.minor);
            return Err(Error::TwoNodes {
                path: node.path.to_owned(),
                first: name(first),
                second: name(node),
            });
        }
    }
    Ok(distinct)
}

fn missing_devices(present: &[Device<'_>], nodes: &[&Node<'_>]) -> Result<String, Error> {
    let present: Vec<_> = present.iter().map(|device| (clean(&device.path), device)).collect();
    let mut out = String::with_capacity(96 * nodes.len());
    for node in nodes {
        let path = clean(node.path);
        let at_path = present.iter().filter(|(other, _)| *other == path).map(|(_, device)| *device);
        let there: Vec<&Device<'_>> = at_path.collect();
        if let Some(other) = there.iter().find(|device| !is_node(device, node)) {
            let number = |number: Option<i64>| number.map_or("?".to_owned(), |number| number.to_string());
            return Err(Error::OtherDevice {
                path: node.path.to_owned(),
                present: format!("{} {}:{}", other.kind, number(other.major), number(other.minor)),
                wanted: format!("c {}:{}", node.major, node.minor),
            });
        }
        if !there.is_empty() {
            continue;
        }
        out.push_str(if out.is_empty() { r#"{"path":"# } else { r#",{"path":"# });
        out += &json(node.path);
        out.push_str(r#","type":"c","major":"#);
        push_number(&mut out, node.major);
        out.push_str(r#","minor":"#);
        push_number(&mut out, node.minor);
        out.push_str(r#","fileMode":"#);
        push_number(&mut out, node.file_mode & 0o7777);
        for (key, id) in [(r#","uid":"#, node.uid), (r#","gid":"#, node.gid)] {
            if let Some(id) = id {
                out.push_str(key);
                push_number(&mut out, id);
            }
        }
        out.push('}');
    }
    Ok(out)
}

/// Puts a number behind a text. Of hundreds each would go through core::fmt, which takes ten times as long.
fn push_number(out: &mut String, number: u32) {
    if number >= 10 {
        push_number(out, number / 10);
    }
    out.push(char::from(b'0' + u8::try_from(number % 10).unwrap_or_default()));
}

/// `u` is what the specification calls an unbuffered character device; mknod makes the same of both.
fn is_node(device: &Device<'_>, node: &Node<'_>) -> bool {
    matches!(&*device.kind, "c" | "u")
        && device.major == Some(node.major.into())
        && device.minor == Some(node.minor.into())
}

fn missing_rules(present: &[Rule<'_>], nodes: &[&Node<'_>]) -> String {
    let behind_denials = present.iter().rposition(|rule| !rule.allow).map_or(0, |at| at + 1);
    let effective = present.get(behind_denials..).unwrap_or_default();
    let mut rules = HashSet::with_capacity(nodes.len());
    let mut out = String::with_capacity(64 * nodes.len());
    for Node { major, minor, access, .. } in nodes.iter().copied().copied() {
        let is_there = effective.iter().any(|rule| rule.allows(major, minor, access));
        if access.is_empty() || is_there || !rules.insert((major, minor, access)) {
            continue;
        }
        out.push_str(if out.is_empty() { "{" } else { ",{" });
        out.push_str(r#""allow":true,"type":"c","major":"#);
        push_number(&mut out, major);
        out.push_str(r#","minor":"#);
        push_number(&mut out, minor);
        out.push_str(r#","access":"#);
        out += &json(access);
        out.push('}');
    }
    out
}

/// The path as runc joins it to the root folder: absolute, without `.`, `..` and doubled slashes.
pub(super) fn clean(path: &str) -> Cow<'_, str> {
    // Nearly all are.
    let mut pairs = path.as_bytes().windows(2);
    if path.starts_with('/') && !path.ends_with('/') && !pairs.any(|pair| matches!(pair, b"//" | b"/.")) {
        return Cow::Borrowed(path);
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Cow::Owned(format!("/{}", parts.join("/")))
}

fn key_of(entry: &str) -> &str {
    entry.split_once('=').map_or(entry, |(key, _)| key)
}
