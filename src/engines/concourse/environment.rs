//! The environment that a unit gives the worker.

use std::collections::BTreeMap;
use std::path::Path;

use root::Root;

use crate::engines::env_file::EnvFile;
use crate::engines::unit::{Unit, sets_environment_late};

use super::ENV_FILE;

/// Some hundred times what a worker's has.
const LIMIT: usize = 256 << 10;

/// The variables that matter here, with the values that count: `Environment=` first, then the files in their order,
/// then what is taken away. And what could not be read, a sentence each.
pub(super) fn effective(root: &Root, unit: &Unit) -> (BTreeMap<String, String>, Vec<String>) {
    let mut unread = Vec::new();
    let mut variables: BTreeMap<String, String> = unit.environment.iter().cloned().collect();
    for file in unit.environment_files.iter().filter(|file| file.path != Path::new(ENV_FILE)) {
        let named_by = root.shown(&file.named_by);
        if file.path.to_string_lossy().contains(['*', '?', '[', '%']) {
            unread.push(format!(
                "{} names the environment file {}, and which that is is not followed here",
                named_by.display(),
                file.path.display()
            ));
            continue;
        }
        match root.read_text(&file.path, LIMIT) {
            Ok(text) => {
                let read = EnvFile::parse(&text);
                unread.extend(ours(&read.ignored).map(|name| {
                    format!(
                        "systemd leaves out {name:?} of {}: that is no variable's name",
                        root.shown(&file.path).display()
                    )
                }));
                variables.extend(read.variables);
            }
            Err(error) if error.is_not_found() && file.optional => {}
            Err(error) => unread.push(format!("{error} ({} names it)", named_by.display())),
        }
    }
    for word in &unit.unset {
        match word.split_once('=') {
            Some((name, value)) if variables.get(name).is_some_and(|known| known == value) => {
                variables.remove(name);
            }
            Some(_) => {}
            None => {
                variables.remove(word);
            }
        }
    }
    variables.retain(|name, _| matters(name));
    (variables, unread)
}

fn matters(name: &str) -> bool {
    const NAMES: [&str; 4] = ["CONCOURSE_RUNTIME", "CONCOURSE_TAG", "CONCOURSE_WORK_DIR", "PATH"];
    NAMES.contains(&name) || name.starts_with("CONCOURSE_CONTAINERD_")
}

/// Those that somebody meant to set and that would matter.
fn ours(ignored: &[String]) -> impl Iterator<Item = &String> {
    ignored.iter().filter(|key| {
        let name = key.rsplit(|c: char| c.is_whitespace() || c == '\u{feff}').next().unwrap_or(key);
        matters(name)
    })
}

/// Whether a drop-in names environment files or takes variables away: after ours it can undo what ours says.
pub(super) fn sets_late(root: &Root, drop_in: &Path) -> bool {
    root.read_text(drop_in, LIMIT).is_ok_and(|text| sets_environment_late(&text))
}
