use std::path::{Path, PathBuf};

/// The top of the repository, wherever xtask was started.
pub(crate) fn top() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// cargo's folder for builds. `CARGO_TARGET_DIR` counts here because it counts for cargo.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => std::path::absolute(&folder).unwrap_or_else(|_| folder.into()),
        None => top().join("target"),
    }
}
