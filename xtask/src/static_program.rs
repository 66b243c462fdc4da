//! The static programs: rocworker, which runs in a container that has nothing else (an image of a task), and the exporter.

use std::path::PathBuf;

use anyhow::Result;

use crate::command::Command;
use crate::{repository, wrapper_build};

/// The variable by which the tests learn where it is.
pub(crate) const VARIABLE: &str = "ROCWORKER_STATIC";

/// The same of the exporter.
pub(crate) const EXPORTER_VARIABLE: &str = "ROCWORKER_EXPORTER";

/// The packages, named as their programs.
const ROCWORKER: &str = "rocworker";
const EXPORTER: &str = "rocworker-exporter";

/// rocworker, without optimization, for tests.
pub(crate) fn build() -> Result<PathBuf> {
    build_as(ROCWORKER, &[], "debug")
}

/// rocworker, as it is handed out.
pub(crate) fn release() -> Result<PathBuf> {
    build_as(ROCWORKER, &["--release"], "release")
}

/// The exporter, without optimization, for tests.
pub(crate) fn build_exporter() -> Result<PathBuf> {
    build_as(EXPORTER, &[], "debug")
}

/// The exporter, as it is handed out.
pub(crate) fn release_exporter() -> Result<PathBuf> {
    build_as(EXPORTER, &["--release"], "release")
}

/// With musl, or with glibc where the musl target is not installed.
fn build_as(package: &str, profile: &[&str], folder: &str) -> Result<PathBuf> {
    let musl = wrapper_build::musl_target();
    let has_musl = wrapper_build::is_installed(&musl);
    let target = if has_musl { musl } else { format!("{}-unknown-linux-gnu", std::env::consts::ARCH) };
    let cargo = ["cargo", "build", "--locked", "--package", package, "--target", &target];
    let command = Command::new(cargo).arguments(profile);
    // ring's C needs nothing of a C library: the machine's own compiler makes it for musl too.
    let compiler = format!("CC_{}", target.replace('-', "_"));
    let command = if has_musl {
        command.environment(&compiler, "cc")
    } else {
        command.environment("RUSTFLAGS", "-C target-feature=+crt-static")
    };
    command.run()?;
    Ok(repository::target().join(target).join(folder).join(package))
}
