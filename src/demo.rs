//! What the demo shows beyond the commands: its machine, and a bundle before and after the wrapper.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use allocation::bundle::{Bundle, Injection, Node, ProcessEdits};
use allocation::gids::supplement;
use allocation::policy::{Ask, Policy, Setting};
use allocation::request::Request;
use allocation::selection::Pool;
use anyhow::{Context, bail};
use root::{CAPTURE_FILE, Kind, RecordedNode, Recording, Root};
use serde::Deserialize;
use serde_json::Value;

/// A task's config.json as Concourse writes it, shortened: it asks for one GPU, in Concourse's user namespace.
pub const TASK: &str = include_str!("../templates/demo/task.json");

/// What the wrapper makes of a bundle on the machine beneath `root`: by the wrapper's own decisions and edits, with
/// the nodes that the Root has, recorded ones too. `policy`: wrapper.json. `None` when it changes nothing.
///
/// # Errors
/// The errors with which the wrapper itself would refuse the container.
pub fn wrapped(root: &Root, policy: &str, bundle: &str) -> anyhow::Result<Option<String>> {
    let policy = Policy::parse(policy)?;
    let bundle = Bundle::parse(bundle)?;
    let request = Request::from_env(bundle.env())?;
    let Ask::Explicit(request) = policy.ask(request.as_ref(), Setting::default())? else { return Ok(None) };
    let pool = Pool::new(policy.gpus.clone().unwrap_or_default());
    let selected = pool.select(request, |_| 0)?;
    let namespace = bundle.user_namespace()?;
    let mut gids = BTreeSet::new();
    let mut nodes = Vec::new();
    for wanted in std::iter::once(&policy.kfd).chain(selected.iter().flat_map(|gpu| &gpu.nodes)) {
        let meta = root.stat(&wanted.path)?;
        let Kind::Character { major, minor } = meta.kind else { bail!("{} is no device", wanted.path) };
        if let Some(gid) = supplement(meta.mode, meta.gid, &namespace)? {
            gids.insert(gid);
        }
        nodes.push(Node {
            path: &wanted.path,
            major: u32::try_from(major)?,
            minor: u32::try_from(minor)?,
            file_mode: meta.mode,
            uid: namespace.uid(meta.uid),
            gid: namespace.gid(meta.gid),
            access: "rw",
        });
    }
    let process = ProcessEdits { gids: gids.into_iter().collect(), ..ProcessEdits::default() };
    let injection = Injection { nodes, process, ..Injection::default() };
    Ok(bundle.inject(&injection)?)
}

/// The nodes that a task sees with this bundle, a line each: kind and mode as ls writes them, path, and numbers.
///
/// # Errors
/// `bundle` is no OCI bundle.
pub fn nodes(bundle: &str) -> anyhow::Result<String> {
    let bundle: Value = serde_json::from_str(bundle).context("reading the demo's bundle")?;
    let devices = bundle.pointer("/linux/devices").and_then(Value::as_array);
    let line = |device: &Value| {
        let number = |key: &str| device.get(key).and_then(Value::as_u64);
        let mode = number("fileMode")?;
        let bit = |place: u32| if mode >> place & 1 == 1 { ["x", "w", "r"][place as usize % 3] } else { "-" };
        let mode: String = (0..9).rev().map(bit).collect();
        let path = device.get("path")?.as_str()?;
        Some(format!("c{mode}  {path:<20}  {}:{}\n", number("major")?, number("minor")?))
    };
    Ok(devices.into_iter().flatten().filter_map(line).collect())
}

/// The synthetic machine of templates/demo/machine.json, or its load of templates/demo/load.json: readings, processes, and
/// the kernel's log with a hang. Paths have no leading slash.
#[derive(Deserialize)]
struct Machine {
    files: BTreeMap<PathBuf, String>,
    links: BTreeMap<PathBuf, PathBuf>,
    #[serde(default)]
    nodes: Vec<RecordedNode>,
    /// Files that are no text, in hexadecimal digits.
    #[serde(default)]
    bytes: BTreeMap<PathBuf, String>,
}

/// Writes the demo's machine with its load beneath an empty folder, as a capture that an ordinary user can read.
///
/// # Errors
/// The first path that cannot be made.
#[expect(
    clippy::disallowed_methods,
    reason = "this makes the machine that a Root then reads: plain files in a fresh folder, nothing to keep atomic"
)]
pub fn lay_out(folder: &Path) -> anyhow::Result<()> {
    let read = serde_json::from_str::<Machine>;
    let (machine, load) = (
        read(include_str!("../templates/demo/machine.json"))?,
        read(include_str!("../templates/demo/load.json"))?,
    );
    let recording = serde_json::to_string_pretty(&Recording::new(machine.nodes))?;
    let capture = (PathBuf::from(CAPTURE_FILE.trim_start_matches('/')), recording);
    let texts = machine.files.into_iter().chain(load.files).chain([capture]);
    let mut files: Vec<(PathBuf, Vec<u8>)> = texts.map(|(path, text)| (path, text.into_bytes())).collect();
    for (path, digits) in load.bytes {
        files.push((
            path,
            from_hexadecimal(&digits).context("templates/demo/load.json has no hexadecimal digits")?,
        ));
    }
    let place = |path: &Path| {
        let place = folder.join(path);
        place.parent().map(fs::create_dir_all).transpose().map(|_| place)
    };
    for (path, content) in &files {
        let written = place(path).and_then(|place| fs::write(place, content));
        written.with_context(|| format!("cannot write {}", folder.join(path).display()))?;
    }
    for (path, target) in machine.links.iter().chain(&load.links) {
        let linked = place(path).and_then(|place| symlink(target, place));
        linked.with_context(|| format!("cannot make the link {}", folder.join(path).display()))?;
    }
    Ok(())
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let pair = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}
