use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Meta, Root};

/// The file at the top of a capture that says which device nodes its /dev had.
pub const CAPTURE_FILE: &str = "/capture.json";

const VERSION: u32 = 1;
const LIMIT: usize = 1 << 20;

/// The content of [`CAPTURE_FILE`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recording {
    pub schema_version: u32,
    pub nodes: Vec<RecordedNode>,
    /// When the capture was taken, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<u64>,
    /// Where and how the capture was taken; for people.
    #[serde(flatten)]
    pub about: BTreeMap<String, serde_json::Value>,
}

/// A device node as it was: an archive names it rather than carrying it. Making one takes CAP_MKNOD, and
/// a stranger's node does not belong into a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedNode {
    pub path: PathBuf,
    /// `c`: a character device. Nothing else is recorded.
    #[serde(rename = "type")]
    pub kind: String,
    pub major: u64,
    pub minor: u64,
    /// Octal, as `0660`.
    pub mode: String,
    pub uid: u32,
    pub gid: u32,
}

impl Recording {
    /// A recording in the version that this program writes.
    #[must_use]
    pub fn new(nodes: Vec<RecordedNode>) -> Self {
        Self { schema_version: VERSION, nodes, taken_at: None, about: BTreeMap::new() }
    }
}

impl RecordedNode {
    /// `None` for anything but a character device.
    #[must_use]
    pub fn from_meta(path: PathBuf, meta: &Meta) -> Option<Self> {
        let Kind::Character { major, minor } = meta.kind else { return None };
        let mode = format!("{:04o}", meta.mode);
        Some(Self { path, kind: "c".into(), major, minor, mode, uid: meta.uid, gid: meta.gid })
    }
}

/// The recorded nodes by path, and when the capture was taken.
pub(crate) fn load(root: &Root) -> Result<(BTreeMap<PathBuf, Meta>, Option<u64>), Error> {
    let wrong = |problem| Error::Capture { path: root.shown(CAPTURE_FILE), problem };
    let text = match root.read_text(CAPTURE_FILE, LIMIT) {
        Err(error) if error.is_not_found() => return Ok((BTreeMap::new(), None)),
        text => text?,
    };
    let recording: Recording =
        serde_json::from_str(&text).map_err(|error| wrong(format!("not a capture's record: {error}")))?;
    if recording.schema_version != VERSION {
        let found = recording.schema_version;
        return Err(wrong(format!("schema_version {found} is not one that this program reads ({VERSION})")));
    }
    let nodes =
        recording.nodes.into_iter().map(|node| Ok((node.path.clone(), meta_of(&node).map_err(wrong)?)));
    Ok((nodes.collect::<Result<_, Error>>()?, recording.taken_at))
}

fn meta_of(node: &RecordedNode) -> Result<Meta, String> {
    let path = node.path.display();
    if !node.path.starts_with("/dev") {
        return Err(format!("{path} is recorded as a device node, outside /dev"));
    }
    if node.kind != "c" {
        return Err(format!("{path} is recorded with type {:?}; only \"c\" is known", node.kind));
    }
    let mode = u32::from_str_radix(&node.mode, 8)
        .map_err(|_| format!("{path} is recorded with mode {:?}, which is not octal", node.mode))?;
    let kind = Kind::Character { major: node.major, minor: node.minor };
    Ok(Meta { kind, mode: mode & 0o7777, uid: node.uid, gid: node.gid, len: 0, modified_s: 0 })
}
