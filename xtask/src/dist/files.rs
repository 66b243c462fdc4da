//! Files as data: what goes into a package or an archive.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

/// Files by their path beneath a top, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<String, File>);

impl Files {
    pub(super) fn put(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), mode: 0o644 });
    }

    pub(super) fn put_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { bytes: bytes.into(), mode: 0o755 });
    }

    /// Adds all of `files` to a folder; the empty name is the top.
    pub(super) fn put_all(&mut self, folder: &str, files: &[(String, Vec<u8>)]) {
        for (name, bytes) in files {
            let path = Path::new(folder).join(name);
            self.put(path.to_string_lossy(), bytes.clone());
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Writes them beneath a folder, with the folders that they need, all of which any user may enter.
    pub(super) fn lay_out(&self, top: &Path) -> Result<()> {
        make_folder(top)?;
        for (path, file) in self.iter() {
            let place = top.join(path);
            let mut folders: Vec<&Path> =
                place.ancestors().skip(1).take_while(|folder| *folder != top).collect();
            folders.reverse();
            folders.into_iter().try_for_each(make_folder)?;
            fs::write(&place, &file.bytes).with_context(|| format!("writing {}", place.display()))?;
            set_mode(&place, file.mode)?;
        }
        Ok(())
    }
}

/// Makes a folder of mode 0755, whatever the caller's umask.
fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    set_mode(folder, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting the mode of {}", path.display()))
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("reading {}", path.display()))
}

/// The files directly in a folder whose names end so, in order.
pub(super) fn in_folder(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.with_context(|| format!("listing {}", folder.display()))?;
    paths.retain(|path| path.is_file() && path.to_string_lossy().ends_with(ending));
    paths.sort();
    Ok(paths)
}

/// A path's last part.
pub(super) fn name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    Ok(name.with_context(|| format!("{} has no name that is text", path.display()))?.to_owned())
}

/// Compresses as `gzip -9n` does: without a name and a time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().operating_system(3).write(Vec::new(), Compression::best());
    writer.write_all(bytes).context("compressing")?;
    writer.finish().context("compressing")
}
