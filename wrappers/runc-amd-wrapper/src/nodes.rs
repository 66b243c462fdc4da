//! Device nodes: what they are, and whether they are a GPU's.
//!
//! A CDI spec says paths, and paths can come to lead elsewhere. The numbers are therefore those of the
//! node itself, and the kernel says what they stand for: `/sys/dev/char/MAJOR:MINOR` is a link to
//! `…/PARENT/drm/NAME`, whose PARENT is the card's PCI address, or the platform device of a further
//! partition of a card (`amdgpu_xcp.N`, `amdgpu_xcp_N`); and to `…/kfd/kfd` for `/dev/kfd`.

use std::cell::{OnceCell, RefCell};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use allocation::{PciAddress, Render};

use crate::open;
use crate::sys::{self, Begin, Fd, ShortPath, flag};

/// The driver whose cards are AMD's: it binds to no other vendor's (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
const DRIVER: &str = "amdgpu";

/// The folders that `/sys` and `/dev` are, and what was learnt there for this container. Paths begin at folders
/// that are opened once: most of what a look at a node costs is the way to it.
#[derive(Debug)]
pub struct Devices<'a> {
    sys: &'a Path,
    dev: &'a Path,
    chars: OnceCell<Option<Fd>>,
    /// amdgpu's own folder, which has a link for each card that it drives.
    driver: OnceCell<Option<Fd>>,
    /// `/dev/dri`, where all nodes are but one.
    graphics: OnceCell<Option<Fd>>,
    /// The folder of nodes, relative to `chars`, of the device of AMD's that was found last: each has two nodes or more,
    /// which mostly come one behind the other.
    amds: RefCell<Vec<u8>>,
    /// Where the last link led.
    target: RefCell<Vec<u8>>,
}

impl<'a> Devices<'a> {
    pub fn at(sys: &'a Path, dev: &'a Path) -> Self {
        Self {
            sys,
            dev,
            chars: OnceCell::new(),
            driver: OnceCell::new(),
            graphics: OnceCell::new(),
            amds: RefCell::default(),
            target: RefCell::default(),
        }
    }

    /// `/sys/dev/char`: an entry for each character device that the kernel knows.
    fn chars(&self) -> Option<Begin<'_>> {
        self.chars.get_or_init(|| folder(&self.sys.join("dev/char"))).as_ref().map(Begin::Folder)
    }

    /// Where a path begins for the kernel, and what it is made of. One below `/dev` begins where `/dev` is.
    fn begin<'p>(&'p self, path: &'p [u8]) -> (Begin<'p>, [&'p [u8]; 2]) {
        // A rest that begins with another slash would begin at the root.
        let graphics = path.strip_prefix(b"/dev/dri/").filter(|rest| !rest.starts_with(b"/"));
        let folder = || self.graphics.get_or_init(|| folder(&self.dev.join("dri"))).as_ref();
        if let Some(rest) = graphics
            && let Some(folder) = folder()
        {
            return (Begin::Folder(folder), [&[], rest]);
        }
        match path.strip_prefix(b"/dev") {
            Some(rest) if rest.starts_with(b"/") => {
                (Begin::WorkingFolder, [self.dev.as_os_str().as_bytes(), rest])
            }
            _ => (Begin::WorkingFolder, [&[], path]),
        }
    }

    /// Where the kernel keeps the device that a node stands for, relative to `/sys/dev/char`: put into the buffer.
    fn place<'t>(&self, node: &Node, target: &'t mut Vec<u8>) -> Option<&'t [u8]> {
        let mut entry = ShortPath::default();
        entry.push_number(node.major)?;
        entry.push(b":")?;
        entry.push_number(node.minor)?;
        self.link(entry.as_c_str(), target)
    }

    fn link<'t>(&self, path: &CStr, target: &'t mut Vec<u8>) -> Option<&'t [u8]> {
        sys::read_link(self.chars()?, path, target).ok()?;
        Some(target)
    }

    /// Whether amdgpu lists this card as its own. The way to the card's folder, which says the same, is three times as
    /// long.
    fn is_driven(&self, card: &[u8]) -> bool {
        let driver = self.driver.get_or_init(|| folder(&self.sys.join("bus/pci/drivers").join(DRIVER)));
        let mut path = ShortPath::default();
        let Some(driver) = driver else { return false };
        let is_card = std::str::from_utf8(card).is_ok_and(|card| PciAddress::parse(card).is_some());
        is_card
            && path.push(card).is_some()
            && sys::stat_no_follow_from(Begin::Folder(driver), path.as_c_str())
                .is_ok_and(|found| found.is_link())
    }

    /// The driver of the device in this folder, relative to `/sys/dev/char`. None: no driver has it.
    fn driver(&self, folder: &[u8]) -> Option<Vec<u8>> {
        let mut target = Vec::new();
        let path = [folder, b"/driver\0"].concat();
        let link = self.link(CStr::from_bytes_with_nul(&path).ok()?, &mut target)?;
        Some(last(link).to_vec())
    }

    /// Keeps in which folder a node of AMD's is, `…/0000:64:00.0/drm`.
    fn keep_as_amds(&self, place: &[u8], name: &[u8]) {
        let mut amds = self.amds.borrow_mut();
        amds.clear();
        amds.extend_from_slice(place.get(..place.len() - name.len()).unwrap_or_default());
    }
}

/// The name of what is directly beneath a folder, which ends with a slash.
fn beneath<'p>(folder: &[u8], place: &'p [u8]) -> Option<&'p [u8]> {
    let name = place.strip_prefix(folder).filter(|_| !folder.is_empty())?;
    slash(name).is_none().then_some(name)
}

fn folder(path: &Path) -> Option<Fd> {
    sys::open(&open::c_string(path).ok()?, flag::PATH | flag::DIRECTORY, 0).ok()
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
        let (begin, parts) = devices.begin(path.as_os_str().as_bytes());
        let mut short = ShortPath::default();
        let long;
        let named = match parts.iter().try_for_each(|part| short.push(part)) {
            Some(()) => Ok(short.as_c_str()),
            None => {
                long = open::c_string(Path::new(OsStr::from_bytes(&parts.concat())));
                long.as_deref().map_err(|errno| *errno)
            }
        };
        let found = named.and_then(|path| sys::stat_no_follow_from(begin, path));
        let found =
            found.map_err(|errno| Error::Unreadable { path: path.to_owned(), error: errno.into() })?;
        if !found.is_character_device() {
            return Err(Error::NotCharacterDevice(path.to_owned()));
        }
        let (major, minor) = found.node;
        if (major, minor) == (0, 0) {
            return Err(Error::NoNumber(path.to_owned()));
        }
        Ok(Self { major, minor, mode: found.mode & 0o7777, uid: found.uid, gid: found.gid })
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
        let unknown = || match devices.chars() {
            Some(_) => Error::UnknownToKernel { path: path.to_owned(), major, minor },
            None => Error::NobodyToAsk { path: path.to_owned(), chars: devices.sys.join("dev/char") },
        };
        let mut target = devices.target.borrow_mut();
        let place = devices.place(self, &mut target).ok_or_else(unknown)?;
        if let Owner::AnyOfAmd = owner
            && let Some(name) = beneath(&devices.amds.borrow(), place)
        {
            return Ok(Render::from_bytes(name));
        }
        let (folder, class, name) = device(place).ok_or_else(unknown)?;
        let parent = last(folder);
        let is = Render::from_bytes(name);
        let said = |name: &[u8]| name.escape_ascii().to_string();
        match (class, name, owner) {
            (b"kfd", b"kfd", _) => Ok(None),
            (b"drm", _, Owner::Gpu { card, .. }) if parent.eq_ignore_ascii_case(card.as_bytes()) => Ok(is),
            (b"drm", _, Owner::Gpu { render, .. }) if is_partition(parent) => {
                // The kernel names no card for a further partition: its render node's name must be the
                // policy's, and any other node of it must have the name that its path says.
                let named = if name.starts_with(b"render") { render } else { path.to_str() };
                if named.is_some_and(|path| last(path.as_bytes()) == name) {
                    Ok(is)
                } else {
                    let wanted =
                        render.map_or_else(|| "that GPU".to_owned(), |render| format!("the GPU of {render}"));
                    Err(Error::NotOfGpu {
                        path: path.to_owned(),
                        is: format!("{} ({})", said(parent), said(name)),
                        wanted,
                    })
                }
            }
            (b"drm", _, Owner::Gpu { card, .. }) => Err(Error::NotOfGpu {
                path: path.to_owned(),
                is: format!("the card {}", said(parent)),
                wanted: format!("the card {card}"),
            }),
            (b"drm", _, Owner::AnyOfAmd) if is_partition(parent) || devices.is_driven(parent) => {
                devices.keep_as_amds(place, name);
                Ok(is)
            }
            (b"drm", _, Owner::AnyOfAmd) => match devices.driver(folder) {
                Some(driver) if driver == DRIVER.as_bytes() => {
                    devices.keep_as_amds(place, name);
                    Ok(is)
                }
                driver => {
                    let driver = driver.map_or_else(
                        || "which no driver has".to_owned(),
                        |driver| format!("which the driver {} has", driver.escape_ascii()),
                    );
                    let is = format!("the card {}, {driver}", said(parent));
                    Err(Error::NotAmds { path: path.to_owned(), is })
                }
            },
            _ => Err(unknown()),
        }
    }
}

/// The folder of a device, its class and its name: `…/0000:64:00.0`, `drm`, `renderD128`.
fn device(place: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (place, name) = place.split_at_checked(slash(place)?)?;
    let (folder, class) = place.split_at_checked(slash(place)?)?;
    Some((folder, class.get(1..)?, name.get(1..)?))
}

/// The last part of a path.
fn last(path: &[u8]) -> &[u8] {
    slash(path).and_then(|slash| path.get(slash + 1..)).unwrap_or(path)
}

/// A byte at a time: what searches long texts fast takes longer to begin than these texts are.
fn slash(path: &[u8]) -> Option<usize> {
    path.iter().rposition(|byte| *byte == b'/')
}

/// `amdgpu_xcp.3` of newer kernels, `amdgpu_xcp_3` of older ones.
fn is_partition(device: &[u8]) -> bool {
    match device.strip_prefix(b"amdgpu_xcp") {
        Some([b'.' | b'_', number @ ..]) => !number.is_empty() && number.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
