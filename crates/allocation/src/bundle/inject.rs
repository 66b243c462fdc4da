//! The edit of a bundle.

use std::borrow::Cow;

use super::{
    Bundle, Device, Error, Process,
    entries::{self, Rule},
    hooks, mounts,
    places::Entry,
    rlimits,
};
use crate::{
    by_path::ByPath,
    cdi::{Hook, Mount},
    each_once::EachOnce,
    folder::Folder,
    json::{Container, is_plain, write_number, write_string},
    splice::{Brackets, Edited, Members, Place, Splices},
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
        Ok(self.edit(injection, &mut |_| {})?.map(|edited| edited.to_string()))
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
    ) -> Result<Option<Edited<'_>>, Error> {
        self.certain()?;
        // What is seldom asked for (limits, mounts, hooks) is never inlined: it stands apart from what each create goes
        // through, and so does its memory on the stack.
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
            let mut missing = String::new();
            for gid in gids {
                if !present.contains(gid) {
                    present.push(*gid);
                    comma(&mut missing);
                    write_number(&mut missing, (*gid).into());
                }
            }
            user.add("additionalGids", splices.extend(self.gids, Brackets::Array, missing));
        }
        let mut missing = String::new();
        for (at, entry) in env.iter().enumerate() {
            let overridden = env.iter().skip(at + 1).any(|later| key_of(later) == key_of(entry));
            if overridden {
                continue;
            }
            let mut found = false;
            for present in self.entries.iter().filter(|present| key_of(present.text()) == key_of(entry)) {
                found = true;
                if present.text() != *entry {
                    splices.replace(present.span(text), string(entry));
                }
            }
            if !found {
                push(&mut missing, &string(entry));
            }
        }
        if let Some(entry) = env_unless_set {
            let mut all = self.entries.iter().map(Entry::text).chain(env.iter().copied());
            if !all.any(|other| key_of(other) == key_of(entry)) {
                push(&mut missing, &string(entry));
            }
        }
        let mut members = Members::default();
        if let Some(bytes) = memlock_bytes {
            members.add("rlimits", rlimits::extend(text, place, *bytes, splices, prefix)?);
        }
        members.add("user", splices.extend(self.user, Brackets::Object, user.0));
        members.add("env", splices.extend(self.env, Brackets::Array, missing));
        Ok(members)
    }
}

/// The nodes in their order, each path at which runc makes one once.
fn distinct<'n, 'i>(nodes: &'n [Node<'i>]) -> Result<Vec<&'n Node<'i>>, Error> {
    // Nearly all are written as runc joins them to the root folder.
    let cleaned: Vec<Cow<'i, str>> = match nodes.iter().all(|node| is_clean(node.path)) {
        true => Vec::new(),
        false => nodes.iter().map(|node| clean(node.path)).collect(),
    };
    let mut paths = EachOnce::with_capacity(nodes.len());
    let mut distinct: Vec<&Node<'i>> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        match paths.add(cleaned.get(at).map_or(node.path, |path| path)) {
            Ok(()) => distinct.push(node),
            Err(place) => {
                let first = distinct.get(place).copied().unwrap_or(node);
                if (first.major, first.minor) != (node.major, node.minor) {
                    let name = |node: &Node<'_>| format!("c {}:{}", node.major, node.minor);
                    return Err(Error::TwoNodes {
                        path: node.path.to_owned(),
                        first: name(first),
                        second: name(node),
                    });
                }
            }
        }
    }
    Ok(distinct)
}

fn missing_devices(present: &[Device<'_>], nodes: &[&Node<'_>]) -> Result<String, Error> {
    let mut at_path: ByPath<Cow<'_, str>, Vec<&Device<'_>>> = ByPath::default();
    for device in present {
        at_path.entry(clean(&device.path)).or_default().push(device);
    }
    let mut out = String::with_capacity(nodes.len() * 92 + 64);
    let mut number = Repeated::default();
    let mut rest = Repeated::default();
    for node in nodes {
        // Most bundles have none.
        let there = if present.is_empty() { None } else { at_path.get(&clean(node.path)) };
        let there = there.map(Vec::as_slice).unwrap_or_default();
        if let Some(other) = there.iter().find(|device| !is_node(device, node)) {
            let number = |number: Option<i64>| number.map_or("?".to_owned(), |number| number.to_string());
            return Err(Error::OtherDevice {
                path: node.path.to_owned(),
                theirs: format!("{} {}:{}", other.kind, number(other.major), number(other.minor)),
                ours: format!("c {}:{}", node.major, node.minor),
            });
        }
        if !there.is_empty() {
            continue;
        }
        if is_plain(node.path) {
            out.push_str(if out.is_empty() { "{\"path\":\"" } else { ",{\"path\":\"" });
            out.push_str(node.path);
        } else {
            out.push_str(if out.is_empty() { "{\"path\":" } else { ",{\"path\":" });
            write_string(&mut out, node.path);
            out.pop();
        }
        out.push_str(number.of(node.major, |text, major| {
            text.push_str("\",\"type\":\"c\",\"major\":");
            write_number(text, major.into());
            text.push_str(",\"minor\":");
        }));
        write_number(&mut out, node.minor.into());
        out.push_str(rest.of((node.file_mode & 0o7777, node.uid, node.gid), |text, (mode, uid, gid)| {
            for (key, number) in [(",\"fileMode\":", Some(mode)), (",\"uid\":", uid), (",\"gid\":", gid)] {
                if let Some(number) = number {
                    text.push_str(key);
                    write_number(text, number.into());
                }
            }
            text.push('}');
        }));
    }
    Ok(out)
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
    let mut out = String::with_capacity(nodes.len() * 66);
    let mut kinds = Kinds(Vec::with_capacity(8));
    let (mut number, mut rest) = (Repeated::default(), Repeated::default());
    for (at, node) in nodes.iter().enumerate() {
        let Node { major, minor, access, .. } = **node;
        let has = |rule: &Rule<'_>| rule.allows(major, minor, access);
        let is_same = |other: &&Node<'_>| (other.major, other.minor, other.access) == (major, minor, access);
        let is_repeated = |_| nodes.iter().take(at).any(is_same);
        if access.is_empty()
            || effective.iter().any(has)
            || kinds.may_have(major, minor).is_some_and(is_repeated)
        {
            continue;
        }
        comma(&mut out);
        out.push_str(number.of(major, |text, major| {
            text.push_str("{\"allow\":true,\"type\":\"c\",\"major\":");
            write_number(text, major.into());
            text.push_str(",\"minor\":");
        }));
        write_number(&mut out, minor.into());
        out.push_str(rest.of(access, |text, access| {
            text.push_str(",\"access\":");
            write_string(text, access);
            text.push('}');
        }));
    }
    out
}

/// Of each kind of nodes the greatest minor so far: major, part of the range, minor. They mostly come in order, card nodes
/// and render nodes by turns, which have their minors in different parts of one range (drm_drv.c).
struct Kinds(Vec<(u32, u32, u32)>);

impl Kinds {
    /// Notes a node's number. None: it is greater than those of its kind before, so that it is none of them.
    fn may_have(&mut self, major: u32, minor: u32) -> Option<()> {
        const PART: u32 = 64;
        let of_kind =
            |(its_major, part, _): &&mut (u32, u32, u32)| (*its_major, *part) == (major, minor / PART);
        match self.0.iter_mut().find(of_kind) {
            None => self.0.push((major, minor / PART, minor)),
            Some((_, _, greatest)) if *greatest < minor => *greatest = minor,
            Some(_) => return Some(()),
        }
        None
    }
}

/// A text that is mostly the same as one of the last two times: nodes of two kinds come by turns.
struct Repeated<K> {
    made: [(Option<K>, String); 2],
}

impl<K> Default for Repeated<K> {
    fn default() -> Self {
        Self { made: [(None, String::new()), (None, String::new())] }
    }
}

impl<K: Copy + PartialEq> Repeated<K> {
    fn of(&mut self, key: K, write: impl FnOnce(&mut String, K)) -> &str {
        let [last, other] = &mut self.made;
        if last.0 == Some(key) {
            return &self.made[0].1;
        }
        if other.0 != Some(key) {
            other.0 = Some(key);
            other.1.clear();
            write(&mut other.1, key);
        }
        self.made.swap(0, 1);
        &self.made[0].1
    }
}

/// Whether a path is absolute, without `.`, `..` and doubled slashes.
fn is_clean(path: &str) -> bool {
    let bytes = path.as_bytes();
    let behind = bytes.get(1..).unwrap_or_default();
    // Of each two bytes, without a branch, so that many are looked at at once.
    let begins_a_part_to_drop =
        |(one, next): (&u8, &u8)| (*one == b'/') & ((*next == b'/') | (*next == b'.'));
    let drops = bytes.iter().zip(behind).fold(false, |any, pair| any | begins_a_part_to_drop(pair));
    bytes.first() == Some(&b'/') && bytes.last() != Some(&b'/') && !drops
}

/// The path as runc joins it to the root folder: absolute, without `.`, `..` and doubled slashes.
pub(super) fn clean(path: &str) -> Cow<'_, str> {
    if is_clean(path) {
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

pub(super) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_string(&mut out, text);
    out
}

/// A list of strings; None if it is empty, since the key can then be left out.
pub(super) fn strings(texts: &mut dyn Iterator<Item = &str>) -> Option<String> {
    let mut out = String::new();
    for text in texts {
        push(&mut out, &string(text));
    }
    (!out.is_empty()).then(|| format!("[{out}]"))
}

pub(super) fn push(out: &mut String, member: &str) {
    comma(out);
    out.push_str(member);
}

fn comma(out: &mut String) {
    if !out.is_empty() {
        out.push(',');
    }
}
