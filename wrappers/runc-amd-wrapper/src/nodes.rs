//! Device nodes: what they are, whether they are a GPU's, and what of them goes into a bundle.
//!
//! The policy says paths, and paths can come to lead elsewhere. The numbers are therefore those of the
//! node itself, and the kernel says what they mean: `/sys/dev/char/MAJOR:MINOR` is a link to
//! `…/PARENT/drm/NAME`, whose PARENT is the card's PCI address, or the platform device of a further
//! partition of a card (`amdgpu_xcp.N`, `amdgpu_xcp_N`); and to `…/kfd/kfd` for `/dev/kfd`.

use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use allocation::Render;
use allocation::bundle::{Injection, Node as InjectedNode, ProcessEdits};
use allocation::gids::{UserNamespace, supplement};
use allocation::gpu::{self, Gpu};
use rustix::fs::{AtFlags, FileType, lstat, major, minor, readlinkat_raw, statat};

use crate::log::Log;

/// `/sys` and `/dev`, and what is opened there once for all nodes.
#[derive(Debug)]
pub struct Devices<'a> {
    pub sys: &'a Path,
    dev: Option<File>,
    /// `/sys/dev/char`: an entry for each character device that the kernel knows.
    chars: Option<File>,
}

/// The kernel's view of a device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The device's folder, relative to `/sys/dev/char`: `…/0000:64:00.0`.
    pub folder: PathBuf,
    /// The last part of `folder`.
    pub parent: String,
    /// `drm` or `kfd`.
    class: String,
    /// `renderD128`.
    name: String,
}

impl<'a> Devices<'a> {
    /// Checks that amdgpu drives the card. A further partition's platform device is amdgpu's by its name.
    ///
    /// # Errors
    /// The end of a sentence: which driver has the card.
    pub fn check_driver(&self, place: &Place) -> Result<(), String> {
        if place.is_partition() {
            return Ok(());
        }
        match std::fs::read_link(self.sys.join("dev/char").join(&place.folder).join("driver")) {
            Ok(driver) if driver.ends_with(DRIVER) => Ok(()),
            Ok(driver) => Err(format!(
                "is driven by {}, not by {DRIVER}",
                last(&driver.to_string_lossy()).escape_default()
            )),
            Err(error) => Err(format!("names no driver in sysfs: {error}")),
        }
    }

    /// Checks that the GPU's card is divided as the policy says. Render nodes stay when a card is divided otherwise, and
    /// are then other partitions, or none (amdgpu_xcp.c).
    ///
    /// # Errors
    /// The end of a sentence: which mode the card has.
    fn check_mode(&self, gpu: &Gpu) -> Result<(), String> {
        let (Some(wanted), Some(card)) = (&gpu.compute, gpu.card) else { return Ok(()) };
        let file = self.sys.join("bus/pci/devices").join(card.to_string()).join("current_compute_partition");
        let mode = std::fs::read_to_string(&file)
            .map_err(|error| format!("its card's mode is not known: {}: {error}", file.display()))?;
        match mode.trim() {
            mode if mode == wanted => Ok(()),
            mode => Err(format!(
                "its card is in {}, and the policy was written for {}: rocworker's daemon writes it again within a second, \
                 and `rocworker apply` at once",
                mode.escape_default(),
                wanted.escape_default()
            )),
        }
    }

    pub fn at(sys: &'a Path, dev: &'a Path) -> Self {
        let open = |folder: &Path| File::open(folder).ok();
        Self { sys, dev: open(dev), chars: open(&sys.join("dev/char")) }
    }

    /// Asks the kernel about the node at `path`.
    ///
    /// # Errors
    /// A sentence: the kernel knows no such device, or sysfs cannot be read.
    pub fn place_of(&self, node: &Node, path: &Path) -> Result<Place, String> {
        let Node { major, minor, .. } = *node;
        let shown = path.display();
        let Some(chars) = &self.chars else {
            return Err(format!(
                "the wrapper cannot check which device {shown} is, since it cannot open {}: mount sysfs, or let the process \
                 have more open files",
                self.sys.join("dev/char").display()
            ));
        };
        // Longer than any of sysfs.
        let mut link = [0; 512];
        let mut read = || {
            let length = readlinkat_raw(chars, format!("{major}:{minor}"), &mut link).ok()?;
            let link = std::str::from_utf8(link.get(..length)?).ok()?;
            // The device's folder, its class and its name: `…/0000:64:00.0`, `drm`, `renderD128`.
            let mut parts = link.rsplitn(3, '/');
            let (name, class, folder) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Place {
                folder: folder.into(),
                parent: last(folder).to_owned(),
                class: class.to_owned(),
                name: name.to_owned(),
            })
        };
        read().ok_or_else(|| {
            format!(
                "the device node {shown} has the number {major}:{minor}, which is no GPU to the kernel: {AGAIN}"
            )
        })
    }
}

/// The driver whose cards are AMD's: it binds to no other vendor's (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
const DRIVER: &str = "amdgpu";

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

const AGAIN: &str = "`rocworker apply` writes the policy again";

impl Node {
    /// Examines a node without opening it: opening a GPU's node wakes the GPU. A link is no node.
    ///
    /// A path below `/dev` is looked up in the folder that `devices` opened as `/dev`.
    pub fn at(path: &Path, devices: &Devices<'_>) -> Result<Self, String> {
        let below_dev = path.as_os_str().as_bytes().strip_prefix(b"/dev/");
        // A rest with another leading slash would begin at the root.
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
}

impl Place {
    fn is_kfd(&self) -> bool {
        (self.class.as_str(), self.name.as_str()) == ("kfd", "kfd")
    }

    /// Whether the device is a further partition of a card that the kernel does not name: `amdgpu_xcp.3` of
    /// newer kernels, `amdgpu_xcp_3` of older ones.
    pub fn is_partition(&self) -> bool {
        let number = self.parent.strip_prefix("amdgpu_xcp").and_then(|rest| rest.strip_prefix(['.', '_']));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Checks that the node at `path` is one of this GPU's.
    fn check(&self, path: &str, gpu: &Gpu) -> Result<(), String> {
        let Self { parent, class, name, .. } = self;
        let not_of_gpu = |is: &str, wanted: &str| {
            Err(format!(
                "the device node {path} belongs to {is}, not to {wanted} as the policy says: run `rocworker apply` after \
                 a change of cards"
            ))
        };
        let is_of_card = gpu.card.is_some_and(|card| parent.eq_ignore_ascii_case(&card.to_string()));
        if class != "drm" {
            return not_of_gpu(&format!("{} ({})", parent.escape_default(), name.escape_default()), "a GPU");
        }
        if !is_of_card && !self.is_partition() {
            let wanted = gpu.card.map_or_else(|| gpu.render.to_string(), |card| format!("the card {card}"));
            return not_of_gpu(&format!("the card {}", parent.escape_default()), &wanted);
        }
        let own = if name.starts_with("render") { gpu.render.to_string() } else { last(path).to_owned() };
        match *name == own {
            true => Ok(()),
            // A card's own node is the card's under any number.
            false if is_of_card && Render::parse(name).is_none() => Ok(()),
            false if is_of_card => Err(format!(
                "the device node {path} is {} to the kernel, which is not the GPU's own render node: {AGAIN}",
                name.escape_default()
            )),
            false => {
                let is = format!("{} ({})", parent.escape_default(), name.escape_default());
                not_of_gpu(&is, &format!("the GPU of {}", gpu.render))
            }
        }
    }
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The circumstances that decide about a node besides the node itself.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub namespace: &'a UserNamespace,
    pub log: Log<'a>,
    pub devices: &'a Devices<'a>,
}

/// A node that was examined and found to be what it should: as it will be in the container, and the group that a process
/// there needs for it.
pub type Examined<'a> = (InjectedNode<'a>, Option<u32>);

impl Setting<'_> {
    /// Examines the nodes of a GPU.
    ///
    /// # Errors
    /// The sentence that says which of its nodes cannot be given, and why.
    pub fn gpu<'g>(&self, gpu: &'g Gpu) -> Result<Vec<Examined<'g>>, String> {
        let cannot = |error| format!("the GPU {gpu} cannot be given: {error}");
        self.devices.check_mode(gpu).map_err(cannot)?;
        let nodes = gpu.nodes.iter().map(|wanted| {
            self.node(wanted, |place| {
                place.check(&wanted.path, gpu)?;
                self.devices.check_driver(place).map_err(|problem| {
                    format!(
                        "the card {} of {} {problem}: {AGAIN}",
                        place.parent.escape_default(),
                        wanted.path
                    )
                })
            })
        });
        nodes.collect::<Result<_, _>>().map_err(cannot)
    }

    /// Examines `/dev/kfd`, which every container with a GPU gets.
    ///
    /// # Errors
    /// The sentence that says why it cannot be given.
    pub fn kfd<'g>(&self, wanted: &'g gpu::Node) -> Result<Examined<'g>, String> {
        let is_kfd = |place: &Place| match place.is_kfd() {
            true => Ok(()),
            false => {
                Err(format!("{} is {} to the kernel: {AGAIN}", wanted.path, place.name.escape_default()))
            }
        };
        self.node(wanted, is_kfd).map_err(|error| format!("no GPU can be given: {error}"))
    }

    fn node<'g>(
        &self,
        wanted: &'g gpu::Node,
        check: impl FnOnce(&Place) -> Result<(), String>,
    ) -> Result<Examined<'g>, String> {
        let path = Path::new(&wanted.path);
        let mut node = Node::at(path, self.devices)?;
        check(&self.devices.place_of(&node, path)?)?;
        if *self.namespace == UserNamespace::Host {
            // runc makes this node anew, as the policy says; in a user namespace it can only bind the host's.
            node.gid = wanted.gid.unwrap_or(node.gid);
        }
        let supplement = supplement(node.mode, node.gid, self.namespace).or_else(|error| {
            let sentence = format!("the device node {}: {error}", path.display());
            if is_for_computing(&wanted.path) {
                return Err(sentence);
            }
            // Computing does not need a card node that no process in the container can open.
            self.log.warn(&sentence);
            Ok(None)
        })?;
        let injected = InjectedNode {
            path: &wanted.path,
            major: node.major,
            minor: node.minor,
            file_mode: node.mode,
            uid: self.namespace.uid(node.uid),
            gid: self.namespace.gid(node.gid),
            access: "rw",
        };
        Ok((injected, supplement))
    }
}

/// The injection for a container that gets these nodes.
#[must_use]
pub fn injection<'g>(examined: Vec<Examined<'g>>) -> Injection<'g> {
    let (nodes, supplements): (Vec<_>, Vec<_>) = examined.into_iter().unzip();
    let mut gids = Vec::new();
    for gid in supplements.into_iter().flatten() {
        if !gids.contains(&gid) {
            gids.push(gid);
        }
    }
    Injection { nodes, process: ProcessEdits { gids, ..ProcessEdits::default() }, ..Injection::default() }
}

/// Computing opens /dev/kfd and the render nodes, and no other (ROCr's and HIP's open calls).
fn is_for_computing(host: &str) -> bool {
    host == "/dev/kfd" || Render::parse(host).is_some()
}

#[cfg(test)]
mod tests;
