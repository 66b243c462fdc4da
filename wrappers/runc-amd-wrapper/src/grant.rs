//! From chosen GPUs to what is written into a bundle: the CDI spec's edits, with the numbers and groups
//! of the nodes as they stand.

use std::collections::HashMap;
use std::path::Path;

use allocation::Render;
use allocation::bundle::{Injection, Node as InjectedNode, ProcessEdits};
use allocation::cdi::{DeviceNode, Edits, Spec};
use allocation::gids::{Supplement, UserNamespace, supplement};
use allocation::selection::Chosen;

use crate::log::Log;
use crate::nodes::{self, Devices, Node, Owner};

/// What decides about a node besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub spec: &'a Spec<'a>,
    /// Whether the policy lists its GPUs: each node must then be the listed card's.
    pub gpus_are_listed: bool,
    /// Whether a GPU may be kept from a container, because the policy does not list it or another one has it: then
    /// no GPU's device may bring the render node of another GPU.
    pub each_brings_its_own: bool,
    pub namespace: &'a UserNamespace,
    pub log: Log<'a>,
    pub devices: &'a Devices<'a>,
}

/// Nodes that were examined and found to be what they should, by their path on the host.
pub type Examined<'a> = HashMap<&'a str, ExaminedNode>;

/// A node as it will be in the container.
#[derive(Clone, Copy, Debug)]
pub struct ExaminedNode {
    node: Node,
    supplement: Supplement,
}

impl<'a> Setting<'a> {
    /// Examines the nodes of one GPU's device.
    ///
    /// # Errors
    /// The sentence that says which of its nodes cannot be given, and why.
    pub fn examine(&self, chosen: &Chosen<'_>, examined: &mut Examined<'a>) -> Result<(), String> {
        let Some(device) = self.spec.devices.get(chosen.device) else { return Ok(()) };
        self.examine_nodes(&device.edits, &[*chosen], examined)
            .map_err(|error| format!("the GPU {} cannot be given: {error}", chosen.gpu))
    }

    /// Examines the nodes that every container with a GPU gets, which must be `/dev/kfd` or one of the
    /// chosen GPUs'.
    ///
    /// # Errors
    /// The sentence that says which of them cannot be given, and why.
    pub fn examine_common(&self, chosen: &[Chosen<'_>], examined: &mut Examined<'a>) -> Result<(), String> {
        self.examine_nodes(&self.spec.edits, chosen, examined)
            .map_err(|error| format!("no GPU can be given: {error}"))
    }

    fn examine_nodes(
        &self,
        edits: &'a Edits<'a>,
        chosen: &[Chosen<'_>],
        examined: &mut Examined<'a>,
    ) -> Result<(), String> {
        for wanted in &edits.device_nodes {
            if !examined.contains_key(wanted.host()) {
                examined.insert(wanted.host(), self.node(wanted, chosen)?);
            }
        }
        Ok(())
    }

    fn node(&self, wanted: &DeviceNode<'_>, chosen: &[Chosen<'_>]) -> Result<ExaminedNode, String> {
        let path = Path::new(wanted.host());
        let mut node = Node::at(path, self.devices).map_err(|error| error.to_string())?;
        let mut checked = chosen.iter().map(|chosen| self.check(&node, path, chosen));
        match checked.next() {
            Some(Err(error)) if !checked.any(|checked| checked.is_ok()) => return Err(error),
            _ => {}
        }
        if *self.namespace == UserNamespace::Host {
            // runc makes this node anew, as the spec says; in a user namespace it can only bind the host's.
            node.mode = wanted.file_mode.unwrap_or(node.mode);
            node.uid = wanted.uid.unwrap_or(node.uid);
            node.gid = wanted.gid.unwrap_or(node.gid);
        }
        let supplement = supplement(node.mode, node.gid, self.namespace).or_else(|error| {
            let sentence = format!("the device node {}: {error}", path.display());
            if is_for_computing(wanted.host()) {
                return Err(sentence);
            }
            // A card node that nobody in the container can open takes nothing from computing.
            self.log.warn(&sentence);
            Ok(Supplement::NotNeeded)
        })?;
        Ok(ExaminedNode { node, supplement })
    }

    fn check(&self, node: &Node, path: &Path, chosen: &Chosen<'_>) -> Result<(), String> {
        let gpu = chosen.gpu;
        let checked = match gpu.card.or(gpu.pci).filter(|_| self.gpus_are_listed) {
            Some(card) => {
                let render = gpu.render.to_string();
                node.check(path, Owner::Gpu { card: &card.to_string(), render: Some(&render) }, self.devices)
            }
            None => node.check(path, Owner::AnyOfAmd, self.devices),
        };
        match checked.map_err(|error| error.to_string())? {
            Some(is) if self.each_brings_its_own && self.render_of(chosen) != Some(is) => {
                Err(nodes::Error::OfAnotherGpu { path: path.to_owned(), is }.to_string())
            }
            _ => Ok(()),
        }
    }

    /// The render node by which the spec's device is known: its first one. The policy's may be an older number.
    fn render_of(&self, chosen: &Chosen<'_>) -> Option<Render> {
        let device = self.spec.devices.get(chosen.device)?;
        device.edits.device_nodes.iter().find_map(|node| Render::parse(node.host()))
    }

    /// All edits of the chosen GPUs, whose nodes were examined.
    ///
    /// # Errors
    /// The sentence that says which edit cannot be made.
    pub fn injection(&self, chosen: &[Chosen<'_>], examined: &Examined<'_>) -> Result<Injection<'a>, String> {
        let grant =
            self.spec.grant(chosen.iter().map(|chosen| chosen.device)).map_err(|error| error.to_string())?;
        let nodes = Vec::with_capacity(grant.nodes.len());
        let mut injection = Injection {
            nodes,
            process: ProcessEdits { env: grant.env, ..ProcessEdits::default() },
            mounts: grant.mounts,
            hooks: grant.hooks,
            ..Injection::default()
        };
        for wanted in grant.nodes {
            // Every node of the chosen devices and of the common edits was examined before.
            let Some(ExaminedNode { node, supplement }) = examined.get(wanted.host()) else {
                return Err(format!("the device node {} was not examined", wanted.host()));
            };
            if let Supplement::Gid(gid) = supplement {
                add(&mut injection.process.gids, *gid);
            }
            injection.nodes.push(InjectedNode {
                path: &wanted.path,
                major: node.major,
                minor: node.minor,
                file_mode: wanted.file_mode.unwrap_or(node.mode),
                uid: self.namespace.uid(node.uid),
                gid: self.namespace.gid(node.gid),
                access: wanted.access(),
            });
        }
        for host_gid in grant.additional_gids {
            let gid = self.namespace.gid(host_gid).ok_or_else(|| {
                format!(
                    "the CDI spec's additional group {host_gid} is not in the container's gidMappings: map it"
                )
            })?;
            add(&mut injection.process.gids, gid);
        }
        Ok(injection)
    }
}

/// Computing opens /dev/kfd and the render nodes, and no other (ROCr's and HIP's open calls).
fn is_for_computing(host: &str) -> bool {
    host == "/dev/kfd" || Render::parse(host).is_some()
}

fn add(gids: &mut Vec<u32>, gid: u32) {
    if !gids.contains(&gid) {
        gids.push(gid);
    }
}
