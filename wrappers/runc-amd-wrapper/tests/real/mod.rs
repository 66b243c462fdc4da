//! What a test needs that talks to real components, and what it says where they are missing.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

/// Proof that everything which a test asked for is here.
#[derive(Debug)]
pub(crate) struct Real(());

/// Asks for `"root"` or programs on PATH.
///
/// Without them the test is skipped, with the reason on stderr: `None`. With `ROCWORKER_FULL=1` nothing
/// may be skipped, so that what is missing fails the test. The name of a test that goes on is added to
/// the file that `ROCWORKER_RAN` names.
pub(crate) fn require(needs: &[&str]) -> Option<Real> {
    let name = test_name();
    let missing: Vec<String> = needs.iter().filter_map(|need| missing(need)).collect();
    if !missing.is_empty() {
        let reason = missing.join(", ");
        assert!(std::env::var_os("ROCWORKER_FULL").is_none_or(|v| v != "1"), "{name} must run: {reason}");
        let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
        return None;
    }
    if let Some(file) = std::env::var_os("ROCWORKER_RAN") {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        file.write_all(format!("{name}\n").as_bytes()).unwrap();
    }
    Some(Real(()))
}

fn missing(need: &str) -> Option<String> {
    if need == "root" {
        let euid = std::fs::metadata("/proc/self").unwrap().uid();
        return (euid != 0).then(|| "not root".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| {
        folder.join(need).metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    });
    (!found).then(|| format!("no {need} on PATH"))
}

/// libtest names a test's thread after it, but for a run with one thread, where nextest knows.
fn test_name() -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => std::env::var("NEXTEST_TEST_NAME").unwrap_or_else(|_| "a test".to_owned()),
    }
}
