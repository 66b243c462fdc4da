//! The wrapper as it ships: static, in its own profile, for the machine that builds it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::command::Command;
use crate::repository;

/// The Rust target that the wrapper ships for, on this architecture.
pub(crate) fn musl_target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Whether the standard library of a target is installed, by whatever way the toolchain came.
pub(crate) fn is_installed(target: &str) -> bool {
    Command::new(["rustc", "--print", "target-libdir", "--target", target])
        .read()
        .is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// Builds the wrapper and answers with its absolute path.
///
/// Without the musl target it is linked statically against glibc: the same program, with a slower start.
pub(crate) fn build() -> Result<PathBuf> {
    let musl = musl_target();
    if is_installed(&musl) {
        return build_for(&musl, None);
    }
    println!("the Rust target {musl} is not installed: the wrapper is linked statically against glibc");
    build_with_glibc()
}

/// The same against glibc, wherever the musl target is.
pub(crate) fn build_with_glibc() -> Result<PathBuf> {
    let glibc = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    build_for(&glibc, Some("-C target-feature=+crt-static"))
}

fn build_for(target: &str, flags: Option<&str>) -> Result<PathBuf> {
    let mut command = Command::new(["cargo", "build", "--locked", "--package", "runc-amd-wrapper"])
        .arguments(["--profile", "wrapper", "--target", target]);
    if let Some(flags) = flags {
        command = command.environment("RUSTFLAGS", flags);
    }
    command.run()?;
    let program = repository::target().join(target).join("wrapper/runc-amd-wrapper");
    if !program.is_file() {
        bail!("cargo built the wrapper, but {} is not there", program.display());
    }
    Ok(program)
}
