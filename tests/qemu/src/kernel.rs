//! A distribution's kernel, as its package lies unpacked in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive::Archive;

/// An unpacked kernel package with its `modules.dep`.
#[derive(Debug)]
pub struct Kernel {
    image: PathBuf,
    /// `…/lib/modules/RELEASE`
    modules: PathBuf,
    dependencies: BTreeMap<String, Vec<String>>,
}

impl Kernel {
    /// Finds image and modules beneath the folder; `/lib` and `/usr/lib` both hold modules, as the package has it.
    /// Since Linux 7 the image stands among the modules, and only an installation copies it to /boot.
    ///
    /// # Panics
    /// Where the folder holds no kernel, or more than one.
    #[must_use]
    pub fn unpacked_in(folder: &Path) -> Self {
        let roots = [folder.join("lib/modules"), folder.join("usr/lib/modules")];
        let modules = only(roots.iter().find(|root| root.is_dir()).unwrap(), "");
        let beside = modules.join("vmlinuz");
        let image = if beside.is_file() { beside } else { only(&folder.join("boot"), "vmlinuz-") };
        let table = modules.join("modules.dep");
        let text = fs::read_to_string(&table).unwrap_or_else(|error| {
            panic!("reading {}: {error}; `cargo xtask test` writes it with depmod", table.display())
        });
        Self { image, modules, dependencies: parse(&text) }
    }

    #[must_use]
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// The output of `uname -r` in this kernel.
    ///
    /// # Panics
    /// Where the folder's name is no text.
    #[must_use]
    pub fn release(&self) -> &str {
        self.modules.file_name().and_then(|name| name.to_str()).unwrap()
    }

    /// Names and contents of these modules and of all that they need, in the order in which they can be loaded.
    /// What is built into the kernel is in no list.
    ///
    /// # Panics
    /// Where a module is in no list, or cannot be read or decompressed.
    #[must_use]
    pub fn modules(&self, names: &[&str]) -> Vec<(String, Vec<u8>)> {
        let mut order = Vec::new();
        for name in names {
            order.extend(self.with_dependencies(name));
        }
        let mut seen = BTreeSet::new();
        order.retain(|path| seen.insert(path.clone()));
        order.iter().map(|path| (module_name(path).to_owned(), read(&self.modules.join(path)))).collect()
    }

    /// Puts modules into the archive beneath `modules`, and for each of `names` a file of that name with the order in
    /// which it and its needs are loaded (guest/steps.sh).
    ///
    /// # Panics
    /// Where [`Kernel::modules`] panics.
    pub fn modules_into(&self, archive: &mut Archive, names: &[&str]) {
        let mut written = BTreeSet::new();
        for module in names {
            let mut order = String::new();
            for (name, content) in self.modules(&[module]) {
                order.push_str(&name);
                order.push('\n');
                if written.insert(name.clone()) {
                    archive.file(&format!("modules/{name}.ko"), 0o644, &content);
                }
            }
            archive.file(&format!("modules/{module}"), 0o644, order.as_bytes());
        }
    }

    /// modules.dep lists a module's needs so that each stands before what it needs itself.
    fn with_dependencies(&self, name: &str) -> Vec<String> {
        let found = self.dependencies.iter().find(|(path, _)| module_name(path) == name);
        let (path, needs) = found.unwrap_or_else(|| panic!("{} has no module {name}", self.release()));
        needs.iter().rev().chain([path]).cloned().collect()
    }
}

/// The one entry of a folder whose name begins so.
fn only(folder: &Path, prefix: &str) -> PathBuf {
    let listing =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("listing {}: {error}", folder.display()));
    let names = listing.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = names
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        .collect();
    assert_eq!(found.len(), 1, "{} should hold one {prefix}*, and holds {found:?}", folder.display());
    found.remove(0)
}

/// modules.dep (modules.dep(5)): `PATH: PATH PATH …`, relative to the file's own folder.
fn parse(text: &str) -> BTreeMap<String, Vec<String>> {
    let line = |line: &str| {
        let (path, needs) = line.split_once(':')?;
        Some((path.to_owned(), needs.split_whitespace().map(str::to_owned).collect()))
    };
    text.lines().filter_map(line).collect()
}

/// A module's name as it is spelt on a command line: the file's, up to the first dot.
fn module_name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file)
}

/// busybox' insmod takes no compressed module.
fn read(path: &Path) -> Vec<u8> {
    let decompressor = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(path).unwrap_or_else(|error| panic!("reading {}: {error}", path.display())),
    };
    let output = Command::new(decompressor).args(["--decompress", "--stdout"]).arg(path).output().unwrap();
    assert!(output.status.success(), "{decompressor} {}: {output:?}", path.display());
    output.stdout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_what_they_need_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("usr/lib/modules/1.2");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(folder.path().join("boot")).unwrap();
        fs::write(folder.path().join("boot/vmlinuz-1.2"), "").unwrap();
        fs::write(modules.join("modules.dep"), "k/a.ko: k/b-x.ko k/c.ko\nk/b-x.ko: k/c.ko\nk/c.ko:\n")
            .unwrap();
        fs::create_dir(modules.join("k")).unwrap();
        for name in ["a", "b-x", "c"] {
            fs::write(modules.join(format!("k/{name}.ko")), name).unwrap();
        }
        let kernel = Kernel::unpacked_in(folder.path());
        let names: Vec<String> =
            kernel.modules(&["a", "c", "b-x"]).into_iter().map(|(name, _)| name).collect();
        assert_eq!((kernel.release(), names), ("1.2", ["c", "b-x", "a"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn an_image_among_the_modules_needs_no_boot_folder() {
        let folder = tempfile::tempdir().unwrap();
        let modules = folder.path().join("usr/lib/modules/7.2");
        fs::create_dir_all(&modules).unwrap();
        for name in ["vmlinuz", "modules.dep"] {
            fs::write(modules.join(name), "").unwrap();
        }
        assert_eq!(Kernel::unpacked_in(folder.path()).image(), modules.join("vmlinuz"));
    }

    #[test]
    fn a_modules_name_has_no_folder_and_no_suffix() {
        for (path, name) in
            [("kernel/x/amdgpu.ko.xz", "amdgpu"), ("vgem.ko", "vgem"), ("a/drm-exec.ko.zst", "drm-exec")]
        {
            assert_eq!(module_name(path), name);
        }
    }
}
