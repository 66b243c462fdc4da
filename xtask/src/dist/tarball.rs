//! The tarball: programs, manual, completions, templates and documentation in one folder, to be put anywhere.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::GzBuilder;

use super::VERSION;
use super::deb::Compression;
use super::files::Files;
use super::parts::Parts;

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

/// The wrapper lies beside the program: from there apply takes it.
fn files(parts: &Parts) -> Files {
    let mut files = Files::default();
    files.put_program("bin/rocworker", parts.rocworker.clone());
    files.put_program("bin/runc-amd-wrapper", parts.wrapper.clone());
    files.put_all("share/man/man8", &parts.man);
    files.put("share/bash-completion/completions/rocworker", parts.bash.clone());
    files.put("share/zsh/site-functions/_rocworker", parts.zsh.clone());
    files.put("share/fish/vendor_completions.d/rocworker.fish", parts.fish.clone());
    files.put_all("templates", &parts.templates);
    files.put("config.yaml", parts.config.clone());
    for (name, bytes) in &parts.docs {
        files.put(name.clone(), bytes.clone());
    }
    files.put("CHANGELOG.md", parts.changelog.clone());
    files.put("LICENSE", parts.licence.clone());
    files.put("NOTICES", parts.notices.clone());
    files
}
