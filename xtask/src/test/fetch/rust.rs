//! A compiler of Debian sid with its library's source. No registry has the source of this toolchain's own library, which cargo
//! needs to build one that the thread sanitizer sees.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::apt::{self, Needed};

const SUITE: &str = "sid";
/// Rust 1.97 (November 2026).
const PACKAGES: [&str; 2] = ["rustc", "rust-src"];
/// The compiler's name in its folder.
pub(super) const PROGRAM: &str = "rustc";
/// Starts sid's compiler with sid's C library. The linker that it calls is this machine's, so that what it builds runs here.
const START: &str = r#"#!/bin/sh
tree=${0%/*}/tree
exec "$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu" \
    "$tree/usr/bin/rustc" --sysroot "$tree/usr" "$@"
"#;

/// A text that names everything that is fetched.
pub(super) fn recipe() -> String {
    format!("{SUITE} {PACKAGES:?} {START}")
}

/// Unpacks 230 MB of packages, a gigabyte of files. Needs no root.
pub(super) fn fetch(place: &Path) -> Result<()> {
    apt::unpack(place, SUITE, &PACKAGES, Needed::Too)?;
    let program = place.join(PROGRAM);
    fs::write(&program, START).with_context(|| format!("writing {}", program.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("making {} a program", program.display()))
}
