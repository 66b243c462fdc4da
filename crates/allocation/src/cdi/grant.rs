//! The edits of the devices that a container gets.

use std::collections::HashMap;
use std::fmt;

use super::{DeviceNode, Edits, Hook, Mount, Spec};
use crate::Quoted;

/// The edits of some devices of a spec and its global ones, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant<'s> {
    /// One for each path in the container.
    pub nodes: Vec<&'s DeviceNode<'s>>,
    pub env: Vec<&'s str>,
    pub mounts: Vec<&'s Mount<'s>>,
    pub hooks: Vec<&'s Hook<'s>>,
    /// Host gids.
    pub additional_gids: Vec<u32>,
}

/// Why devices cannot be given together, or at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantError {
    /// There is no device at this place.
    NoSuchDevice { place: usize },
    /// An edit that cannot be made here, by name; without a device it is one of the global ones.
    Unsupported { device: Option<String>, edit: String },
    /// Two different nodes for one path in the container.
    Conflict { path: String },
}

impl fmt::Display for GrantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchDevice { place } => write!(f, "the spec has no devices[{place}]"),
            Self::Unsupported { device: Some(device), edit } => write!(
                f,
                "the device {} wants the edit {}, which this version cannot make",
                Quoted(device),
                Quoted(edit)
            ),
            Self::Unsupported { device: None, edit } => {
                write!(f, "containerEdits wants the edit {}, which this version cannot make", Quoted(edit))
            }
            Self::Conflict { path } => write!(f, "two devices have different nodes for {}", Quoted(path)),
        }
    }
}

impl std::error::Error for GrantError {}

impl<'a> Spec<'a> {
    /// The edits of these devices (places in [`Spec::devices`]), after the global ones. No devices: no edits.
    ///
    /// # Errors
    /// An edit is of a kind that is not read here, or two nodes contradict each other.
    pub fn grant<'s>(&'s self, devices: impl IntoIterator<Item = usize>) -> Result<Grant<'s>, GrantError>
    where
        'a: 's,
    {
        let mut devices = devices.into_iter().peekable();
        // A card node and a render node each, and /dev/kfd.
        let nodes = HashMap::with_capacity(2 * devices.size_hint().0 + 1);
        let mut collected = Collected { nodes, grant: Grant::default() };
        if devices.peek().is_some() {
            collected.add(None, &self.edits)?;
        }
        for place in devices {
            let device = self.devices.get(place).ok_or(GrantError::NoSuchDevice { place })?;
            collected.add(Some(&device.name), &device.edits)?;
        }
        Ok(collected.grant)
    }
}

struct Collected<'s> {
    grant: Grant<'s>,
    /// Its nodes by their paths in the container.
    nodes: HashMap<&'s str, &'s DeviceNode<'s>>,
}

impl<'s> Collected<'s> {
    fn add(&mut self, device: Option<&str>, edits: &'s Edits<'s>) -> Result<(), GrantError> {
        if let Some(edit) = edits.others.first() {
            return Err(GrantError::Unsupported { device: device.map(str::to_owned), edit: edit.clone() });
        }
        for node in &edits.device_nodes {
            match self.nodes.insert(&node.path, node) {
                None => self.grant.nodes.push(node),
                Some(earlier) if earlier != node => {
                    return Err(GrantError::Conflict { path: node.path.to_string() });
                }
                Some(_) => {}
            }
        }
        add_missing(&mut self.grant.env, edits.env.iter().map(|entry| &**entry));
        add_missing(&mut self.grant.mounts, &edits.mounts);
        add_missing(&mut self.grant.hooks, &edits.hooks);
        add_missing(&mut self.grant.additional_gids, edits.additional_gids.iter().copied());
        Ok(())
    }
}

fn add_missing<T: PartialEq>(to: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for item in more {
        if !to.contains(&item) {
            to.push(item);
        }
    }
}
