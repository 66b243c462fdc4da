//! A module of the kernel, loaded by modprobe and unloaded if nothing has come to need it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use root::Root;

use super::case::{Case, Planned, Unchanged};
use crate::command::Programs;
use crate::model::{Change, Entry, Found, Managed, Repairs, Resource, State, Target, Uptime, Verb};
use crate::receipt::{Failure, Journal};

/// amdgpu looks at each of its cards before modprobe ends: some seconds a card.
const PATIENCE: Duration = Duration::from_secs(300);

const LIMIT: usize = 4 << 20;

/// The kernel's spelling of a module's name (modprobe(8): it treats `-` and `_` alike).
fn kernels(name: &str) -> String {
    name.replace('-', "_")
}

fn folder(name: &str) -> PathBuf {
    Path::new("/sys/module").join(kernels(name))
}

/// Whether a module is loaded and has begun its work, or is built into the running kernel
/// (Documentation/ABI/testing/sysfs-module: a built-in module has no `initstate`).
fn is_loaded(root: &Root, name: &str) -> bool {
    if let Ok(state) = root.read_text(folder(name).join("initstate"), LIMIT) {
        return state.trim() == "live";
    }
    root.exists(folder(name)) || is_built_in(root, name)
}

/// Whether kmod's list beside the modules has it as built in: a built-in module without parameters has no
/// folder in /sys.
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
fn in_use(root: &Root, name: &str) -> Option<String> {
    let holders = root.list(folder(name).join("holders")).unwrap_or_default();
    if !holders.is_empty() {
        let holders: Vec<String> = holders.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        return Some(format!("{} needs it", holders.join(", ")));
    }
    match root.read_text(folder(name).join("refcnt"), LIMIT) {
        Ok(count) if count.trim() == "0" => None,
        Ok(count) => Some(format!("it is in use {} times", count.trim())),
        Err(_) => Some("it is a part of the kernel".to_owned()),
    }
}

/// The modules that modprobe would load, in order, from its lines `insmod FILE OPTIONS`. Lines `builtin NAME`
/// are parts of the kernel.
fn would_load(programs: &Programs, name: &str) -> Result<Vec<String>, String> {
    let output = programs.run(&["modprobe", "--show-depends", "--", name], PATIENCE);
    let output = output.map_err(|error| error.to_string())?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let file = |line: &str| line.strip_prefix("insmod ")?.split_whitespace().next().and_then(in_file);
    Ok(output.lines().filter_map(file).collect())
}

pub(super) fn observe(root: &Root, name: &str) -> State {
    if is_loaded(root, name) { State::Loaded } else { State::Absent }
}

pub(super) fn plan(case: &Case<'_>) -> Planned {
    let from = case.found.state();
    if from == State::Loaded {
        return Err(Unchanged::InSync);
    }
    let boot = Uptime::boot(case.seen.root);
    let (verb, repairs, came) = match case.held.map(|entry| &entry.managed) {
        Some(Managed::Module { boot: then, came, .. }) if *then == boot => {
            (Verb::Repair, case.repairs()?, came.clone())
        }
        // The module went with the boot, so that this is no repair.
        _ => (Verb::Create, Repairs::default(), Vec::new()),
    };
    let managed = Managed::Module { boot, came, begun: true };
    let entry = Entry::of(case.action, State::Absent, managed, repairs);
    Ok(Change::forward(case.action, verb, (from, State::Loaded), Target::Load, entry))
}

pub(super) fn load(journal: &mut Journal<'_>, change: &Change, now: u64) -> Result<(), Failure> {
    let (root, Resource::Module(name)) = (journal.root, &change.path) else {
        return Err(format!("{} is no module", change.path).into());
    };
    let programs = journal.manager("modules are loaded")?.programs().clone();
    let names = would_load(&programs, name)
        .map_err(|error| format!("{error}; see that it is built for the kernel that runs"))?;
    let mut came: Vec<String> = names.into_iter().filter(|it| !is_loaded(root, it)).collect();
    let until_now = journal.receipt.clone();
    let mut change = change.clone();
    if let Some(Managed::Module { came: known, .. }) = change.entry.as_mut().map(|entry| &mut entry.managed) {
        came.retain(|it| !known.contains(it));
        known.extend(came.iter().cloned());
    }
    journal.begin(&change, now)?;
    let ran = programs.run(&["modprobe", "--", name], PATIENCE);
    if is_loaded(root, name) {
        journal.end(&change, now);
        return Ok(());
    }
    // Modules that were loaded for the failed one go again, since nothing uses them.
    for name in came.iter().rev().filter(|it| is_loaded(root, it) && in_use(root, it).is_none()) {
        programs.run(&["rmmod", "--", name], PATIENCE).ok();
    }
    journal.roll_back(until_now, &change);
    let left: Vec<&str> = came.iter().map(String::as_str).filter(|it| is_loaded(root, it)).collect();
    let stays = match left.as_slice() {
        [] => String::new(),
        left => format!("; {} had come with it and could not be unloaded", left.join(", ")),
    };
    Err(Failure::Change(match ran {
        Err(error) => format!("{error}; the kernel's log says more: dmesg{stays}"),
        Ok(_) => format!("modprobe says that it was loaded, and /sys/module has no {}{stays}", kernels(name)),
    }))
}

pub(super) fn revert(
    root: &Root,
    entry: &Entry,
    boot_then: Option<&str>,
    came: &[String],
    found: &Found,
) -> Planned {
    let (from, Resource::Module(name)) = (found.state(), &entry.path) else { return Err(Unchanged::Gone) };
    // Loaded anew since the machine was started, and not by this: no component's.
    if from != State::Loaded || Uptime::boot(root).as_deref() != boot_then {
        return Err(Unchanged::Gone);
    }
    if let Some(why) = in_use(root, name) {
        return Err(Unchanged::GoneBut(format!("it stays loaded until the machine is restarted: {why}")));
    }
    let others = came.iter().rev().filter(|it| kernels(it) != kernels(name));
    let names = [name].into_iter().chain(others).cloned().collect();
    Ok(Change::back(entry, Verb::Remove, (from, State::Absent), Target::Unload(names)))
}

pub(super) fn unload(
    journal: &mut Journal<'_>,
    change: &Change,
    names: &[String],
    now: u64,
) -> Result<(), Failure> {
    let programs = journal.manager("modules are unloaded")?.programs().clone();
    let until_now = journal.receipt.clone();
    journal.begin(change, now)?;
    for (at, name) in names.iter().enumerate() {
        if !is_loaded(journal.root, name) || in_use(journal.root, name).is_some() {
            continue;
        }
        let ran = programs.run(&["rmmod", "--", name], PATIENCE);
        // A module that came with this one may have another user by now, which is no failure.
        if let (0, Err(error)) = (at, ran) {
            journal.roll_back(until_now, change);
            return Err(error.to_string().into());
        }
    }
    journal.end(change, now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use root::Attributes;

    use super::*;
    use crate::kinds::Observed;
    use crate::model::Action;

    #[test]
    fn one_that_went_with_its_boot_comes_again_and_one_that_was_unloaded_is_repaired() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let put = |path: &str, text: &[u8]| {
            root.write(path, text, Attributes { mode: 0o644, owner: None }).unwrap();
        };
        put("/proc/sys/kernel/random/boot_id", b"second");
        let action = Action::module("amdgpu", "");
        let seen = Observed::new(&root);
        let entry = |boot: &str| {
            let managed = Managed::Module { boot: Some(boot.to_owned()), came: Vec::new(), begun: false };
            Entry::of(&action, State::Absent, managed, Repairs::default())
        };
        let planned = |held: Option<&Entry>| {
            let found = Found::Else(observe(&root, "amdgpu"));
            let case = Case { seen: &seen, action: &action, found: &found, held, now: 0 };
            plan(&case).ok().map(|change| change.change)
        };
        assert_eq!(planned(None), Some(Verb::Create));
        assert_eq!(planned(Some(&entry("first"))), Some(Verb::Create));
        assert_eq!(planned(Some(&entry("second"))), Some(Verb::Repair));
        put("/sys/module/amdgpu/initstate", b"coming\n");
        assert_eq!(planned(None), Some(Verb::Create));
        put("/sys/module/amdgpu/initstate", b"live\n");
        assert_eq!(planned(Some(&entry("second"))), None);
    }

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
