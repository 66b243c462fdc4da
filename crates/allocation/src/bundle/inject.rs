//! The edit of a bundle.

use super::{Bundle, Error};
use crate::cdi::{Hook, Mount};

/// What a container is given.
#[derive(Clone, Debug, Default)]
pub struct Injection<'i> {
    pub nodes: Vec<Node<'i>>,
    /// Additional gids of the process, as they are called inside the container.
    pub gids: Vec<u32>,
    /// `KEY=VALUE`; an entry of the same key is replaced.
    pub env: Vec<&'i str>,
    pub mounts: Vec<&'i Mount<'i>>,
    pub hooks: Vec<&'i Hook<'i>>,
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
    /// The text with the injection in it, or None when it has all of it already.
    ///
    /// # Errors
    /// The bundle is in doubt, or has another device at the path of a node.
    pub fn inject(&self, injection: &Injection<'_>) -> Result<Option<String>, Error> {
        let _ = injection;
        todo!()
    }
}
