//! The programs as they ship: static, with musl, all of one build.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::command::Command;
use crate::refusal::Refusal;
use crate::repository;

/// The packages, named as their programs.
pub(crate) const PACKAGES: [&str; 3] = ["rocworker", "rocworker-exporter", "runc-amd-wrapper"];

/// The paths of the programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Programs {
    pub(crate) rocworker: PathBuf,
    pub(crate) exporter: PathBuf,
    pub(crate) wrapper: PathBuf,
}

/// The Rust target that they ship for, on this architecture.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// The target of what loads into programs of this machine, or is linked with its C libraries.
pub(crate) fn glibc_target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// Whether the standard library of a target is installed, however the toolchain was installed.
pub(crate) fn is_installed(target: &str) -> bool {
    Command::new(["rustc", "--print", "target-libdir", "--target", target])
        .read()
        .is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

/// # Errors
/// A [`Refusal`] where the target's standard library is not installed, which says `why` it is needed.
pub(crate) fn require(target: &str, why: &str) -> Result<()> {
    if is_installed(target) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "{why}, and Rust's library for that is not installed: run `rustup target add {target}`"
    )))
}

impl Programs {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        let [rocworker, exporter, wrapper] = PACKAGES.map(|name| folder.join(name));
        Self { rocworker, exporter, wrapper }
    }

    /// The programs that the build of the tests leaves, without optimization.
    pub(crate) fn of_tests() -> Self {
        Self::in_folder(&repository::target().join(target()).join("debug"))
    }

    /// The programs as they are handed out. One call of cargo builds each crate once.
    ///
    /// # Errors
    /// A [`Refusal`] where the target's standard library is not installed.
    pub(crate) fn built() -> Result<Self> {
        let target = target();
        require(&target, "the programs are static")?;
        let packages = PACKAGES.iter().flat_map(|name| ["--package", name]);
        let cargo = Command::new(["cargo", "build", "--locked", "--release", "--target", &target]);
        cargo.arguments(packages).run()?;
        Ok(Self::in_folder(&repository::target().join(target).join("release")))
    }
}

/// The wrapper with another C library than the one that it ships with.
pub(crate) fn wrapper_with_glibc() -> Result<PathBuf> {
    let glibc = glibc_target();
    Command::new(["cargo", "build", "--locked", "--package", "runc-amd-wrapper", "--target", &glibc])
        .environment("RUSTFLAGS", "-C target-feature=+crt-static")
        .run()?;
    Ok(repository::target().join(glibc).join("debug/runc-amd-wrapper"))
}

/// The other architecture that the wrapper ships for, where this machine can run its programs in QEMU.
pub(crate) const ARM: Option<&str> =
    if cfg!(target_arch = "x86_64") { Some("aarch64-unknown-linux-musl") } else { None };

/// Builds the wrapper for [`ARM`] with the linker that comes with Rust, and answers with a program of this machine's
/// that runs it in QEMU; `None` on a machine of another architecture than x86-64, where nothing is emulated.
pub(crate) fn wrapper_for_arm() -> Result<Option<PathBuf>> {
    let Some(target) = ARM else { return Ok(None) };
    Command::new(["cargo", "clippy", "--locked", "--package", "runc-amd-wrapper", "--package", "rocworker"])
        .arguments(["--target", target, "--", "-D", "warnings"])
        .run()?;
    Command::new(["cargo", "build", "--locked", "--package", "runc-amd-wrapper", "--target", target])
        .environment(&format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), "rust-lld")
        .run()?;
    let program = repository::target().join(target).join("debug/runc-amd-wrapper");
    let emulated = program.with_file_name("runc-amd-wrapper-in-qemu");
    // The kernel does not know programs of another architecture: what is executed has to be this machine's.
    let script = format!("#!/bin/sh\nexec qemu-aarch64-static '{}' \"$@\"\n", program.display());
    std::fs::write(&emulated, script).with_context(|| format!("writing {}", emulated.display()))?;
    std::fs::set_permissions(&emulated, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", emulated.display()))?;
    Ok(Some(emulated))
}
