//! Tests of real components (lspci, runc, podman, …), named `real_*`.
//!
//! `cargo test` leaves out those whose component is missing and says so; `cargo xtask test` sets
//! `ROCWORKER_FULL=1`, and there nothing may be left out. Every test that did run appends its name
//! to the file that `ROCWORKER_RAN` names, so that a run in which a test vanished is noticed.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::panic::Location;
use std::path::{Path, PathBuf};

/// Whether the calling test can run: all of these programs are on PATH (or in the sbin folders,
/// which an ordinary user's PATH leaves out).
///
/// Prints `skipped: TEST: REASON` to stderr where it cannot.
///
/// # Panics
/// Where the test cannot run and `ROCWORKER_FULL` is 1.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|name| program(name).is_none());
    decide(missing.map(|name| format!("{name} is not installed")))
}

/// Whether the calling test can run as [`require`] decides, and as root (with the right to make device
/// nodes).
///
/// # Panics
/// Where [`require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require_root(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|name| program(name).is_none());
    let reason = missing.map(|name| format!("{name} is not installed"));
    let user = (!is_root()).then(|| "needs root".to_owned());
    decide(reason.or(user))
}

/// Whether the calling test can run as [`require_root`] decides, and `holds` is true; `otherwise` is the
/// reason if not.
///
/// # Panics
/// Where [`require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require_root_and(holds: bool, otherwise: &str) -> bool {
    if holds { require_root(&[]) } else { decide(Some(otherwise.to_owned())) }
}

/// The program that `cargo xtask test` has built and named in this variable, if the test can run as
/// [`require_root`] decides.
///
/// # Panics
/// Where [`require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require_root_and_built(variable: &str, programs: &[&str]) -> Option<PathBuf> {
    let built = env::var_os(variable).map(PathBuf::from).filter(|path| is_executable(path));
    if built.is_none() {
        decide(Some(format!("cargo xtask test builds what {variable} names")));
        return None;
    }
    built.filter(|_| require_root(programs))
}

/// The files or folders that `cargo xtask test` has made and named in these variables, if the test can run as
/// [`require`] decides.
///
/// # Panics
/// Where [`require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require_made<const N: usize>(variables: [&str; N], programs: &[&str]) -> Option<[PathBuf; N]> {
    let made = |variable: &str| env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    if let Some(missing) = variables.iter().find(|variable| made(variable).is_none()) {
        decide(Some(format!("cargo xtask test makes what {missing} names")));
        return None;
    }
    // Each was found above.
    require(programs).then(|| variables.map(|variable| made(variable).unwrap()))
}

/// Whether the calling test can run because `holds` is true; `otherwise` is the reason if not.
///
/// # Panics
/// Where [`require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require_that(holds: bool, otherwise: &str) -> bool {
    decide((!holds).then(|| otherwise.to_owned()))
}

/// Whether `cargo xtask test --all` runs, so that tests repeat their cases as often as certainty needs.
pub fn is_all() -> bool {
    env::var_os("ROCWORKER_ALL").is_some_and(|value| value == "1")
}

/// The path of a program, as a shell would find it, else in the sbin folders.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|stat| stat.is_file() && stat.permissions().mode() & 0o111 != 0)
}

/// Decides by the effective capabilities, not only by the uid: root in a container may lack mknod.
fn is_root() -> bool {
    const CAP_MKNOD: u32 = 27;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim();
    let capabilities = u64::from_str_radix(field("CapEff:"), 16).unwrap();
    let effective_uid = field("Uid:").split_whitespace().nth(1).unwrap();
    effective_uid == "0" && capabilities >> CAP_MKNOD & 1 == 1
}

/// Whether the calling test may make device nodes. The test needs no name of a real component.
///
/// # Panics
/// Where [`require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn may_make_nodes() -> bool {
    let is_root = is_root();
    if !is_root {
        skip("needs root");
    }
    is_root
}

#[track_caller]
fn decide(hindrance: Option<String>) -> bool {
    if let Some(reason) = hindrance {
        skip(&reason);
        return false;
    }
    if let Some(file) = env::var_os("ROCWORKER_RAN") {
        let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
        // A single write keeps lines of parallel tests apart.
        file.write_all(format!("{}\n", test_name()).as_bytes()).unwrap();
    }
    true
}

#[track_caller]
fn skip(reason: &str) {
    let test = test_name();
    assert!(
        env::var_os("ROCWORKER_FULL").is_none_or(|value| value != "1"),
        "{test} would be skipped, which a full run does not allow: {reason}"
    );
    // Past libtest's capture: what was left out must be seen without --nocapture.
    std::io::stderr().write_all(format!("skipped: {test}: {reason}\n").as_bytes()).unwrap();
}

/// libtest names a test's thread after the test, except where it runs it on the main thread
/// (one test at a time); nextest gives the name as an argument after `--exact`.
#[track_caller]
pub(crate) fn test_name() -> String {
    let thread = std::thread::current();
    if let Some(name) = thread.name().filter(|name| *name != "main") {
        return name.to_owned();
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--exact")
        && let Some(name) = arguments.iter().find(|argument| !argument.starts_with('-'))
    {
        return name.clone();
    }
    Location::caller().to_string()
}
