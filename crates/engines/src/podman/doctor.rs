//! podman: whether it reads CDI specs from the folder of rocworker's.

use std::path::{Path, PathBuf};

use cdi::DEFAULT_FOLDERS;
use check::{About, Check};
use serde_json::Value;

use super::{NAME, Podman};
use crate::examined::{CHECKS, Examined};

pub(super) fn check(examined: &Examined<'_>) -> Result<Vec<Check>, Check> {
    let about = About::one(CHECKS, NAME);
    let Some(podman) = Podman::read(examined.root) else { return Err(about.skipped("not installed")) };
    let (folders, named_in) = spec_folders(&podman).map_err(|why| about.clone().skipped(why))?;
    let folder = examined.config.cdi.path.parent().unwrap_or(Path::new("/")).display().to_string();
    Ok(vec![match named_in {
        _ if folders.contains(&folder) => {
            about.ok(format!("podman reads CDI specs from {folder}: podman run --device amd.com/gpu=all …"))
        }
        Some(file) => {
            let remedy = format!("add {folder} to cdi_spec_dirs in {}, or remove that key", file.display());
            about.failed(format!("podman reads no CDI specs from {folder}"), remedy)
        }
        None => {
            let remedy = format!(
                "write cdi_spec_dirs = [\"{folder}\", {{append=true}}] below [engine] into \
                 /etc/containers/containers.conf.d/rocworker.conf, or leave out cdi.path"
            );
            about.failed(format!("podman reads no CDI specs from {folder}"), remedy)
        }
    }])
}

/// The folders from which podman reads specs, and the last file that names any: `engine.cdi_spec_dirs` of
/// containers.conf(5). A list replaces those before it unless it has `{append=true}`.
fn spec_folders(podman: &Podman) -> Result<(Vec<String>, Option<&PathBuf>), String> {
    let mut folders: Vec<String> = DEFAULT_FOLDERS.map(str::to_owned).into();
    let mut named_in = None;
    for file in &podman.files {
        let list = file.table(&["engine"])?.and_then(|engine| engine.get("cdi_spec_dirs")?.as_array());
        let Some(list) = list else { continue };
        if !list.iter().any(|item| item.get("append") == Some(&Value::Bool(true))) {
            folders.clear();
        }
        folders.extend(list.iter().filter_map(Value::as_str).map(str::to_owned));
        named_in = Some(&file.path);
    }
    Ok((folders, named_in))
}
