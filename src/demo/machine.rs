#![expect(
    clippy::disallowed_methods,
    reason = "this makes the machine that a Root then reads: plain files in a fresh folder, nothing to keep atomic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;
use root::{CAPTURE_FILE, RecordedNode, Recording};
use serde::Deserialize;

/// The synthetic machine of templates/demo/machine.json. Its paths have no leading slash.
#[derive(Deserialize)]
struct Machine {
    files: BTreeMap<PathBuf, String>,
    links: BTreeMap<PathBuf, PathBuf>,
    nodes: Vec<RecordedNode>,
}

/// Writes the demo's machine beneath an empty folder, as a capture that an ordinary user can read.
///
/// # Errors
/// The first path that cannot be made.
pub fn lay_out(folder: &Path) -> anyhow::Result<()> {
    let Machine { mut files, links, nodes } =
        serde_json::from_str(include_str!("../../templates/demo/machine.json"))?;
    let recording = serde_json::to_string_pretty(&Recording::new(nodes))?;
    files.insert(PathBuf::from(CAPTURE_FILE.trim_start_matches('/')), recording);
    let place = |path: &Path| {
        let place = folder.join(path);
        place.parent().map(fs::create_dir_all).transpose().map(|_| place)
    };
    for (path, text) in &files {
        let written = place(path).and_then(|place| fs::write(place, text));
        written.with_context(|| format!("cannot write {}", folder.join(path).display()))?;
    }
    for (path, target) in &links {
        let linked = place(path).and_then(|place| symlink(target, place));
        linked.with_context(|| format!("cannot make the link {}", folder.join(path).display()))?;
    }
    Ok(())
}
