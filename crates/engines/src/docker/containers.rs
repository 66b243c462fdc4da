//! The containers that dockerd keeps on disk, as moby's daemon writes each (container/container.go): what it was made
//! with, which it is started with again.

use std::path::{Path, PathBuf};

use root::Root;
use serde_json::Value;

use super::Docker;

/// Folder in which dockerd keeps its data unless its configuration names another place.
const DATA: &str = "/var/lib/docker";
/// A hundred times the size of one container's file.
const LIMIT: usize = 4 << 20;

impl Docker {
    /// Names of the containers that were made with one of these runtimes, running or not.
    #[must_use]
    pub fn made_with(&self, root: &Root, runtimes: &[String]) -> Vec<String> {
        let Some(docker) = self.installed.as_ref().filter(|_| !runtimes.is_empty()) else {
            return Vec::new();
        };
        let by_unit = docker.unit.as_ref().and_then(|line| line.value(&["data-root", "graph"]));
        let folder = docker.setting("data-root").or_else(|| docker.setting("graph"));
        let data = PathBuf::from(by_unit.or_else(|| folder.as_ref()?.as_str()).unwrap_or(DATA));
        // With userns-remap all of it is in a folder UID.GID.
        let is_remapped = |name: &&str| name.split('.').all(|part| part.parse::<u32>().is_ok());
        let inner = root.list(&data).unwrap_or_default();
        let inner =
            inner.iter().filter_map(|name| name.to_str()).filter(is_remapped).map(|name| data.join(name));
        let folders = std::iter::once(data.clone()).chain(inner).map(|folder| folder.join("containers"));
        let mut names: Vec<String> = folders
            .flat_map(|folder| {
                let ids = root.list(&folder).unwrap_or_default();
                ids.into_iter().filter_map(move |id| name(root, &folder.join(id), runtimes))
            })
            .collect();
        names.sort();
        names
    }
}

/// The name of a container in this folder that has one of these runtimes.
fn name(root: &Root, container: &Path, runtimes: &[String]) -> Option<String> {
    let read = |file| -> Option<Value> {
        serde_json::from_slice(&root.read(container.join(file), LIMIT).ok()?).ok()
    };
    let host = read("hostconfig.json")?;
    let runtime = host.get("Runtime")?.as_str()?;
    if !runtimes.iter().any(|it| it == runtime) {
        return None;
    }
    let config = read("config.v2.json");
    let name = config.as_ref().and_then(|config| Some(config.get("Name")?.as_str()?.trim_start_matches('/')));
    let id = || container.file_name().map(|id| id.to_string_lossy().into_owned());
    name.map(str::to_owned).or_else(id)
}
