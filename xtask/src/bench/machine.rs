//! A synthetic machine that the wrapper takes for this one: a mount namespace in which /sys, /dev, /etc and
//! /run are those of a server full of GPUs. The wrapper has no other Root than `/`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use layout::Nodes;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::sys::stat::{Mode, umask};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::command::Command;

/// A laid-out machine in this thread's `/`.
#[derive(Debug)]
pub(crate) struct Machine {
    folder: PathBuf,
}

/// Gives this thread, and what it starts, mounts of its own, and one core.
pub(crate) fn enter_namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace with unshare(2)")?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).context("making the mounts private")?;
    // The wrapper trusts no file that another user than root could write.
    umask(Mode::from_bits_truncate(0o022));
    pin()
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

impl Machine {
    /// Lays out `cards` with `partitions` each, with a policy that lists what `rocworker` detects of them. Mounts
    /// it over this thread's `/sys`, `/dev`, `/etc` and `/run`.
    pub(crate) fn mounted(
        folder: PathBuf,
        cards: u8,
        partitions: u8,
        rocworker: &Path,
        runtime: &Path,
    ) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        // Memory, and no `nodev`, whatever the file system of the temporary folder is.
        mount(Some("tmpfs"), &folder, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
            .with_context(|| format!("mounting a tmpfs on {}", folder.display()))?;
        layout::Machine::instinct(cards, partitions)
            .lay_out(&folder, Nodes::Real)
            .context("laying out a machine with device nodes")?;
        let machine = Self { folder };
        let detected = Command::new([rocworker.as_os_str(), "--root".as_ref(), machine.folder.as_os_str()])
            .arguments(["detect", "-o", "json"])
            .read()?;
        let detected: Value = serde_json::from_str(&detected).context("reading what rocworker detects")?;
        machine.write("etc/rocworker/wrapper.json", &policy(runtime, &detected))?;
        fs::create_dir_all(machine.folder.join("run")).context("making /run")?;
        for top in ["sys", "dev", "etc", "run"] {
            let from = machine.folder.join(top);
            let onto = Path::new("/").join(top);
            mount(Some(&from), &onto, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .with_context(|| format!("binding {} on {}", from.display(), onto.display()))?;
        }
        Ok(machine)
    }

    /// Removes what the wrapper noted of earlier creates. The folder stays: it is made once in a machine's run.
    pub(crate) fn forget_records(&self) -> Result<()> {
        let records = self.folder.join("run/rocworker/records");
        let Ok(entries) = fs::read_dir(&records) else { return Ok(()) };
        for record in entries {
            let path = record.with_context(|| format!("reading {}", records.display()))?.path();
            fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
        }
        Ok(())
    }

    fn write(&self, path: &str, content: &Value) -> Result<()> {
        let path = self.folder.join(path);
        let parent = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        fs::write(&path, format!("{content:#}\n")).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))
            .with_context(|| format!("setting the mode of {}", path.display()))
    }
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
