//! Device nodes: what they are, and whether they are a GPU's.
//!
//! A CDI spec says paths, and paths can come to lead elsewhere. The numbers are therefore those of the
//! node itself, and the kernel says what they stand for: `/sys/dev/char/MAJOR:MINOR` is a link to
//! `…/PARENT/drm/NAME`, whose PARENT is the card's PCI address, or the platform device of a further
//! partition of a card (`amdgpu_xcp.N`, `amdgpu_xcp_N`); and to `…/kfd/kfd` for `/dev/kfd`.

use std::cell::RefCell;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::sys::{self, Errno};

/// AMD's PCI vendor id, as sysfs writes it.
const AMD: &str = "0x1002";

/// The folder that `/sys` is, and what was learnt there for this container.
#[derive(Debug)]
pub struct Sysfs<'a> {
    path: &'a Path,
    /// PCI addresses whose vendor was found to be AMD: each card has two nodes or more.
    amds: RefCell<Vec<String>>,
}

impl<'a> Sysfs<'a> {
    pub fn at(path: &'a Path) -> Self {
        Self { path, amds: RefCell::default() }
    }

    /// The path of a character device's entry with `below` behind it, as a C string's bytes.
    fn entry(&self, node: &Node, below: &[u8]) -> Vec<u8> {
        let mut path = Vec::with_capacity(96);
        path.extend_from_slice(self.path.as_os_str().as_bytes());
        path.extend_from_slice(b"/dev/char/");
        push_number(&mut path, node.major);
        path.push(b':');
        push_number(&mut path, node.minor);
        path.extend_from_slice(below);
        path.push(0);
        path
    }

    /// The vendor of the PCI device that a node belongs to.
    fn vendor(&self, node: &Node) -> Option<String> {
        let mut vendor = Vec::with_capacity(16);
        let file = sys::open(c_string(&self.entry(node, b"/device/vendor"))?, 0, 0).ok()?;
        // One read gives a whole attribute (fs/sysfs/file.c).
        sys::read(&file, &mut vendor, 16).ok()?;
        let vendor = String::from_utf8(vendor).ok()?;
        Some(vendor.trim_end().to_owned())
    }
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
    UnknownToKernel { path: PathBuf, major: u32, minor: u32 },
    NotOfGpu { path: PathBuf, is: String, wanted: String },
    NotAmds { path: PathBuf, is: String },
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
            Self::NotAmds { path, is } => {
                write!(f, "the device node {} belongs to {is}, which is not AMD's: {AGAIN}", path.display())
            }
        }
    }
}

impl Node {
    /// Examines a node without opening it: opening a GPU's node wakes the GPU. A link is no node.
    ///
    /// `dev` is the folder that `/dev` is.
    pub fn at(path: &Path, dev: &Path) -> Result<Self, Error> {
        let mut named = Vec::with_capacity(64);
        match path.as_os_str().as_bytes().strip_prefix(b"/dev/") {
            Some(name) => {
                named.extend_from_slice(dev.as_os_str().as_bytes());
                named.push(b'/');
                named.extend_from_slice(name);
            }
            None => named.extend_from_slice(path.as_os_str().as_bytes()),
        }
        named.push(0);
        let found = c_string(&named).ok_or(Errno::INVALID).and_then(sys::stat_no_follow);
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
    /// all GPUs share.
    pub fn check(&self, path: &Path, owner: Owner<'_>, sysfs: &Sysfs<'_>) -> Result<(), Error> {
        let Self { major, minor, .. } = *self;
        let unknown = || Error::UnknownToKernel { path: path.to_owned(), major, minor };
        let mut target = Vec::new();
        let entry = sysfs.entry(self, b"");
        c_string(&entry).and_then(|entry| sys::read_link(entry, &mut target).ok()).ok_or_else(unknown)?;
        let mut places = target.rsplit(|b| *b == b'/');
        let mut place = || places.next().and_then(|place| std::str::from_utf8(place).ok()).unwrap_or("");
        let (name, class, parent) = (place(), place(), place());
        match (class, name, owner) {
            ("kfd", "kfd", _) => Ok(()),
            ("drm", _, Owner::Gpu { card, .. }) if parent.eq_ignore_ascii_case(card) => Ok(()),
            ("drm", _, Owner::Gpu { render, .. }) if is_partition(parent) => {
                // The kernel names no card for a further partition: its render node's name must be the
                // policy's, and any other node of it must have the name that its path says.
                let named = if name.starts_with("render") { render } else { path.to_str() };
                if named.and_then(|path| path.rsplit('/').next()) == Some(name) {
                    Ok(())
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
            ("drm", _, Owner::AnyOfAmd) if is_partition(parent) => Ok(()),
            ("drm", _, Owner::AnyOfAmd) => {
                if sysfs.amds.borrow().iter().any(|known| known == parent) {
                    return Ok(());
                }
                let vendor = sysfs.vendor(self).ok_or_else(unknown)?;
                if vendor == AMD {
                    sysfs.amds.borrow_mut().push(parent.to_owned());
                    Ok(())
                } else {
                    let is = format!("the card {parent} of vendor {}", vendor.escape_default());
                    Err(Error::NotAmds { path: path.to_owned(), is })
                }
            }
            _ => Err(unknown()),
        }
    }
}

/// `amdgpu_xcp.3` of newer kernels, `amdgpu_xcp_3` of older ones.
fn is_partition(device: &str) -> bool {
    let number = device.strip_prefix("amdgpu_xcp").and_then(|rest| rest.strip_prefix(['.', '_']));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
