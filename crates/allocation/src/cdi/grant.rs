//! The edits of the devices that a container gets.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{DeviceNode, Edits, Hook, Mount, Spec};
use crate::{Error, Quoted, error::refuse};

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

impl<'a> Spec<'a> {
    /// The edits of these devices (places in [`Spec::devices`]), after the global ones. No devices: no edits.
    ///
    /// # Errors
    /// An edit is of a kind that is not read here, or two nodes contradict each other.
    pub fn grant<'s>(&'s self, devices: impl IntoIterator<Item = usize>) -> Result<Grant<'s>, Error>
    where
        'a: 's,
    {
        let devices = devices.into_iter();
        let mut given: Vec<(Option<&str>, &Edits<'_>)> = Vec::with_capacity(1 + devices.size_hint().0);
        given.push((None, &self.edits));
        for place in devices {
            let device = self.devices.get(place);
            let device = device.ok_or_else(|| Error::new(format!("the spec has no devices[{place}]")))?;
            given.push((Some(&device.name), &device.edits));
        }
        if given.len() == 1 {
            return Ok(Grant::default());
        }
        let mut grant = Grant::default();
        // By their paths in the container. A card node and a render node each, and /dev/kfd.
        let mut nodes: FxHashMap<&str, &DeviceNode<'_>> =
            FxHashMap::with_capacity_and_hasher(2 * given.len(), FxBuildHasher);
        for (device, edits) in given {
            if let Some(edit) = edits.others.first() {
                let who =
                    device.map_or("containerEdits".to_owned(), |name| format!("the device {}", Quoted(name)));
                return refuse(format!(
                    "{who} wants the edit {}, which this version cannot make",
                    Quoted(edit)
                ));
            }
            for node in &edits.device_nodes {
                match nodes.insert(&node.path, node) {
                    None => grant.nodes.push(node),
                    Some(earlier) if earlier != node => {
                        return refuse(format!(
                            "two devices have different nodes for {}",
                            Quoted(&node.path)
                        ));
                    }
                    Some(_) => {}
                }
            }
            add_missing(&mut grant.env, edits.env.iter().map(|entry| &**entry));
            add_missing(&mut grant.mounts, &edits.mounts);
            add_missing(&mut grant.hooks, &edits.hooks);
            add_missing(&mut grant.additional_gids, edits.additional_gids.iter().copied());
        }
        Ok(grant)
    }
}

fn add_missing<T: PartialEq>(to: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for item in more {
        if !to.contains(&item) {
            to.push(item);
        }
    }
}
