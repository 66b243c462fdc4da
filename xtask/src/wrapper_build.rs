//! The wrapper as it ships: static, in its own profile, for the machine that builds it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

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

/// The other architecture that the wrapper ships for, where this machine can run its programs in QEMU.
pub(crate) const ARM: Option<&str> =
    if cfg!(target_arch = "x86_64") { Some("aarch64-unknown-linux-musl") } else { None };

/// Builds the wrapper for [`ARM`] with the linker that comes with Rust, and answers with a program of this machine's
/// that runs it in QEMU; `None` on a machine of another architecture than x86-64, where nothing is emulated.
pub(crate) fn build_for_arm() -> Result<Option<PathBuf>> {
    let Some(target) = ARM else { return Ok(None) };
    if !is_installed(target) {
        bail!("the Rust target {target} is not installed: `rustup target add {target}`");
    }
    let linker = format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_"));
    Command::new(["cargo", "clippy", "--locked", "--package", "runc-amd-wrapper", "--package", "rocworker"])
        .arguments(["--target", target, "--", "-D", "warnings"])
        .run()?;
    let cargo = ["cargo", "build", "--locked", "--package", "runc-amd-wrapper", "--profile", "wrapper"];
    Command::new(cargo)
        .arguments(["--target", target])
        .environment(&linker, "rust-lld")
        .without("RUSTFLAGS")
        .run()?;
    let folder = repository::target().join(target).join("wrapper");
    let program = folder.join("runc-amd-wrapper");
    keep_small(&program, target)?;
    let emulated = folder.join("runc-amd-wrapper-in-qemu");
    // The kernel does not know programs of another architecture: what is executed has to be this machine's.
    let script = format!("#!/bin/sh\nexec qemu-aarch64-static '{}' \"$@\"\n", program.display());
    std::fs::write(&emulated, script).with_context(|| format!("writing {}", emulated.display()))?;
    std::fs::set_permissions(&emulated, std::fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} executable", emulated.display()))?;
    Ok(Some(emulated))
}

/// Notices what bloats the wrapper, of 1,107,736 bytes: 120 KB of it are std's threads and channels, by which it gives up on
/// a folder that does not answer. The limit is kept where the wrapper ships, with musl; an empty `fn main` of Rust's, linked
/// statically against Debian 12's glibc, has 1,091,256 bytes already.
fn keep_small(program: &Path, target: &str) -> Result<()> {
    const BUDGET: u64 = 1_200_000;
    let size = std::fs::metadata(program).with_context(|| format!("looking at {}", program.display()))?.len();
    match (size > BUDGET, target.ends_with("musl")) {
        (true, true) => bail!("{}: {size} bytes, over the budget of {BUDGET}", program.display()),
        (true, false) => println!("{}: {size} bytes, over the budget of {BUDGET}", program.display()),
        (false, _) => println!("{}: {size} bytes of at most {BUDGET}", program.display()),
    }
    Ok(())
}

fn build_for(target: &str, flags: Option<&str>) -> Result<PathBuf> {
    let mut command = Command::new(["cargo", "build", "--locked", "--package", "runc-amd-wrapper"])
        .arguments(["--profile", "wrapper", "--target", target])
        // What is compiled piece by piece is larger than what ships.
        .without("CARGO_INCREMENTAL");
    // The caller's own flags would replace those of .cargo/config.toml, by which the wrapper is fast and small.
    command = match flags {
        Some(flags) => command.environment("RUSTFLAGS", flags),
        None => command.without("RUSTFLAGS"),
    };
    command.run()?;
    let program = repository::target().join(target).join("wrapper/runc-amd-wrapper");
    if !program.is_file() {
        bail!("cargo built the wrapper, but {} is not there", program.display());
    }
    keep_small(&program, target)?;
    Ok(program)
}
