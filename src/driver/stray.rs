//! A driver that somebody has put where modprobe prefers it, and that neither dkms nor a package answers for.

use std::path::{Path, PathBuf};

use root::{Error, Kind, Root};

use super::dkms::{is_module, list};

/// Where depmod looks before the kernel's own folder (depmod.d(5): `search updates built-in`), and where vendors'
/// installers put modules besides. It looks through all that is in them: the kernel's own build installs a module of
/// several folders with these (`make M=… modules_install`).
const FOLDERS: [&str; 2] = ["updates", "extra"];

/// Folders in each other. A kernel's own are six deep.
const DEEPEST: usize = 12;

const INFO: &str = "/var/lib/dpkg/info";

/// Larger than the list of any package.
const LIMIT: usize = 64 << 20;

/// Files of amdgpu's for this kernel that are no package's. `is_of_dkms`: dkms has one installed for it, which stands in
/// `updates/dkms`.
///
/// # Errors
/// When a folder or dpkg's records cannot be read.
pub(super) fn find(root: &Root, kernel: &str, is_of_dkms: bool) -> Result<Vec<PathBuf>, Error> {
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

/// `but`: a folder that is passed over. Links to folders are not followed.
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
