//! The tarball: programs, manual, completions, templates and documentation in one folder, to be put anywhere.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::GzBuilder;

use super::VERSION;
use super::deb::Compression;
use super::files::Files;
use super::parts::{Parts, Places};

pub(super) fn write(parts: &Parts, moment: u64, compression: Compression, out: &Path) -> Result<PathBuf> {
    let folder = format!("rocworker-{VERSION}-{}-linux", std::env::consts::ARCH);
    let path = out.join(format!("{folder}.tar.gz"));
    let level = match compression {
        Compression::Small => flate2::Compression::best(),
        Compression::Fast => flate2::Compression::fast(),
    };
    let zipped = GzBuilder::new().operating_system(3).write(Vec::new(), level);
    let mut archive = tar::Builder::new(zipped);
    for (name, file) in files(parts).iter() {
        let mut header = tar::Header::new_ustar();
        header.set_mode(file.mode);
        header.set_mtime(moment);
        header.set_size(file.bytes.len() as u64);
        header.set_uid(0);
        header.set_gid(0);
        archive
            .append_data(&mut header, format!("{folder}/{name}"), file.bytes.as_slice())
            .with_context(|| format!("adding {name} to {}", path.display()))?;
    }
    let mut zipped = archive.into_inner().with_context(|| format!("ending {}", path.display()))?;
    zipped.flush().context("compressing")?;
    let bytes = zipped.finish().context("compressing")?;
    std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The list of files that docs/install.md copies out of the tarball, so that exactly those can be removed
/// again: a path a line, beneath the folder to which they are copied.
const LIST: &str = "share/rocworker/files";

/// The wrapper lies beside the program: from there apply takes it.
fn files(parts: &Parts) -> Files {
    let mut files = parts.placed(&Places {
        program: "bin",
        wrapper: "bin",
        share: "share",
        zsh: "site-functions",
        samples: "",
        docs: "",
    });
    files.put_all("share/man/man8", &parts.man);
    files.put("CHANGELOG.md", parts.changelog.clone());
    files.put("LICENSE", parts.licence.clone());
    files.put("NOTICES", parts.notices.clone());
    let is_put = |path: &&str| path.starts_with("bin/") || path.starts_with("share/");
    let list: String = files
        .iter()
        .map(|(path, _)| path)
        .filter(is_put)
        .chain([LIST])
        .map(|path| format!("{path}\n"))
        .collect();
    files.put(LIST, list);
    files
}
