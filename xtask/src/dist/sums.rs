//! SHA256SUMS, as `sha256sum --check` reads it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

use super::files::{name, read};

pub(super) fn write(files: &[PathBuf], out: &Path) -> Result<PathBuf> {
    let line = |file: &PathBuf| Ok(format!("{}  {}\n", hex(&Sha256::digest(read(file)?)), name(file)?));
    let text: Result<String> = files.iter().map(line).collect();
    let path = out.join("SHA256SUMS");
    std::fs::write(&path, text?).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
