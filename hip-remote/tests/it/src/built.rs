//! What users get.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder with `bin` and `lib`: what `ROCWORKER_HIP_BUILT` names, or what `cargo xtask hip-remote --dev` makes.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(folder) = std::env::var_os("ROCWORKER_HIP_BUILT") {
            return folder.into();
        }
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let made =
            Command::new("cargo").args(["xtask", "hip-remote", "--dev"]).current_dir(top).output().unwrap();
        assert!(
            made.status.success(),
            "cargo xtask hip-remote --dev: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        PathBuf::from(String::from_utf8(made.stdout).unwrap().lines().last().unwrap())
    })
}
