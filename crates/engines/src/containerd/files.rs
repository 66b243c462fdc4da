//! containerd's configuration files in the order in which containerd loads them: the main file, then what each file
//! imports (`LoadConfig` in its cmd/containerd/server/config/config.go, services/server/config in 1.x).

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use root::Root;
use serde_json::Value;

use crate::File;
use host::glob::{self, MOST, clean, fits};

/// Reads containerd's files without `drop_in`. The number says how many files are loaded before `drop_in`, which need
/// not exist yet: where no file imports it, it counts as the last import of the main file.
pub(super) fn read(root: &Root, main: &Path, drop_in: &Path) -> (Vec<File>, usize) {
    let mut files: Vec<File> = Vec::new();
    let mut before_drop_in = None;
    let mut pending = VecDeque::from([main.to_owned()]);
    while let Some(path) = pending.pop_front() {
        if path == drop_in {
            before_drop_in.get_or_insert(files.len());
            continue;
        }
        // Files can import each other without end.
        if files.len() >= MOST || files.iter().any(|file| file.path == path) {
            continue;
        }
        let file = File::read(root, path);
        for pattern in file.imports() {
            let mut found = matches(root, &file.path, &pattern);
            if file.names(&pattern, drop_in) && !found.iter().any(|path| path == drop_in) {
                found.insert(found.partition_point(|path| path.as_path() < drop_in), drop_in.to_owned());
            }
            pending.extend(found);
        }
        if files.is_empty() && !pending.iter().any(|path| path == drop_in) {
            pending.push_back(drop_in.to_owned());
        }
        files.push(file);
    }
    let before_drop_in = before_drop_in.unwrap_or(files.len());
    (files, before_drop_in)
}

impl File {
    /// The file's imports, as they are written.
    #[must_use]
    pub fn imports(&self) -> Vec<String> {
        let list = self.parsed.as_ref().ok().and_then(|parsed| parsed.get("imports")?.as_array());
        list.into_iter().flatten().filter_map(|path| path.as_str().map(str::to_owned)).collect()
    }

    /// Checks that the file's imports are a list of paths: containerd does not start with anything else.
    pub(in crate::containerd) fn check_imports(&self) -> Result<(), String> {
        let imports = self.parsed.as_ref().ok().and_then(|parsed| parsed.get("imports"));
        let is_path = |path: &Value| path.is_string();
        match imports {
            Some(imports) if !imports.as_array().is_some_and(|list| list.iter().all(is_path)) => {
                Err(format!(
                    "{} has imports = {imports}, which has to be a list of paths: correct it",
                    self.path.display()
                ))
            }
            _ => Ok(()),
        }
    }

    /// Whether this file imports `path`, by name or by a pattern. The import `drop_in` does not count.
    #[must_use]
    pub fn covers(&self, path: &Path, drop_in: &str) -> bool {
        self.imports().iter().filter(|import| *import != drop_in).any(|pattern| self.names(pattern, path))
    }

    /// Whether `import` of this file is `path` or a pattern that matches `path`.
    fn names(&self, import: &str, path: &Path) -> bool {
        let pattern = resolved(&self.path, import);
        if !is_pattern(&pattern) {
            return pattern == path;
        }
        let (wanted, there): (Vec<_>, Vec<_>) = (pattern.components().collect(), path.components().collect());
        wanted.len() == there.len()
            && wanted.iter().zip(&there).all(|(wanted, there)| {
                fits(&wanted.as_os_str().to_string_lossy(), &there.as_os_str().to_string_lossy())
            })
    }
}

/// The absolute path of an import, which is relative to the importing file's folder.
fn resolved(file: &Path, pattern: &str) -> PathBuf {
    clean(&file.parent().unwrap_or(Path::new("/")).join(pattern))
}

/// containerd takes a path for a pattern where it has an asterisk.
fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains('*')
}

fn matches(root: &Root, file: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = resolved(file, pattern);
    if is_pattern(&pattern) { glob::paths(root, &pattern, fits) } else { vec![pattern] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_beside_the_file_that_names_it() {
        let main = Path::new("/etc/containerd/config.toml");
        for (import, expected) in [
            ("conf.d/*.toml", "/etc/containerd/conf.d/*.toml"),
            ("./a.toml", "/etc/containerd/a.toml"),
            ("../a.toml", "/etc/a.toml"),
            ("/opt//x/../a.toml", "/opt/a.toml"),
        ] {
            assert_eq!(resolved(main, import), Path::new(expected), "{import}");
        }
    }
}
