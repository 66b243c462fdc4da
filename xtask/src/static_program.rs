//! rocworker as a static program, which runs in a container that has nothing else: an image of a task.

use std::path::PathBuf;

use anyhow::Result;

use crate::command::Command;
use crate::{repository, wrapper_build};

/// The variable by which the tests learn where it is.
pub(crate) const VARIABLE: &str = "ROCWORKER_STATIC";

/// Without optimization, for tests.
pub(crate) fn build() -> Result<PathBuf> {
    build_as(&[], "debug")
}

/// As it is handed out.
pub(crate) fn release() -> Result<PathBuf> {
    build_as(&["--release"], "release")
}

/// With musl, or with glibc where the musl target is not installed.
fn build_as(profile: &[&str], folder: &str) -> Result<PathBuf> {
    let musl = wrapper_build::musl_target();
    let has_musl = wrapper_build::is_installed(&musl);
    let target = if has_musl { musl } else { format!("{}-unknown-linux-gnu", std::env::consts::ARCH) };
    let cargo = ["cargo", "build", "--locked", "--package", "rocworker", "--target", &target];
    let command = Command::new(cargo).arguments(profile);
    let command =
        if has_musl { command } else { command.environment("RUSTFLAGS", "-C target-feature=+crt-static") };
    command.run()?;
    Ok(repository::target().join(target).join(folder).join("rocworker"))
}
