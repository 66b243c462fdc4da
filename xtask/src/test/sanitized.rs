//! libaccelerator_amd.so as the address and the thread sanitizer need it, for a program in C that calls it from many threads.
//!
//! Beside each library lies the sanitizer's runtime, which the program links whole: a library has none of its own, and gcc's
//! older one lacks functions that Rust's compiler calls.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::fetch;
use crate::command::Command;
use crate::provider::copy;
use crate::repository;

const TARGET: &str = "x86_64-unknown-linux-gnu";
const PACKAGE: &str = "accelerator-amd";
const LIBRARY: &str = "libaccelerator_amd.so";

/// Builds both beneath this folder: `address/libaccelerator_amd.so` and `address/runtime.a`, and so for `thread`.
pub(super) fn into(folder: &Path) -> Result<()> {
    address(&folder.join("address"))?;
    thread(&folder.join("thread"))
}

/// Rust's own library stays as it is: it allocates by malloc, which the sanitizer replaces.
fn address(folder: &Path) -> Result<()> {
    build("address", Command::new(["cargo"]), &[], folder)?;
    runtime("asan", folder)
}

/// Rust's own library is built anew: where the sanitizer does not see it, it takes a Mutex for which two threads waited, a Once
/// and the last drop of an Arc for races.
fn thread(folder: &Path) -> Result<()> {
    let rustc = fetch::rust()?;
    let top = Command::new([&rustc]).arguments(["--print", "sysroot"]).read()?;
    let manifest = Path::new(top.trim()).join("lib/rustlib/src/rust/library/Cargo.toml");
    // cargo asks its registry for what the library needs, though its source brings it along.
    unstable(Command::new(["cargo", "fetch", "--locked", "--target", TARGET, "--manifest-path"]))
        .arguments([manifest])
        .environment("RUSTC", &rustc)
        .run()?;
    let cargo = Command::new(["cargo"]).environment("RUSTC", &rustc);
    build("thread", cargo, &["-Zbuild-std=std,panic_abort"], folder)?;
    runtime("tsan", folder)
}

fn build(sanitizer: &str, cargo: Command, options: &[&str], folder: &Path) -> Result<()> {
    let target = repository::target().join("sanitized").join(sanitizer);
    unstable(cargo.arguments(["rustc", "--locked", "--release", "--lib", "--crate-type", "cdylib"]))
        .arguments(["--package", PACKAGE, "--target", TARGET])
        .arguments(options)
        .arguments(["--target-dir".as_ref(), target.as_os_str()])
        .environment("RUSTFLAGS", format!("-Zsanitizer={sanitizer}"))
        // Its reports name lines.
        .environment("CARGO_PROFILE_RELEASE_STRIP", "false")
        .environment("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
        .run()?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    copy(&target.join(TARGET).join("release").join(LIBRARY), &folder.join(LIBRARY))
}

/// A stable compiler takes unstable options with this variable.
fn unstable(command: Command) -> Command {
    command.environment("RUSTC_BOOTSTRAP", "1")
}

/// Puts this toolchain's runtime beside the library: `librustc-stable_rt.asan.a` of a stable one.
fn runtime(name: &str, folder: &Path) -> Result<()> {
    let libraries = Command::new(["rustc", "--print", "target-libdir", "--target", TARGET]).read()?;
    let libraries = Path::new(libraries.trim());
    let end = format!("_rt.{name}.a");
    let entries = fs::read_dir(libraries).with_context(|| format!("listing {}", libraries.display()))?;
    let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let found = paths.find(|path| path.to_string_lossy().ends_with(&end));
    let found = found.with_context(|| format!("{} has no librustc…{end}", libraries.display()))?;
    copy(&found, &folder.join("runtime.a"))
}
