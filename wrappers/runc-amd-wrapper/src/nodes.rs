//! Device nodes: what they are, and whether they are a GPU's.
//!
//! A CDI spec says paths, and paths can come to lead elsewhere. The numbers are therefore those of the
//! node itself, and the kernel says what they stand for: `/sys/dev/char/MAJOR:MINOR` is a link to
//! `…/PARENT/drm/NAME`, whose PARENT is the card's PCI address, or the platform device of a further
//! partition of a card (`amdgpu_xcp.N`, `amdgpu_xcp_N`); and to `…/kfd/kfd` for `/dev/kfd`.

use std::cell::{OnceCell, RefCell};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use allocation::Render;

use crate::open;
use crate::sys::{self, Begin, Errno, Fd, flag};

/// The driver whose cards are AMD's: it binds to no other vendor's (drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
const DRIVER: &str = "amdgpu";

/// The folders that `/sys` and `/dev` are, and what was learnt there for this container. Paths begin at folders
/// that are opened once: most of what a look at a node costs is the way to it.
#[derive(Debug)]
pub struct Devices<'a> {
    sys: &'a Path,
    dev: &'a Path,
    chars: OnceCell<Option<Fd>>,
    nodes: OnceCell<Option<Fd>>,
    /// Folders of cards, relative to `chars`, which amdgpu drives: each card has two nodes or more.
    amds: RefCell<Vec<String>>,
}

impl<'a> Devices<'a> {
    pub fn at(sys: &'a Path, dev: &'a Path) -> Self {
        Self { sys, dev, chars: OnceCell::new(), nodes: OnceCell::new(), amds: RefCell::default() }
    }

    /// `/sys/dev/char`: an entry for each character device that the kernel knows.
    fn chars(&self) -> Option<Begin<'_>> {
        self.chars.get_or_init(|| folder(&self.sys.join("dev/char"))).as_ref().map(Begin::Folder)
    }

    /// `/dev`.
    fn nodes(&self) -> Option<Begin<'_>> {
        self.nodes.get_or_init(|| folder(self.dev)).as_ref().map(Begin::Folder)
    }

    /// Where the kernel keeps the device that a node stands for, relative to `/sys/dev/char`.
    fn place(&self, node: &Node) -> Option<String> {
        let mut entry = Vec::with_capacity(24);
        push_number(&mut entry, node.major);
        entry.push(b':');
        push_number(&mut entry, node.minor);
        entry.push(0);
        self.link(c_string(&entry)?)
    }

    fn link(&self, path: &std::ffi::CStr) -> Option<String> {
        let mut target = Vec::new();
        sys::read_link(self.chars()?, path, &mut target).ok()?;
        String::from_utf8(target).ok()
    }

    /// The driver of the device in this folder, relative to `/sys/dev/char`. None: no driver has it.
    fn driver(&self, folder: &str) -> Option<String> {
        let link = self.link(c_string(&[folder.as_bytes(), b"/driver\0"].concat())?)?;
        Some(last(&link).to_owned())
    }
}

fn folder(path: &Path) -> Option<Fd> {
    sys::open(&open::c_string(path).ok()?, flag::PATH | flag::DIRECTORY, 0).ok()
}

fn c_string(bytes: &[u8]) -> Option<&std::ffi::CStr> {
    std::ffi::CStr::from_bytes_with_nul(bytes).ok()
}

/// Without core::fmt, which costs more than the question to the kernel.
fn push_number(to: &mut Vec<u8>, number: u32) {
    if number >= 10 {
        push_number(to, number / 10);
    }
    to.extend(char::from_digit(number % 10, 10).map(|digit| digit as u8));
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
        let bytes = path.as_os_str().as_bytes();
        let (begin, rest) = match (bytes.strip_prefix(b"/dev/"), devices.nodes()) {
            // `/dev//x` is below it as well, and the rest must not begin at the root.
            (Some(rest), Some(begin)) if !rest.starts_with(b"/") => (begin, rest),
            _ => (Begin::WorkingFolder, bytes),
        };
        let mut named = Vec::with_capacity(64);
        named.extend_from_slice(rest);
        named.push(0);
        let found =
            c_string(&named).ok_or(Errno::INVALID).and_then(|path| sys::stat_no_follow_from(begin, path));
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
        let place = devices.place(self).ok_or_else(unknown)?;
        let (folder, class, name) = device(&place).ok_or_else(unknown)?;
        let parent = last(folder);
        let is = Render::parse(name);
        match (class, name, owner) {
            ("kfd", "kfd", _) => Ok(None),
            ("drm", _, Owner::Gpu { card, .. }) if parent.eq_ignore_ascii_case(card) => Ok(is),
            ("drm", _, Owner::Gpu { render, .. }) if is_partition(parent) => {
                // The kernel names no card for a further partition: its render node's name must be the
                // policy's, and any other node of it must have the name that its path says.
                let named = if name.starts_with("render") { render } else { path.to_str() };
                if named.and_then(|path| path.rsplit('/').next()) == Some(name) {
                    Ok(is)
                } else {
                    let wanted =
                        render.map_or_else(|| "that GPU".to_owned(), |render| format!("the GPU of {render}"));
                    Err(Error::NotOfGpu { path: path.to_owned(), is: format!("{parent} ({name})"), wanted })
                }
            }
            ("drm", _, Owner::Gpu { card, .. }) => Err(Error::NotOfGpu {
                path: path.to_owned(),
                is: format!("the card {parent}"),
                wanted: format!("the card {card}"),
            }),
            ("drm", _, Owner::AnyOfAmd) if is_partition(parent) => Ok(is),
            ("drm", _, Owner::AnyOfAmd) => {
                // The nodes of a card mostly come one behind the other.
                if devices.amds.borrow().iter().rev().any(|known| known == folder) {
                    return Ok(is);
                }
                match devices.driver(folder) {
                    Some(driver) if driver == DRIVER => {
                        devices.amds.borrow_mut().push(folder.to_owned());
                        Ok(is)
                    }
                    driver => {
                        let driver = driver.map_or_else(
                            || "which no driver has".to_owned(),
                            |driver| format!("which the driver {} has", driver.escape_default()),
                        );
                        let is = format!("the card {}, {driver}", parent.escape_default());
                        Err(Error::NotAmds { path: path.to_owned(), is })
                    }
                }
            }
            _ => Err(unknown()),
        }
    }
}

/// The folder of a device, its class and its name: `…/0000:64:00.0`, `drm`, `renderD128`.
fn device(place: &str) -> Option<(&str, &str, &str)> {
    // A byte at a time: what searches long texts fast takes longer to begin than these texts are.
    let slash = |text: &str| text.bytes().rposition(|b| b == b'/');
    let (place, name) = place.split_at_checked(slash(place)?)?;
    let (folder, class) = place.split_at_checked(slash(place)?)?;
    Some((folder, class.strip_prefix('/')?, name.strip_prefix('/')?))
}

/// The last part of a path.
fn last(path: &str) -> &str {
    path.bytes().rposition(|b| b == b'/').and_then(|slash| path.get(slash + 1..)).unwrap_or(path)
}

/// `amdgpu_xcp.3` of newer kernels, `amdgpu_xcp_3` of older ones.
fn is_partition(device: &str) -> bool {
    let number = device.strip_prefix("amdgpu_xcp").and_then(|rest| rest.strip_prefix(['.', '_']));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
