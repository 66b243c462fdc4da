//! Device nodes: what they are, and whether they are a GPU's.
//!
//! A CDI spec says paths, and paths can come to lead elsewhere. The numbers are therefore those of the
//! node itself, and the kernel says what they stand for: `/sys/dev/char/MAJOR:MINOR` is a link to
//! `…/PARENT/drm/NAME`, whose PARENT is the card's PCI address, or the platform device of a further
//! partition of a card (`amdgpu_xcp.N`, `amdgpu_xcp_N`); and to `…/kfd/kfd` for `/dev/kfd`.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use allocation::{PciAddress, Render};
use rustix::fs::{AtFlags, Dir, FileType, lstat, major, minor, readlinkat_raw, statat};

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

/// A character device node as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub major: u32,
    pub minor: u32,
    /// Permission bits alone.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// Whose node one has to be.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// The GPU that the policy names: its card's PCI address, and its render node.
    Gpu { card: &'a str, render: Option<&'a str> },
    /// Any GPU of AMD's.
    AnyOfAmd,
}

/// Why a node cannot be given to a container.
#[derive(Debug)]
pub enum Error {
    Unreadable { path: PathBuf, error: std::io::Error },
    NotCharacterDevice(PathBuf),
    NoNumber(PathBuf),
    NobodyToAsk { path: PathBuf, chars: PathBuf },
    UnknownToKernel { path: PathBuf, major: u32, minor: u32 },
    NotOfGpu { path: PathBuf, is: String, wanted: String },
    NotAmds { path: PathBuf, is: String },
    OfAnotherGpu { path: PathBuf, is: Render },
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const AGAIN: &str = "write the CDI spec again with `rocworker cdi generate`";
        match self {
            Self::Unreadable { path, error } => write!(
                f,
                "the device node {} cannot be examined: {error}; see whether amdgpu is loaded, then {AGAIN}",
                path.display()
            ),
            Self::NotCharacterDevice(path) => {
                write!(f, "{} is no character device and therefore no GPU's: {AGAIN}", path.display())
            }
            Self::NoNumber(path) => {
                write!(f, "the device node {} has the number 0:0: {AGAIN}", path.display())
            }
            Self::NobodyToAsk { path, chars } => write!(
                f,
                "whose the device node {} is cannot be told, since {} cannot be opened: mount sysfs, or let the \
                 process have more open files",
                path.display(),
                chars.display()
            ),
            Self::UnknownToKernel { path, major, minor } => write!(
                f,
                "the device node {} has the number {major}:{minor}, which is no GPU to the kernel: {AGAIN}",
                path.display()
            ),
            Self::NotOfGpu { path, is, wanted } => write!(
                f,
                "the device node {} belongs to {is}, not to {wanted} as the policy says: \
                 run `rocworker cdi generate` after a change of cards",
                path.display()
            ),
            Self::OfAnotherGpu { path, is } => write!(
                f,
                "the device node {} is {is} to the kernel, which is not the GPU's own render node: {AGAIN}",
                path.display()
            ),
            Self::NotAmds { path, is } => {
                write!(f, "the device node {} belongs to {is}, not amdgpu: {AGAIN}", path.display())
            }
        }
    }
}

impl Node {
    /// Examines a node without opening it: opening a GPU's node wakes the GPU. A link is no node.
    ///
    /// One below `/dev` is looked for where `/dev` is.
    pub fn at(path: &Path, devices: &Devices<'_>) -> Result<Self, Error> {
        let below_dev = path.as_os_str().as_bytes().strip_prefix(b"/dev/");
        // With another slash it would begin at the root.
        let below_dev = below_dev.filter(|rest| !rest.starts_with(b"/"));
        let found = match (&devices.dev, below_dev) {
            (Some(dev), Some(rest)) => statat(dev, rest, AtFlags::SYMLINK_NOFOLLOW),
            _ => lstat(path),
        };
        let found =
            found.map_err(|errno| Error::Unreadable { path: path.to_owned(), error: errno.into() })?;
        if FileType::from_raw_mode(found.st_mode) != FileType::CharacterDevice {
            return Err(Error::NotCharacterDevice(path.to_owned()));
        }
        let (major, minor) = (major(found.st_rdev), minor(found.st_rdev));
        if (major, minor) == (0, 0) {
            return Err(Error::NoNumber(path.to_owned()));
        }
        Ok(Self { major, minor, mode: found.st_mode & 0o7777, uid: found.st_uid, gid: found.st_gid })
    }

    /// Checks that the node at `path` is one of the `owner`'s, or AMD's compute node, `/dev/kfd`, which
    /// all GPUs share. Answers which render node it is to the kernel, whatever its path says.
    pub fn check(
        &self,
        path: &Path,
        owner: Owner<'_>,
        devices: &Devices<'_>,
    ) -> Result<Option<Render>, Error> {
        let Self { major, minor, .. } = *self;
        let unknown = || Error::UnknownToKernel { path: path.to_owned(), major, minor };
        let Some(chars) = &devices.chars else {
            return Err(Error::NobodyToAsk { path: path.to_owned(), chars: devices.sys.join("dev/char") });
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
            ("drm", _, Owner::Gpu { card, .. }) if parent.eq_ignore_ascii_case(card) => Ok(is),
            ("drm", _, Owner::Gpu { render, .. }) if is_partition(parent) => {
                // The kernel names no card for a further partition: its render node's name must be the
                // policy's, and any other node of it must have the name that its path says.
                let named = if name.starts_with("render") { render } else { path.to_str() };
                if named.is_some_and(|path| last(path) == name) {
                    return Ok(is);
                }
                let wanted =
                    render.map_or_else(|| "that GPU".to_owned(), |render| format!("the GPU of {render}"));
                let is = format!("{} ({})", parent.escape_default(), name.escape_default());
                Err(Error::NotOfGpu { path: path.to_owned(), is, wanted })
            }
            ("drm", _, Owner::Gpu { card, .. }) => Err(Error::NotOfGpu {
                path: path.to_owned(),
                is: format!("the card {}", parent.escape_default()),
                wanted: format!("the card {card}"),
            }),
            ("drm", _, Owner::AnyOfAmd) if is_partition(parent) || devices.cards().contains(parent) => Ok(is),
            ("drm", _, Owner::AnyOfAmd) => match devices.driver(folder) {
                Some(driver) if driver == DRIVER => Ok(is),
                driver => {
                    let driver = driver.map_or_else(
                        || "which no driver has".to_owned(),
                        |driver| format!("which the driver {} has", driver.escape_default()),
                    );
                    let is = format!("the card {}, {driver}", parent.escape_default());
                    Err(Error::NotAmds { path: path.to_owned(), is })
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

#[cfg(test)]
mod tests;
