//! A synthetic machine that the wrapper takes for this one: a mount namespace in which /sys, /dev, /etc and /run are
//! those of a server full of GPUs. The wrapper has no other Root than `/`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use layout::Nodes;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::apply::put;
use crate::command::Command;

/// Where the wrapper keeps its records.
const RECORDS: &str = "/run/rocworker/records";

/// Lays out `cards` with `partitions` each over this thread's `/sys`, `/dev`, `/etc` and `/run`, with a policy that lists
/// what `rocworker` detects of them. The mounts end with the thread.
pub(super) fn mount_over(
    folder: &Path,
    (cards, partitions): (u8, u8),
    rocworker: &Path,
    runtime: &Path,
) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace with unshare(2)")?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).context("making the mounts private")?;
    // The wrapper trusts no file that another user than root could write.
    umask(Mode::from_bits_truncate(0o022));
    pin()?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    // Memory, and no `nodev`, whatever the file system of the temporary folder is.
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
        .with_context(|| format!("mounting a tmpfs on {}", folder.display()))?;
    layout::Machine::instinct(cards, partitions)
        .lay_out(folder, Nodes::Real)
        .context("laying a machine out")?;
    let detect = Command::new([rocworker.as_os_str(), "--root".as_ref(), folder.as_os_str()]);
    let detected = detect.arguments(["detect", "-o", "json"]).read()?;
    let detected: Value = serde_json::from_str(&detected).context("reading what rocworker detects")?;
    put(&folder.join("etc/rocworker/wrapper.json"), policy(runtime, &detected).to_string().as_bytes())?;
    fs::create_dir_all(folder.join("run")).context("making /run")?;
    for top in ["sys", "dev", "etc", "run"] {
        let (from, onto) = (folder.join(top), Path::new("/").join(top));
        mount(Some(&from), &onto, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .with_context(|| format!("binding {} on {}", from.display(), onto.display()))?;
    }
    Ok(())
}

/// Keeps this thread on the last of its cores: the first also serves most interrupts.
fn pin() -> Result<()> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).context("reading which cores are allowed")?;
    let last = (0..CpuSet::count()).rev().find(|core| allowed.is_set(*core) == Ok(true));
    let mut one = CpuSet::new();
    one.set(last.context("no core is allowed")?).context("naming a core")?;
    sched_setaffinity(this, &one).context("pinning to a core")
}

/// Removes what the wrapper noted of earlier creates.
pub(super) fn forget_records() -> Result<()> {
    for record in fs::read_dir(RECORDS).into_iter().flatten() {
        fs::remove_file(record?.path()).with_context(|| format!("removing a record of {RECORDS}"))?;
    }
    Ok(())
}

/// The policy of a worker whose containers may ask for every GPU by name.
fn policy(runtime: &Path, detected: &Value) -> Value {
    let node = |path: &Value| json!({"path": path, "gid": null});
    let gpu = |gpu: &Value| {
        json!({"index": gpu["index"], "names": [gpu["pci"]], "card": gpu["pci"], "hive": null,
               "nodes": [node(&gpu["card"]), node(&gpu["render"])]})
    };
    let usable = detected["gpus"].as_array().into_iter().flatten().filter(|gpu| gpu["usable"] == true);
    let gpus: Vec<Value> = usable.map(gpu).collect();
    json!({"schema_version": 2, "runtime": runtime, "requests": "all", "default": "none",
           "sharing": "shared", "gpus": gpus, "wait_limit_s": 0, "folders": [], "edits": {}})
}
