//! Device nodes: what they are, whether they are a GPU's, and what of them goes into a bundle: the injection of the
//! chosen GPUs.
//!
//! A CDI spec says paths, and paths can come to lead elsewhere. The numbers are therefore those of the
//! node itself, and the kernel says what they mean: `/sys/dev/char/MAJOR:MINOR` is a link to
//! `…/PARENT/drm/NAME`, whose PARENT is the card's PCI address, or the platform device of a further
//! partition of a card (`amdgpu_xcp.N`, `amdgpu_xcp_N`); and to `…/kfd/kfd` for `/dev/kfd`.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use allocation::Render;
use allocation::bundle::{Injection, Node as InjectedNode, ProcessEdits};
use allocation::cdi::{DeviceNode, Edits, Spec};
use allocation::gids::{UserNamespace, supplement};
use allocation::policy::{Policy, Sharing};
use allocation::selection::Chosen;
use inventory::PciAddress;
use rustc_hash::FxHashMap;
use rustix::fs::{AtFlags, Dir, FileType, lstat, major, minor, readlinkat_raw, statat};

use crate::log::Log;

/// The driver whose cards are AMD's: it binds to no other vendor's (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
const DRIVER: &str = "amdgpu";

/// `/sys` and `/dev`, and what is read there once for all nodes: most of what a look at a node costs is the way to it.
#[derive(Debug)]
pub struct Devices<'a> {
    sys: &'a Path,
    dev: Option<File>,
    /// `/sys/dev/char`: an entry for each character device that the kernel knows.
    chars: Option<File>,
    cards: OnceCell<BTreeSet<String>>,
}

impl<'a> Devices<'a> {
    pub fn at(sys: &'a Path, dev: &'a Path) -> Self {
        let open = |folder: &Path| File::open(folder).ok();
        Self { sys, dev: open(dev), chars: open(&sys.join("dev/char")), cards: OnceCell::new() }
    }

    /// The cards that amdgpu drives: its own folder has a link for each.
    fn cards(&self) -> &BTreeSet<String> {
        self.cards.get_or_init(|| {
            let folder = File::open(self.sys.join("bus/pci/drivers").join(DRIVER)).ok();
            let entries = folder.and_then(|folder| Dir::new(folder).ok()).into_iter().flatten().flatten();
            let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned).ok());
            names.filter(|name| PciAddress::parse(name).is_some()).collect()
        })
    }

    /// The driver of the device in this folder, relative to `/sys/dev/char`. None: no driver has it.
    fn driver(&self, folder: &str) -> Option<String> {
        let link = std::fs::read_link(self.sys.join("dev/char").join(folder).join("driver")).ok()?;
        Some(link.file_name()?.to_string_lossy().into_owned())
    }
}

/// A character device node as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub major: u32,
    pub minor: u32,
    /// Permission bits alone.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// The GPU whose node one has to be, as the policy lists it: its card's PCI address, and its render node.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub card: &'a str,
    pub render: &'a str,
}

const AGAIN: &str = "write the CDI spec again with `rocworker cdi generate`";

impl Node {
    /// Examines a node without opening it: opening a GPU's node wakes the GPU. A link is no node.
    ///
    /// One below `/dev` is looked for where `/dev` is.
    pub fn at(path: &Path, devices: &Devices<'_>) -> Result<Self, String> {
        let below_dev = path.as_os_str().as_bytes().strip_prefix(b"/dev/");
        // With another slash it would begin at the root.
        let below_dev = below_dev.filter(|rest| !rest.starts_with(b"/"));
        let found = match (&devices.dev, below_dev) {
            (Some(dev), Some(rest)) => statat(dev, rest, AtFlags::SYMLINK_NOFOLLOW),
            _ => lstat(path),
        };
        let path = path.display();
        let found = found.map_err(|errno| {
            let error = std::io::Error::from(errno);
            format!(
                "the device node {path} cannot be examined: {error}; see whether amdgpu is loaded, then {AGAIN}"
            )
        })?;
        if FileType::from_raw_mode(found.st_mode) != FileType::CharacterDevice {
            return Err(format!("{path} is no character device and therefore no GPU's: {AGAIN}"));
        }
        let (major, minor) = (major(found.st_rdev), minor(found.st_rdev));
        if (major, minor) == (0, 0) {
            return Err(format!("the device node {path} has the number 0:0: {AGAIN}"));
        }
        Ok(Self { major, minor, mode: found.st_mode & 0o7777, uid: found.st_uid, gid: found.st_gid })
    }

    /// Checks that the node at `path` is one of the `owner`'s, or, without one, of any GPU of AMD's; or AMD's compute node,
    /// `/dev/kfd`, which all GPUs share. Answers which render node it is to the kernel, whatever its path says.
    pub fn check(
        &self,
        path: &Path,
        owner: Option<Owner<'_>>,
        devices: &Devices<'_>,
    ) -> Result<Option<Render>, String> {
        let Self { major, minor, .. } = *self;
        let shown = path.display();
        let unknown = || {
            format!(
                "the device node {shown} has the number {major}:{minor}, which is no GPU to the kernel: {AGAIN}"
            )
        };
        let Some(chars) = &devices.chars else {
            return Err(format!(
                "the wrapper cannot check which device {shown} is, since it cannot open {}: mount sysfs, or let the process \
                 have more open files",
                devices.sys.join("dev/char").display()
            ));
        };
        let not_of_gpu = |is: &str, wanted: &str| {
            format!(
                "the device node {shown} belongs to {is}, not to {wanted} as the policy says: run `rocworker cdi \
                 generate` after a change of cards"
            )
        };
        // Longer than any of sysfs.
        let mut place = [0; 512];
        let length = readlinkat_raw(chars, format!("{major}:{minor}"), &mut place).map_err(|_| unknown())?;
        let place = place.get(..length).and_then(|place| std::str::from_utf8(place).ok());
        let place = place.ok_or_else(unknown)?;
        // The device's folder, its class and its name: `…/0000:64:00.0`, `drm`, `renderD128`.
        let mut parts = place.rsplitn(3, '/');
        let (Some(name), Some(class), Some(folder)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(unknown());
        };
        let parent = last(folder);
        let is = Render::parse(name);
        match (class, name, owner) {
            ("kfd", "kfd", _) => Ok(None),
            ("drm", _, Some(Owner { card, .. })) if parent.eq_ignore_ascii_case(card) => Ok(is),
            ("drm", _, Some(Owner { render, .. })) if is_partition(parent) => {
                // The kernel names no card for a further partition: its render node's name must be the
                // policy's, and any other node of it must have the name that its path says.
                let named = if name.starts_with("render") { Some(render) } else { path.to_str() };
                if named.is_some_and(|path| last(path) == name) {
                    return Ok(is);
                }
                let is = format!("{} ({})", parent.escape_default(), name.escape_default());
                Err(not_of_gpu(&is, &format!("the GPU of {render}")))
            }
            ("drm", _, Some(Owner { card, .. })) => {
                Err(not_of_gpu(&format!("the card {}", parent.escape_default()), &format!("the card {card}")))
            }
            ("drm", _, None) if is_partition(parent) || devices.cards().contains(parent) => Ok(is),
            ("drm", _, None) => match devices.driver(folder) {
                Some(driver) if driver == DRIVER => Ok(is),
                driver => {
                    let driver = driver.map_or_else(
                        || "which no driver has".to_owned(),
                        |driver| format!("which the driver {} has", driver.escape_default()),
                    );
                    let card = parent.escape_default();
                    Err(format!(
                        "the device node {shown} belongs to the card {card}, {driver}, not amdgpu: {AGAIN}"
                    ))
                }
            },
            _ => Err(unknown()),
        }
    }
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `amdgpu_xcp.3` of newer kernels, `amdgpu_xcp_3` of older ones.
fn is_partition(device: &str) -> bool {
    let number = device.strip_prefix("amdgpu_xcp").and_then(|rest| rest.strip_prefix(['.', '_']));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// What decides about a node besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub spec: &'a Spec<'a>,
    pub policy: &'a Policy,
    pub namespace: &'a UserNamespace,
    pub log: Log<'a>,
    pub devices: &'a Devices<'a>,
}

/// Nodes that were examined and found to be what they should, by their path on the host: each as it will be in the
/// container, and the group that a process there needs for it.
pub type Examined<'a> = FxHashMap<&'a str, (Node, Option<u32>)>;

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

    fn node(&self, wanted: &DeviceNode<'_>, chosen: &[Chosen<'_>]) -> Result<(Node, Option<u32>), String> {
        let path = Path::new(wanted.host());
        let mut node = Node::at(path, self.devices)?;
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
            // Computing does not need a card node that no process in the container can open.
            self.log.warn(&sentence);
            Ok(None)
        })?;
        Ok((node, supplement))
    }

    fn check(&self, node: &Node, path: &Path, chosen: &Chosen<'_>) -> Result<(), String> {
        let gpu = chosen.gpu;
        let gpus_are_listed = self.policy.gpus.is_some();
        // A GPU that is not listed, or that another container has, is kept from this one: then no GPU's device may bring
        // the render node of another GPU.
        let each_brings_its_own = gpus_are_listed || self.policy.sharing == Sharing::Exclusive;
        let card = gpu.card.or(gpu.pci).filter(|_| gpus_are_listed);
        let names = card.map(|card| (card.to_string(), gpu.render.to_string()));
        let owner = names.as_ref().map(|(card, render)| Owner { card, render });
        match node.check(path, owner, self.devices)? {
            Some(is) if each_brings_its_own && self.render_of(chosen) != Some(is) => Err(format!(
                "the device node {} is {is} to the kernel, which is not the GPU's own render node: {AGAIN}",
                path.display()
            )),
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
        let grant = self.spec.grant(chosen.iter().map(|chosen| chosen.device))?;
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
            let Some((node, supplement)) = examined.get(wanted.host()) else {
                return Err(format!("the device node {} was not examined", wanted.host()));
            };
            if let Some(gid) = supplement {
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

#[cfg(test)]
mod tests;
