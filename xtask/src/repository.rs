use std::path::{Path, PathBuf};

/// The top of the repository, wherever xtask was started.
pub(crate) fn top() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Where cargo builds. `CARGO_TARGET_DIR` is obeyed, because cargo obeys it.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => std::path::absolute(&folder).unwrap_or_else(|_| folder.into()),
        None => top().join("target"),
    }
}
