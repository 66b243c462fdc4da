//! The devices and the device cgroup's rules that a container gets: all that is written into `linux.devices` and
//! `linux.resources.devices`.
//!
//! For each [`Node`] of an [`super::Injection`] a container gets one device, at the node's path, and one rule,
//! `{"allow":true,"type":"c","major":…,"minor":…,"access":…}`. Rules go to the end of the list: one in front of the
//! deny-all is lost on runc. What is there already is not written again.
//!
//! # Where the numbers come from
//! The wrapper takes `major` and `minor` from a stat of the host's node (`st_rdev`), and asks the kernel in
//! `/sys/dev/char/MAJOR:MINOR` whose they are: `Node::at` and `Node::check` in
//! wrappers/runc-amd-wrapper/src/nodes.rs. The policy gives only the path and the group.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use raw_json::Text;
use serde::Serialize;

use super::{Bundle, entries};
use crate::{
    Error, Quoted,
    error::refuse,
    object::{ARRAY, OBJECT, Object},
    path::clean,
    splice::{Members, Splices, joined},
};

/// A character device and its cgroup rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'i> {
    /// The path in the container.
    pub path: &'i str,
    /// The major number of the host's node (stat's `st_rdev`).
    pub major: u32,
    /// The minor number of the host's node.
    pub minor: u32,
    /// Permission bits; the type bits of a stat are cut off.
    pub file_mode: u32,
    /// The uid inside the container; None leaves the key out, and runc decides.
    pub uid: Option<u32>,
    /// The gid inside the container; None leaves the key out, and runc decides.
    pub gid: Option<u32>,
    /// What the device cgroup allows: some of `rwm`; empty adds no rule.
    pub access: &'i str,
}

/// A device that the bundle has already, of `linux.devices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    pub path: Text<'a>,
    /// `c`, `b`, `u` or `p`.
    pub kind: Text<'a>,
    pub major: Option<i64>,
    pub minor: Option<i64>,
}

impl<'a> Device<'a> {
    pub(super) fn read(entry: &Object<'a>) -> Result<Self, Error> {
        Ok(Self {
            path: entry.needed("path", entry.text("path")?)?,
            kind: entry.needed("type", entry.text("type")?)?,
            major: entry.number("major")?,
            minor: entry.number("minor")?,
        })
    }
}

/// A rule of the device cgroup, of `linux.resources.devices`.
#[derive(Debug)]
struct Rule<'a> {
    allow: bool,
    kind: Option<Text<'a>>,
    major: Option<i64>,
    minor: Option<i64>,
    access: Option<Text<'a>>,
}

impl<'a> Rule<'a> {
    fn read(entry: &Object<'a>) -> Result<Self, Error> {
        Ok(Self {
            allow: entry.flag("allow")?.unwrap_or_default(),
            kind: entry.text("type")?,
            major: entry.number("major")?,
            minor: entry.number("minor")?,
            access: entry.text("access")?,
        })
    }
}

/// A device that is added.
#[derive(Serialize)]
struct NewDevice<'n> {
    path: &'n str,
    #[serde(rename = "type")]
    kind: &'static str,
    major: u32,
    minor: u32,
    #[serde(rename = "fileMode")]
    file_mode: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
}

/// A rule that is added.
#[derive(Serialize)]
struct NewRule<'n> {
    allow: bool,
    #[serde(rename = "type")]
    kind: &'static str,
    major: u32,
    minor: u32,
    access: &'n str,
}

impl Rule<'_> {
    /// Whether this rule already allows all of `access` for the character device.
    fn allows(&self, major: u32, minor: u32, access: &str) -> bool {
        self.allow
            && self.kind.as_deref() == Some("c")
            && self.major == Some(major.into())
            && self.minor == Some(minor.into())
            && self.access.as_deref().is_some_and(|has| access.chars().all(|c| has.contains(c)))
    }
}

impl Bundle<'_> {
    /// The devices and rules that the bundle lacks. Returned is the whole of `linux` if it has none.
    pub(super) fn extend_linux(
        &self,
        nodes: &[Node<'_>],
        splices: &mut Splices<'_>,
    ) -> Result<Option<String>, Error> {
        if nodes.is_empty() {
            return Ok(None);
        }
        let nodes = distinct(nodes)?;
        let devices = missing_devices(&self.devices()?, &nodes)?;
        let rules = entries::read(self.text(), self.linux.rules, "linux.resources.devices", Rule::read)?;
        let rules = missing_rules(&rules, &nodes);
        let mut resources = Members::default();
        resources.add("devices", splices.extend(self.linux.rules, ARRAY, rules));
        let mut linux = Members::default();
        linux.add("devices", splices.extend(self.linux.devices, ARRAY, devices));
        linux.add("resources", splices.extend(self.linux.resources, OBJECT, resources.0));
        Ok(splices.extend(self.linux_place, OBJECT, linux.0))
    }
}

/// The nodes in their order, each path at which runc makes one once.
fn distinct<'n, 'i>(nodes: &'n [Node<'i>]) -> Result<Vec<&'n Node<'i>>, Error> {
    let mut at_path: BTreeMap<Cow<'_, str>, &Node<'_>> = BTreeMap::new();
    let mut distinct = Vec::new();
    for node in nodes {
        let first = *at_path.entry(clean(node.path)).or_insert(node);
        if std::ptr::eq(first, node) {
            distinct.push(node);
        } else if (first.major, first.minor) != (node.major, node.minor) {
            let name = |node: &Node<'_>| format!("c {}:{}", node.major, node.minor);
            return refuse(format!(
                "{} would be the device {} and the device {} at once",
                Quoted(node.path),
                name(first),
                name(node)
            ));
        }
    }
    Ok(distinct)
}

fn missing_devices(present: &[Device<'_>], nodes: &[&Node<'_>]) -> Result<String, Error> {
    let present: Vec<_> = present.iter().map(|device| (clean(&device.path), device)).collect();
    let mut missing = Vec::new();
    for node in nodes {
        let path = clean(node.path);
        let at_path = present.iter().filter(|(other, _)| *other == path).map(|(_, device)| *device);
        let there: Vec<&Device<'_>> = at_path.collect();
        if let Some(other) = there.iter().find(|device| !is_node(device, node)) {
            let number = |number: Option<i64>| number.map_or("?".to_owned(), |number| number.to_string());
            return refuse(format!(
                "{} is already the device {} in linux.devices, and the GPU's is c {}:{}: take it out, or do not ask \
                 for this GPU",
                Quoted(node.path),
                Quoted(&format!("{} {}:{}", &*other.kind, number(other.major), number(other.minor))),
                node.major,
                node.minor
            ));
        }
        if there.is_empty() {
            missing.push(NewDevice {
                path: node.path,
                kind: "c",
                major: node.major,
                minor: node.minor,
                file_mode: node.file_mode & 0o7777,
                uid: node.uid,
                gid: node.gid,
            });
        }
    }
    Ok(joined(&missing))
}

/// Compares with the specification's types `c` and `u`: mknod makes a character device of both.
fn is_node(device: &Device<'_>, node: &Node<'_>) -> bool {
    matches!(&*device.kind, "c" | "u")
        && device.major == Some(node.major.into())
        && device.minor == Some(node.minor.into())
}

fn missing_rules(present: &[Rule<'_>], nodes: &[&Node<'_>]) -> String {
    let behind_denials = present.iter().rposition(|rule| !rule.allow).map_or(0, |at| at + 1);
    let effective = present.get(behind_denials..).unwrap_or_default();
    let (mut added, mut missing) = (BTreeSet::new(), Vec::new());
    for Node { major, minor, access, .. } in nodes.iter().copied().copied() {
        let is_there = access.is_empty() || effective.iter().any(|rule| rule.allows(major, minor, access));
        if !is_there && added.insert((major, minor, access)) {
            missing.push(NewRule { allow: true, kind: "c", major, minor, access });
        }
    }
    joined(&missing)
}
