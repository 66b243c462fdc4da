//! containerd 1.x: the managed keys in the CRI section that counts.

use edit::{Edit, Format, Key, Moved, Set};
use reconcile::{Action, Desired, Stage};
use serde_json::{Value, json};

use super::settings::{CRI_2, CRI_3, Settings};
use super::{NAME, RUNTIME_TYPE, Wanted};
use crate::folder_beside;

pub(super) fn want(wanted: &Wanted<'_>, settings: &Settings, desired: &mut Desired) -> Result<(), String> {
    let host = wanted.containerd.files.get(settings.host).ok_or("it has no main file")?;
    let text = host.text.clone()?.unwrap_or_default();
    let has_cdi = wanted.version.minor >= 7;
    if !has_cdi {
        desired.note(
            NAME,
            format!(
                "containerd {} has no CDI: a pod gets GPUs from a device plugin, or with wrapper.pods by AMD_VISIBLE_DEVICES \
                 through runtime {}; ctr gets them with --runc-binary {} and AMD_VISIBLE_DEVICES",
                wanted.version, wanted.runtime, wanted.wrapper
            ),
        );
    }
    let edit =
        Edit { format: Format::Toml, keys: keys(wanted, settings, has_cdi), moved: moved(settings.section) };
    edit.apply(&text).map_err(|fault| format!("{}: {fault}", host.path.display()))?;
    let reason = format!("containerd runs containers of runtime {} through the wrapper", wanted.runtime);
    let mut action = Action::edit(Stage::Expose, &host.path, edit, &reason);
    if host.path.file_name().is_some_and(|name| name.to_string_lossy().contains("nvidia")) {
        action = action.contested_by("the NVIDIA Container Toolkit");
    }
    desired.push(wanted.with_restart(action));
    Ok(())
}

/// What the CRI section is called by later releases: `containerd config migrate` moves what is in it.
fn moved(section: &str) -> Vec<Moved> {
    let table = |name: &str| vec!["plugins".to_owned(), name.to_owned()];
    let later = [CRI_2, CRI_3].into_iter().filter(|name| *name != section);
    later.map(|name| Moved { from: table(section), to: table(name) }).collect()
}

fn keys(wanted: &Wanted<'_>, settings: &Settings, has_cdi: bool) -> Vec<Key> {
    let at = |path: &[&str]| -> Vec<String> {
        ["plugins", settings.section].iter().chain(path).map(|name| (*name).to_owned()).collect()
    };
    let runtime = |path: &[&str]| at(&[&["containerd", "runtimes"], path].concat());
    let mut keys = Vec::new();
    // A file that says nothing else would be taken for version 1.
    if settings.section == CRI_2
        && settings.host == 0
        && (settings.main_is_empty || settings.main_version == Some(2))
    {
        keys.push(Key { path: vec!["version".to_owned()], set: Set::Needed(2.into()) });
    }
    if has_cdi {
        keys.push(Key { path: at(&["enable_cdi"]), set: Set::Value(true.into()) });
        keys.extend(
            wanted.cdi_dir.map(|folder| Key { path: at(&["cdi_spec_dirs"]), set: folder_beside(folder) }),
        );
    }
    // Where the section names any runtime, containerd has only those, and the runc that every other container runs with
    // is no longer there by itself.
    if settings.runtimes().is_none_or(|runtimes| runtimes.contains_key("runc")) {
        keys.push(Key { path: runtime(&["runc"]), set: Set::Needed(runc(has_cdi)) });
    }
    let mut options = json!({ "BinaryName": wanted.wrapper });
    if settings.systemd_cgroup()
        && let Some(options) = options.as_object_mut()
    {
        options.insert("SystemdCgroup".to_owned(), true.into());
    }
    let value = json!({ "runtime_type": RUNTIME_TYPE, "options": options });
    let set = Set::Entry {
        value,
        identity: "options/BinaryName".to_owned(),
        instead: vec!["runtime_type".to_owned()],
    };
    keys.push(Key { path: runtime(&[wanted.runtime]), set });
    keys
}

/// runc as it is without any file: `containerd config default` of 1.6.20 and 1.7.24.
fn runc(is_1_7: bool) -> Value {
    let mut runc = json!({
        "runtime_type": RUNTIME_TYPE,
        "options": {
            "BinaryName": "", "CriuImagePath": "", "CriuPath": "", "CriuWorkPath": "", "IoGid": 0, "IoUid": 0,
            "NoNewKeyring": false, "NoPivotRoot": false, "Root": "", "ShimCgroup": "", "SystemdCgroup": false,
        },
    });
    if is_1_7 && let Some(runc) = runc.as_object_mut() {
        runc.insert("sandbox_mode".to_owned(), "podsandbox".into());
    }
    runc
}
