//! The device nodes of AMD's GPUs that stand in a container's /dev.
//!
//! By their numbers, not their names: a runtime may hand a node out under another name, and sysfs shows the GPUs of the
//! whole host (`/sys/dev/char/MAJOR:MINOR`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use root::{Kind as FileKind, Root};

const FOLDER: &str = "/dev/dri";
const AMD: &str = "0x1002";

/// Which of a GPU's two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What computing opens.
    Render,
    /// For displays; computing does without.
    Card,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Render => "renderD",
            Self::Card => "card",
        }
    }
}

/// A node of an AMD GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub path: PathBuf,
}

/// What stands in /dev/dri.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// AMD's, in the order of their numbers.
    pub found: Vec<Node>,
    /// What is not AMD's, or of which that cannot be told: a sentence without the path's end each.
    pub others: Vec<String>,
    /// Why the folder could not be listed.
    pub unlisted: Option<String>,
}

/// The nodes of one kind.
#[must_use]
pub fn look(root: &Root, kind: Kind) -> Looked {
    let names = match root.list(FOLDER) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => {
            return Looked { unlisted: Some(format!("there is no {FOLDER}")), ..Looked::default() };
        }
        Err(error) => return Looked { unlisted: Some(error.to_string()), ..Looked::default() },
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| number_of(name, kind)).collect();
    numbers.sort_unstable();
    let mut looked = Looked::default();
    for number in numbers {
        let path = Path::new(FOLDER).join(format!("{}{number}", kind.prefix()));
        match whose(root, &path) {
            Ok(()) => looked.found.push(Node { path }),
            Err(why) => looked.others.push(format!("{} {why}", path.display())),
        }
    }
    looked
}

fn number_of(name: &OsStr, kind: Kind) -> Option<u32> {
    let digits = name.to_str()?.strip_prefix(kind.prefix())?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// `Ok` when the node is a device of AMD's, else what it is.
fn whose(root: &Root, path: &Path) -> Result<(), String> {
    let meta = root.stat(path).map_err(|error| format!("cannot be examined ({error})"))?;
    let FileKind::Character { major, minor } = meta.kind else {
        return Err(format!("is {}, not a device node", meta.kind.described()));
    };
    let device = PathBuf::from(format!("/sys/dev/char/{major}:{minor}/device"));
    match root.read_text(device.join("vendor"), 64) {
        Ok(vendor) if vendor.trim() == AMD => Ok(()),
        Ok(vendor) => Err(format!("is device {major}:{minor}, whose vendor is {}, not AMD", vendor.trim())),
        // A partition beyond a card's first has a device of its own without PCI's files (amdgpu_xcp_drv.c).
        Err(_) if is_partition(root, &device) => Ok(()),
        Err(_) => Err(format!("is device {major}:{minor}, and /sys does not say whose that is")),
    }
}

/// Whether the device that a DRM minor belongs to is a partition beyond a card's first (amdgpu_xcp_drv.c). `device`: the
/// minor's link to it.
pub(crate) fn is_partition(root: &Root, device: &Path) -> bool {
    let target = root.read_link(device).unwrap_or_default();
    let number = target.file_name().and_then(OsStr::to_str).and_then(|name| {
        name.strip_prefix("amdgpu_xcp").and_then(|rest| rest.strip_prefix(['.', '_'])).map(str::to_owned)
    });
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
