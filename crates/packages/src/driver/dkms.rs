//! What dkms knows of amdgpu, read from its tree as it lays it out itself, and builds of amdgpu that it does not know: no
//! child process.
//!
//! `/var/lib/dkms/amdgpu/VERSION/source` links to the source: registered ("added"). `VERSION/KERNEL/ARCH/module/amdgpu.ko`
//! is what was built of it, compressed or not. `kernel-KERNEL-ARCH` links to that of the builds that is installed for a
//! kernel (dkms 2.8 to 3.2: `is_module_added`, `is_module_built`, `_is_module_installed`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use root::{Error, Kind, Root, if_there};

const TREE: &str = "/var/lib/dkms/amdgpu";

/// amdgpu's versions in dkms; empty where there is no dkms, or no amdgpu in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dkms {
    pub versions: Vec<Version>,
}

/// A version of amdgpu's source, as dkms has it registered: without the release of AMD's package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub name: String,
    /// Whether what `source` links to has a dkms.conf: without it dkms builds and installs nothing.
    pub has_source: bool,
    pub builds: Vec<Build>,
}

/// A module that was built for a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The architecture, as `uname -m` prints it.
    pub arch: String,
    /// The module's file in dkms' tree.
    pub file: PathBuf,
    pub is_installed: bool,
}

/// How far dkms has come with amdgpu for one kernel, in dkms' words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State<'a> {
    /// dkms knows no amdgpu.
    Unknown,
    /// The version's source is gone, and the version is not installed for the running kernel.
    SourceGone(&'a Version),
    /// dkms has a source, and has built nothing from it for this kernel.
    Added(&'a Version),
    /// Built, and not where modprobe looks.
    Built(&'a Version, &'a Build),
    Installed(&'a Version, &'a Build),
}

impl Dkms {
    /// # Errors
    /// When the tree is there and cannot be read.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let mut versions = Vec::new();
        for name in list(root, Path::new(TREE))? {
            let place = Path::new(TREE).join(&name);
            // The links `kernel-…` are no versions, nor is what dkms keeps of a kernel's own module.
            if root.lstat(&place)?.kind != Kind::Directory || name == "original_module" {
                continue;
            }
            let builds = builds(root, &name, &place)?;
            if !builds.is_empty() || root.is_there(place.join("source")) {
                let has_source = has_source(root, &place);
                versions.push(Version { name: name.to_string_lossy().into_owned(), has_source, builds });
            }
        }
        Ok(Self { versions })
    }

    /// The furthest of the versions: at most one is installed for a kernel.
    #[must_use]
    pub fn state(&self, kernel: &str) -> State<'_> {
        let all = self.versions.iter().flat_map(|it| it.builds.iter().map(move |build| (it, build)));
        // The last of equally advanced versions.
        match all.filter(|(_, build)| build.kernel == kernel).max_by_key(|(_, build)| build.is_installed) {
            Some((version, build)) if build.is_installed => State::Installed(version, build),
            Some((version, build)) if version.has_source => State::Built(version, build),
            _ => match self.versions.iter().rfind(|version| version.has_source) {
                Some(version) => State::Added(version),
                None => self.versions.last().map_or(State::Unknown, State::SourceGone),
            },
        }
    }
}

/// Whether there is a source that dkms takes for one. What cannot be read may be one, and so may that of a report, in
/// which the folder is missing that sources are in.
fn has_source(root: &Root, place: &Path) -> bool {
    let source = place.join("source");
    match root.stat(source.join("dkms.conf")) {
        Err(Error::Io { errno: Errno::ENOENT | Errno::ENOTDIR, .. }) => {
            let is_hidden = |target: PathBuf| {
                let target = place.join(target);
                target.parent().is_some_and(|folder| !root.exists(folder))
            };
            root.read_link(&source).is_ok_and(is_hidden)
        }
        _ => true,
    }
}

fn builds(root: &Root, version: &OsString, place: &Path) -> Result<Vec<Build>, Error> {
    let mut builds = Vec::new();
    for kernel in list(root, place)? {
        // Beside the kernels are `source`, a link, and while it builds, `build`.
        if root.lstat(place.join(&kernel))?.kind != Kind::Directory || kernel == "build" {
            continue;
        }
        for arch in list(root, &place.join(&kernel))? {
            let folder = place.join(&kernel).join(&arch).join("module");
            let Some(module) = list(root, &folder)?.into_iter().find(is_module) else {
                continue;
            };
            let (kernel, arch) = (kernel.to_string_lossy(), arch.to_string_lossy());
            let build = Path::new(version).join(&*kernel).join(&*arch);
            let installed =
                if_there(root.read_link(Path::new(TREE).join(format!("kernel-{kernel}-{arch}"))))?;
            let is_installed =
                installed.is_some_and(|target| target == build || target == Path::new(TREE).join(&build));
            let (kernel, arch) = (kernel.into_owned(), arch.into_owned());
            builds.push(Build { kernel, arch, file: folder.join(module), is_installed });
        }
    }
    Ok(builds)
}

/// `amdgpu.ko`, `amdgpu.ko.xz`, `amdgpu.ko.zst`, `amdgpu.ko.gz`.
fn is_module(name: &OsString) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix("amdgpu.ko"));
    rest.is_some_and(|rest| matches!(rest, "" | ".xz" | ".zst" | ".gz"))
}

/// The names in a folder, in order; none where the path is absent or no folder.
pub(super) fn list(root: &Root, folder: &Path) -> Result<Vec<OsString>, Error> {
    match if_there(root.stat(folder))? {
        Some(meta) if meta.kind == Kind::Directory => root.list(folder),
        _ => Ok(Vec::new()),
    }
}

/// Folders in which depmod looks before the kernel's own (depmod.d(5): `search updates built-in`), and in which
/// vendors' installers put modules besides. depmod looks through all that is in them: the kernel's own build installs a
/// module of several folders with these (`make M=… modules_install`).
const FOLDERS: [&str; 2] = ["updates", "extra"];

/// Folders in each other. A kernel's own are six deep.
const DEEPEST: usize = 12;

const INFO: &str = "/var/lib/dpkg/info";

/// Larger than the list of any package.
const LIMIT: usize = 64 << 20;

/// Files of amdgpu's for this kernel that modprobe prefers, and that neither dkms nor a package answers for. `is_of_dkms`:
/// dkms has installed one for it in `updates/dkms`.
///
/// # Errors
/// When a folder or dpkg's records cannot be read.
pub(super) fn strays(root: &Root, kernel: &str, is_of_dkms: bool) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let modules = Path::new("/lib/modules").join(kernel);
    let of_dkms = is_of_dkms.then(|| modules.join("updates/dkms"));
    for folder in FOLDERS {
        look_through(root, &modules.join(folder), of_dkms.as_deref(), DEEPEST, &mut files)?;
    }
    // dpkg's lists are thousands of files: they are read only where there is something to look for.
    if !files.is_empty() {
        drop_owned(root, &mut files)?;
    }
    Ok(files)
}

/// Collects amdgpu's files. `but`: a folder to skip. Links to folders are not followed.
fn look_through(
    root: &Root,
    folder: &Path,
    but: Option<&Path>,
    deepest: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    for name in list(root, folder)? {
        let place = folder.join(&name);
        if is_module(&name) {
            files.push(place);
        } else if but != Some(&place) && deepest > 0 && root.lstat(&place)?.kind == Kind::Directory {
            look_through(root, &place, but, deepest - 1, files)?;
        }
    }
    Ok(())
}

fn drop_owned(root: &Root, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for name in list(root, Path::new(INFO))? {
        if Path::new(&name).extension() != Some("list".as_ref()) {
            continue;
        }
        let text = root.read_text(Path::new(INFO).join(&name), LIMIT)?;
        // A package may name it in /lib or, where both are one folder, in /usr/lib.
        let is_listed = |file: &Path| {
            let file = file.to_string_lossy();
            text.lines().any(|line| line == file || line.strip_prefix("/usr") == Some(&file))
        };
        files.retain(|file| !is_listed(file));
    }
    Ok(())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out its files"
)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_source_is_gone_where_dkms_finds_no_configuration_of_it() {
        let (source, config) = ("/usr/src/amdgpu-1", "usr/src/amdgpu-1/dkms.conf");
        for (target, file, has_source) in [
            (Some(source), config, true),
            (Some("../../../../../usr/src/amdgpu-1"), config, true),
            (Some(source), "usr/src/amdgpu-1/Makefile", false),
            (Some(source), "usr/src/amdgpu-1", false),
            (Some(source), "usr/src/other/dkms.conf", false),
            // A report has no sources.
            (Some(source), "etc/group", true),
            (None, config, false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let put = |path: &str| {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            };
            put("var/lib/dkms/amdgpu/1/6.1/x86_64/module/amdgpu.ko");
            put(file);
            if let Some(target) = target {
                symlink(target, dir.path().join("var/lib/dkms/amdgpu/1/source")).unwrap();
            }
            let dkms = Dkms::read(&Root::open(dir.path()).unwrap()).unwrap();
            let found: Vec<bool> = dkms.versions.iter().map(|version| version.has_source).collect();
            assert_eq!(found, [has_source], "{target:?}, {file}");
        }
    }
}
