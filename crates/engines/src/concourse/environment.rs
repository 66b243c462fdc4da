//! The environment that a unit gives the worker.

use std::collections::BTreeMap;
use std::path::Path;

use root::Root;

use super::{ENV_FILE, UNIT};
use host::env_file::EnvFile;
use host::unit::{Unit, named, sets_environment_late};

/// Some hundred times the size of a worker's environment file.
const LIMIT: usize = 256 << 10;

#[derive(Debug, Default)]
pub(super) struct Environment {
    /// The variables that matter here, with the values that count.
    pub(super) variables: BTreeMap<String, String>,
    /// A sentence for each part that systemd cannot read either, or skips.
    pub(super) unread: Vec<String>,
    /// Files that systemd may read and that are not read here, a sentence each.
    pub(super) unfollowed: Vec<String>,
    /// A sentence on an absent file without which systemd does not start the worker: what it would set is unknown.
    pub(super) lacking: Option<String>,
}

impl Environment {
    /// The environment that systemd gives the unit: `Environment=` first, then the files in their order, then what is
    /// unset.
    pub(super) fn effective(root: &Root, unit: &Unit) -> Self {
        let mut found = Self { variables: unit.environment.iter().cloned().collect(), ..Self::default() };
        for file in unit.environment_files.iter().filter(|file| file.path != Path::new(ENV_FILE)) {
            let Some(paths) = named(root, UNIT, &file.path) else {
                found.unfollowed.push(format!(
                    "{} names the environment file {}, and which that is is not known here",
                    root.shown(&file.named_by).display(),
                    file.path.display()
                ));
                continue;
            };
            for path in &paths {
                let Err(error) = found.add(root, path) else { continue };
                let problem = format!("{error} ({} names it)", root.shown(&file.named_by).display());
                match error {
                    error if error.is_not_found() && file.optional => {}
                    error if error.is_not_found() => {
                        found.lacking.get_or_insert_with(|| problem.clone());
                        found.unread.push(problem);
                    }
                    // systemd takes nothing from a file that is not text either.
                    root::Error::NotText { .. } => found.unread.push(problem),
                    _ => found.unfollowed.push(problem),
                }
            }
        }
        found.variables.retain(|name, value| {
            let assignment = format!("{name}={value}");
            matters(name) && !unit.unset.iter().any(|word| word == name || *word == assignment)
        });
        found
    }

    fn add(&mut self, root: &Root, path: &Path) -> Result<(), root::Error> {
        let read = EnvFile::parse(&root.read_text(path, LIMIT)?);
        let shown = root.shown(path);
        self.unread.extend(meant(&read.ignored).map(|name| {
            format!("systemd leaves out {name:?} of {}: that is no variable's name", shown.display())
        }));
        self.variables.extend(read.variables);
        Ok(())
    }
}

fn matters(name: &str) -> bool {
    const NAMES: [&str; 4] = ["CONCOURSE_RUNTIME", "CONCOURSE_TAG", "CONCOURSE_WORK_DIR", "PATH"];
    NAMES.contains(&name) || name.starts_with("CONCOURSE_CONTAINERD_")
}

/// Ignored lines by which a person meant to set a variable that would matter.
fn meant(ignored: &[String]) -> impl Iterator<Item = &String> {
    ignored.iter().filter(|key| {
        let name = key.rsplit(|c: char| c.is_whitespace() || c == '\u{feff}').next().unwrap_or(key);
        matters(name)
    })
}

/// Whether a drop-in names environment files or unsets variables. If systemd reads it after rocworker's drop-in, it can
/// undo what that one says.
pub(super) fn sets_late(root: &Root, drop_in: &Path) -> bool {
    root.read_text(drop_in, LIMIT).is_ok_and(|text| sets_environment_late(&text))
}
