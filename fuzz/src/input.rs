//! An input that is an injection and a text.

use std::sync::LazyLock;

use allocation::{
    bundle::{Injection, Node},
    folder::Folder,
    policy::UNLIMITED,
};

const NODE: Node<'static> = Node {
    path: "/dev/dri/renderD128",
    major: 226,
    minor: 128,
    file_mode: 0o020_660,
    uid: Some(0),
    gid: Some(992),
    access: "rw",
};

/// Among them twins, another spelling of a path, a contradiction, an alias and one without a rule.
const NODES: [Node<'static>; 8] = [
    NODE,
    Node { path: "/dev/kfd", major: 511, minor: 0, uid: None, gid: None, ..NODE },
    Node { path: "/dev/dri//card1", minor: 1, access: "rwm", ..NODE },
    Node { path: "/dev/./dri/renderD128", ..NODE },
    Node { minor: 129, ..NODE },
    Node { path: "/dev/gpu", access: "r", ..NODE },
    Node { path: "/dev/\"\u{1}é", access: "", file_mode: 0o101_777, ..NODE },
    Node { path: "dev/x/..", major: u32::MAX, minor: u32::MAX, ..NODE },
];

const GIDS: [u32; 4] = [992, 44, 0, u32::MAX];

const ENV: [&str; 6] = ["A=1", "A=2", "B=\"\u{1}é", "odd", "C=", "PATH=/opt/rocm/bin"];

/// Among them one beneath another, and one where a container may have a mount of its own.
static FOLDERS: LazyLock<[Folder; 4]> = LazyLock::new(|| {
    let folder = |parent, name| Folder::beneath(parent, name).expect("not hidden");
    let flagged = Folder { kept: vec!["nosuid", "nodev"], ..folder("/srv", "b") };
    [folder("/srv", "a_rw"), flagged, folder("/srv/a_rw", "\"\u{1}é"), folder("/dev", "shm")]
});

/// The most that one injection has: more adds nothing but time.
const LONGEST: usize = 12;

/// The first line chooses what is injected, a byte each; what is behind it is the text.
pub(crate) fn read(data: &[u8]) -> Option<(Injection<'static>, &str)> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let text = std::str::from_utf8(&data[end + 1..]).ok()?;
    let mut injection = Injection::default();
    for choice in data[..end].iter().take(LONGEST).map(|byte| usize::from(byte & 0x1f)) {
        match choice {
            0..8 => injection.nodes.push(NODES[choice]),
            8..12 => injection.process.gids.push(GIDS[choice - 8]),
            12..18 => injection.process.env.push(ENV[choice - 12]),
            18 => injection.shm_bytes = Some(8 << 30),
            19 => injection.process.memlock_bytes = Some(1 << 30),
            20 => injection.process.memlock_bytes = Some(UNLIMITED),
            21 => injection.folders = &FOLDERS[..1],
            22 => injection.folders = &FOLDERS[1..3],
            23 => injection.folders = &FOLDERS[..],
            _ => {}
        }
    }
    Some((injection, text))
}
