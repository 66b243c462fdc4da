//! The Debian systems that a test can have a copy of, and whether they are here.

use std::path::Path;

use layout::Machine as Hardware;
use support::real;

use crate::headers::Headers;
use crate::machine::Machine;

/// The programs that set up a machine and make a repository for it.
const PROGRAMS: &[&str] =
    &["apt-get", "dpkg-deb", "gpg", "unshare", "nsenter", "pivot_root", "mount", "setpriv", "strace"];
/// Debian 13's root file system: set by `cargo xtask test`.
const TRIXIE: &str = "ROCWORKER_APT_TRIXIE";
/// Debian's packages of dkms and of a kernel's headers: set by `cargo xtask test`.
const HEADERS: &str = "ROCWORKER_APT_HEADERS";

/// A copy of the system that the test runs on, unless the calling test is to be skipped.
///
/// # Panics
/// Where something is missing in a full run.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn this() -> Option<Machine> {
    this_on(&Hardware::demo())
}

/// This system as [`this`] gives it, with this hardware.
///
/// # Panics
/// Where [`this`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn this_on(hardware: &Hardware) -> Option<Machine> {
    real::require_root(PROGRAMS).then(|| Machine::of(Path::new("/"), hardware))
}

/// A minimal Debian 13: apt 3.0, which checks signatures with sqv, dpkg and no compiler.
///
/// # Panics
/// Where [`this`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn trixie() -> Option<Machine> {
    trixie_on(&Hardware::demo())
}

/// Debian 13 as [`trixie`] gives it, with this hardware.
///
/// # Panics
/// Where [`this`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn trixie_on(hardware: &Hardware) -> Option<Machine> {
    let [tree] = real::require_made([TRIXIE], PROGRAMS)?;
    real::require_root(PROGRAMS).then(|| Machine::of(&tree, hardware))
}

/// A copy of the system that the test runs on, and what it takes to build a module there.
///
/// # Panics
/// Where [`this`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn with_headers() -> Option<(Machine, Headers)> {
    let [folder] = real::require_made([HEADERS], &["gcc", "make", "modinfo"])?;
    Some((this()?, Headers::in_folder(&folder)))
}

/// Debian 13 and, with `cargo xtask test --all`, the system that the test runs on as well, which apt takes seconds to read.
/// Each has its name for a failed assertion; none where the calling test is to be skipped.
///
/// # Panics
/// Where [`this`] panics.
#[track_caller]
pub fn each() -> Vec<(&'static str, Machine)> {
    let Some(trixie) = trixie() else { return Vec::new() };
    let this = real::is_all().then(this).flatten().map(|machine| ("this system", machine));
    this.into_iter().chain([("trixie", trixie)]).collect()
}

/// Debian 13 and the system that the test runs on, in every tier of the tests.
///
/// # Panics
/// Where [`this`] panics.
#[track_caller]
pub fn both() -> Vec<(&'static str, Machine)> {
    // The one that may not be here first: the other would be set up for nothing.
    let systems = trixie().and_then(|trixie| Some([("this system", this()?), ("trixie", trixie)]));
    systems.into_iter().flatten().collect()
}
