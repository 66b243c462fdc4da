//! A module of the kernel, loaded by modprobe and unloaded if nothing has come to need it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use root::Root;

use crate::Error;
use crate::command::Programs;
use crate::plan::Change;
use crate::receipt::Ours;
use crate::uptime::Uptime;
use crate::work::Work;

/// What the path of a module begins with, in a plan and in a receipt: `module:amdgpu`.
const PREFIX: &str = "module:";

/// amdgpu looks at each of its cards before modprobe ends: some seconds a card.
const PATIENCE: Duration = Duration::from_secs(300);

const LIMIT: usize = 4 << 20;

/// Whether a change was made, and why it was not.
type Made = Result<(), String>;

/// A module, by the name that modprobe knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    pub name: String,
}

impl Module {
    /// What stands for a path where a module is meant: no file has such a name, since it does not begin at the Root.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("{PREFIX}{}", self.name))
    }
}

/// The module that a path of an action, entry or change names, if it names one.
pub(crate) fn named(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// As the kernel writes it (modprobe(8): no difference is made between the two).
fn kernels(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether two names are those of one module.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    kernels(one) == kernels(other)
}

fn folder(name: &str) -> PathBuf {
    Path::new("/sys/module").join(kernels(name))
}

/// Whether a module is loaded and has begun its work, or is a part of the kernel that runs
/// (Documentation/ABI/testing/sysfs-module: what is built in has no `initstate`).
pub(crate) fn is_loaded(root: &Root, name: &str) -> bool {
    if let Ok(state) = root.read_text(folder(name).join("initstate"), LIMIT) {
        return state.trim() == "live";
    }
    root.exists(folder(name)) || is_built_in(root, name)
}

/// One without parameters has no folder in /sys: kmod keeps a list beside the modules.
fn is_built_in(root: &Root, name: &str) -> bool {
    let release = root.read_text("/proc/sys/kernel/osrelease", LIMIT).unwrap_or_default();
    let list = Path::new("/lib/modules").join(release.trim()).join("modules.builtin");
    let list = root.read_text(list, LIMIT).unwrap_or_default();
    list.lines().any(|line| in_file(line) == Some(kernels(name)))
}

/// The module of a file: `kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.xz`.
fn in_file(path: &str) -> Option<String> {
    let (name, _) = path.rsplit('/').next()?.split_once(".ko")?;
    Some(kernels(name))
}

/// Why a module cannot be unloaded now; `None`: it can.
pub(crate) fn in_use(root: &Root, name: &str) -> Option<String> {
    let holders = root.list(folder(name).join("holders")).unwrap_or_default();
    if !holders.is_empty() {
        let holders: Vec<String> = holders.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        return Some(format!("{} stands on it", holders.join(", ")));
    }
    match root.read_text(folder(name).join("refcnt"), LIMIT) {
        Ok(count) if count.trim() == "0" => None,
        Ok(count) => Some(format!("it is in use {} times", count.trim())),
        Err(_) => Some("it is a part of the kernel".to_owned()),
    }
}

/// The boot that this is.
pub(crate) fn boot(root: &Root) -> Option<String> {
    Uptime::now(root).map(|now| now.boot)
}

/// What modprobe would load, what is needed first: `insmod FILE OPTIONS`, and `builtin NAME` of a part of the kernel.
fn would_load(programs: &Programs, name: &str) -> Result<Vec<String>, String> {
    let said = programs.run(&["modprobe", "--show-depends", "--", name], PATIENCE);
    let said = said.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let file = |line: &str| line.strip_prefix("insmod ")?.split_whitespace().next().and_then(in_file);
    Ok(said.lines().filter_map(file).collect())
}

impl Work<'_> {
    /// The outer error is one of the receipt, the inner one of this change.
    pub(crate) fn load(&mut self, change: &Change, name: &str, now: u64) -> Result<Made, Error> {
        let Some(programs) = self.hands().map(|hands| hands.programs().clone()) else {
            return Ok(Err("modules are loaded on the running machine only".to_owned()));
        };
        let root = self.root();
        let mut came: Vec<String> = match would_load(&programs, name) {
            Ok(names) => names.into_iter().filter(|it| !is_loaded(root, it)).collect(),
            Err(error) => return Ok(Err(format!("{error}; see that it is built for the kernel that runs"))),
        };
        let until_now = self.receipt().clone();
        let mut change = change.clone();
        change.entry_mut(|ours| {
            if let Ours::Module { came: known, .. } = ours {
                came.retain(|it| !known.contains(it));
                known.extend(came.iter().cloned());
            }
        });
        self.begin_change(&change, now)?;
        let ran = programs.run(&["modprobe", "--", name], PATIENCE);
        if is_loaded(root, name) {
            self.end_change(&change, now);
            return Ok(Ok(()));
        }
        // What it needs was loaded before it failed, and stands there for nobody.
        for name in came.iter().rev().filter(|it| is_loaded(root, it) && in_use(root, it).is_none()) {
            programs.run(&["rmmod", "--", name], PATIENCE).ok();
        }
        self.take_back(until_now, &change);
        let left: Vec<&str> = came.iter().map(String::as_str).filter(|it| is_loaded(root, it)).collect();
        let stays = if left.is_empty() {
            String::new()
        } else {
            format!("; {} had come with it and could not be unloaded", left.join(", "))
        };
        Ok(Err(match ran {
            Err(error) => format!("{error}; the kernel's log says more: dmesg{stays}"),
            Ok(_) => {
                format!("modprobe says that it was loaded, and /sys/module has no {}{stays}", kernels(name))
            }
        }))
    }

    /// As [`Work::load`].
    pub(crate) fn unload(&mut self, change: &Change, names: &[String], now: u64) -> Result<Made, Error> {
        let Some(programs) = self.hands().map(|hands| hands.programs().clone()) else {
            return Ok(Err("modules are unloaded on the running machine only".to_owned()));
        };
        let root = self.root();
        let until_now = self.receipt().clone();
        self.begin_change(change, now)?;
        for (at, name) in names.iter().enumerate() {
            if !is_loaded(root, name) || in_use(root, name).is_some() {
                continue;
            }
            let ran = programs.run(&["rmmod", "--", name], PATIENCE);
            // What came with it may have got another user in between, which is no failure.
            if let (0, Err(error)) = (at, ran) {
                self.take_back(until_now, change);
                return Ok(Err(error.to_string()));
            }
        }
        self.end_change(change, now);
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modules_file_names_it_as_the_kernel_does() {
        for (file, name) in [
            ("/lib/modules/6.1.0-1-amd64/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko", Some("amdgpu")),
            ("kernel/drivers/gpu/drm/drm-buddy.ko.xz", Some("drm_buddy")),
            ("/lib/modules/6.8/updates/dkms/amdgpu.ko.zst", Some("amdgpu")),
            ("modules.builtin", None),
        ] {
            assert_eq!(in_file(file).as_deref(), name, "{file}");
        }
    }
}
