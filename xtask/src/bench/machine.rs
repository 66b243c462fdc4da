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

const KIND: &str = "amd.com/gpu";

/// A laid-out machine that stands in this thread's `/`.
#[derive(Debug)]
pub(crate) struct Machine {
    folder: PathBuf,
}

/// Gives this thread, and what it starts, mounts of its own, and one core.
pub(crate) fn enter_namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace with unshare(2)")?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).context("making the mounts private")?;
    // The wrapper believes no file that somebody else than root could write.
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
    /// Lays out `cards` with `partitions` each, with a CDI spec and a policy, and mounts it over this
    /// thread's `/sys`, `/dev`, `/etc` and `/run`.
    pub(crate) fn stand(folder: PathBuf, cards: u8, partitions: u8, runtime: &Path) -> Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        // Memory, and no `nodev`, whatever the file system of the temporary folder is.
        mount(Some("tmpfs"), &folder, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
            .with_context(|| format!("mounting a tmpfs on {}", folder.display()))?;
        layout::Machine::instinct(cards, partitions)
            .lay_out(&folder, Nodes::Real)
            .context("laying out a machine with device nodes")?;
        let machine = Self { folder };
        machine.write("etc/cdi/amd.json", &cdi_spec(cards, partitions))?;
        machine.write("etc/rocworker/wrapper.json", &policy(runtime))?;
        machine.forget_records()?;
        for top in ["sys", "dev", "etc", "run"] {
            let from = machine.folder.join(top);
            let onto = Path::new("/").join(top);
            mount(Some(&from), &onto, None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .with_context(|| format!("binding {} on {}", from.display(), onto.display()))?;
        }
        Ok(machine)
    }

    /// Removes what the wrapper noted of earlier creates.
    pub(crate) fn forget_records(&self) -> Result<()> {
        let records = self.folder.join("run/rocworker");
        if records.exists() {
            fs::remove_dir_all(&records).with_context(|| format!("removing {}", records.display()))?;
        }
        fs::create_dir_all(&records).with_context(|| format!("making {}", records.display()))
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

/// What an administrator allows on a worker whose containers may ask for every GPU by name.
fn policy(runtime: &Path) -> Value {
    json!({"schema_version": 1, "runtime": runtime, "requests": "all", "default": "none",
           "sharing": "shared", "gpus": null, "wait_limit_s": 0, "folders": [], "edits": {}})
}

/// The spec as the design has it, written by hand here: a name for each partition, one for each card by its
/// PCI address, and `all`; /dev/kfd once; no numbers.
fn cdi_spec(cards: u8, partitions: u8) -> Value {
    let node = |path: String| json!({"path": path, "fileMode": 0o660, "permissions": "rw"});
    let named = |name: &str, gpus: &[Gpu]| {
        let nodes: Vec<Value> = gpus.iter().flat_map(|gpu| [node(gpu.card()), node(gpu.render())]).collect();
        json!({"name": name, "containerEdits": {"deviceNodes": nodes}})
    };
    let gpus = gpus(cards, partitions);
    let mut devices: Vec<Value> = Vec::new();
    devices.extend(gpus.iter().enumerate().map(|(index, gpu)| named(&index.to_string(), &[*gpu])));
    for card in gpus.chunks(usize::from(partitions)) {
        devices.extend(card.first().map(|first| named(&first.pci(), card)));
    }
    devices.push(named("all", &gpus));
    json!({"cdiVersion": "0.5.0", "kind": KIND, "devices": devices,
           "containerEdits": {"deviceNodes": [node("/dev/kfd".to_owned())]}})
}

/// A partition as `layout::Machine::instinct` numbers it: cards from 1 on (0 is the BMC's), sixteen render
/// minors to a card, a PCI bus in sixteen.
#[derive(Debug, Clone, Copy)]
struct Gpu {
    card: u8,
    partition: u8,
    partitions: u8,
}

impl Gpu {
    fn pci(self) -> String {
        format!("0000:{:02x}:00.0", 0x05 + 0x10 * u32::from(self.card))
    }

    fn card(self) -> String {
        let before = u32::from(self.card) * u32::from(self.partitions);
        format!("/dev/dri/card{}", 1 + before + u32::from(self.partition))
    }

    fn render(self) -> String {
        format!("/dev/dri/renderD{}", 128 + 16 * u32::from(self.card) + u32::from(self.partition))
    }
}

fn gpus(cards: u8, partitions: u8) -> Vec<Gpu> {
    let of_card = |card| (0..partitions).map(move |partition| Gpu { card, partition, partitions });
    (0..cards).flat_map(of_card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_of_the_spec_is_one_that_the_layout_makes_and_stands_on_the_card_that_is_named() {
        for (cards, partitions) in [(8, 1), (8, 8), (1, 8)] {
            let folder = tempfile::tempdir().unwrap();
            layout::Machine::instinct(cards, partitions).lay_out(folder.path(), Nodes::Recorded).unwrap();
            let recorded = fs::read_to_string(folder.path().join("capture.json")).unwrap();
            let drm = folder.path().join("sys/class/drm");
            for gpu in gpus(cards, partitions) {
                for path in [gpu.card(), gpu.render()] {
                    assert!(recorded.contains(&format!("\"{path}\"")), "{path}");
                }
                if gpu.partition == 0 {
                    let name = gpu.render().replace("/dev/dri/", "");
                    let device = fs::canonicalize(drm.join(name).join("device")).unwrap();
                    assert!(device.ends_with(gpu.pci()), "{}: {}", gpu.pci(), device.display());
                }
            }
        }
    }

    #[test]
    fn the_spec_has_a_name_for_each_partition_each_card_and_all() {
        let spec = cdi_spec(8, 8);
        let devices = spec["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 64 + 8 + 1);
        assert_eq!(devices[64]["name"], "0000:05:00.0");
        assert_eq!(devices[64]["containerEdits"]["deviceNodes"].as_array().unwrap().len(), 16);
        assert_eq!(devices[72]["containerEdits"]["deviceNodes"].as_array().unwrap().len(), 128);
    }
}
