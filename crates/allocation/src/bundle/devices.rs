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
//! wrappers/runc-amd-wrapper/src/nodes.rs. The CDI spec gives only the path and the access: numbers in a spec count for
//! nothing.

use std::borrow::Cow;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::{Bundle, entries};
use crate::{
    Error, Quoted,
    error::refuse,
    json::{Scanner, keyed, spelt},
    path::clean,
    splice::{ARRAY, Members, OBJECT, Splices, push_json},
};

/// A character device and its cgroup rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'i> {
    /// The path in the container.
    pub path: &'i str,
    /// Of the host's node, as stat says (`st_rdev`).
    pub major: u32,
    /// As `major`.
    pub minor: u32,
    /// Permission bits; the type bits of a stat are cut off.
    pub file_mode: u32,
    /// As it is called inside the container; None leaves the key out, which is for runc to decide.
    pub uid: Option<u32>,
    /// As `uid`.
    pub gid: Option<u32>,
    /// What the device cgroup shall allow: some of `rwm`; empty adds no rule. [`crate::cdi::DeviceNode::access`].
    pub access: &'i str,
}

/// A device that the bundle has already, of `linux.devices`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device<'a> {
    pub path: Cow<'a, str>,
    /// `c`, `b`, `u` or `p`.
    pub kind: Cow<'a, str>,
    pub major: Option<i64>,
    pub minor: Option<i64>,
}

keyed!(Device<'a>, required ["path", "type"], |device, scanner| {
    "path" => device.path = scanner.text()?,
    "type" => device.kind = scanner.text()?,
    "major" => device.major = scanner.optional(Scanner::integer)?,
    "minor" => device.minor = scanner.optional(Scanner::integer)?,
}, |_device, key| spelt::<Self>(key));

/// A rule of the device cgroup, of `linux.resources.devices`.
#[derive(Debug, Default)]
struct Rule<'a> {
    allow: bool,
    kind: Option<Cow<'a, str>>,
    major: Option<i64>,
    minor: Option<i64>,
    access: Option<Cow<'a, str>>,
}

keyed!(Rule<'a>, required ["allow"], |rule, scanner| {
    "allow" => rule.allow = scanner.boolean()?,
    "type" => rule.kind = scanner.optional(Scanner::text)?,
    "major" => rule.major = scanner.optional(Scanner::integer)?,
    "minor" => rule.minor = scanner.optional(Scanner::integer)?,
    "access" => rule.access = scanner.optional(Scanner::text)?,
}, |_rule, key| spelt::<Self>(key));

impl Rule<'_> {
    /// Whether this rule already allows a character device all that `access` says.
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
        splices: &mut Splices,
    ) -> Result<Option<String>, Error> {
        if nodes.is_empty() {
            return Ok(None);
        }
        let nodes = distinct(nodes)?;
        let devices = missing_devices(&self.devices()?, &nodes)?;
        let rules = entries::read(self.text, self.linux.rules, "linux.resources.devices")?;
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
    let mut at_path: FxHashMap<Cow<'_, str>, &Node<'_>> =
        FxHashMap::with_capacity_and_hasher(nodes.len(), FxBuildHasher);
    let mut distinct = Vec::with_capacity(nodes.len());
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
    let mut out = String::with_capacity(96 * nodes.len());
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
                Quoted(&format!("{} {}:{}", other.kind, number(other.major), number(other.minor))),
                node.major,
                node.minor
            ));
        }
        if !there.is_empty() {
            continue;
        }
        out.push_str(if out.is_empty() { r#"{"path":"# } else { r#",{"path":"# });
        push_json(&mut out, node.path);
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
    let mut rules = FxHashSet::with_capacity_and_hasher(nodes.len(), FxBuildHasher);
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
        push_json(&mut out, access);
        out.push('}');
    }
    out
}
