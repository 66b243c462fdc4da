//! A driver that somebody has put where modprobe prefers it, and that neither dkms nor a package answers for.

use std::path::{Path, PathBuf};

use root::{Error, Root};

use super::dkms::{is_module, list};

/// Where depmod looks before the kernel's own folder (depmod.d(5): `search updates built-in`), and where vendors'
/// installers put modules besides.
const FOLDERS: [&str; 3] = ["updates", "updates/dkms", "extra"];

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
    for folder in FOLDERS {
        let folder = Path::new("/lib/modules").join(kernel).join(folder);
        if is_of_dkms && folder.ends_with("updates/dkms") {
            continue;
        }
        files.extend(list(root, &folder)?.into_iter().filter(is_module).map(|name| folder.join(name)));
    }
    // dpkg's lists are thousands of files: they are read only where there is something to look for.
    if !files.is_empty() {
        drop_owned(root, &mut files)?;
    }
    Ok(files)
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
