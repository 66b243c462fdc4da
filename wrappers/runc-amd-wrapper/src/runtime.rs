//! The runtime that the wrapper executes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, stat};

/// The folders that execvp uses where PATH is not set, and those of root's programs.
const PATH_WITHOUT_ONE: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Counts the wrappers that have run one another. A runtime that is a script which runs `runc` from
/// PATH, and with it this wrapper, would go round for ever without it.
pub const DEPTH: &str = "RUNC_AMD_WRAPPER_DEPTH";
const DEEPEST: u32 = 8;

/// The depth to hand on to the runtime, from what this process was handed.
pub fn next_depth(depth: Option<&OsStr>) -> Result<u32, String> {
    let depth = depth
        .and_then(OsStr::to_str)
        .and_then(|text| text.parse::<u32>().ok())
        .map_or(1, |n| n.saturating_add(1));
    if depth > DEEPEST {
        return Err(format!(
            "{DEEPEST} wrappers have run one another: what is run as runc runs this wrapper again; set \"runtime\" in \
             the policy to the real runc"
        ));
    }
    Ok(depth)
}

/// The policy's runtime where it names one, by an absolute path. `own`: this program.
pub fn named(path: &Path, own: Option<&Stat>) -> Result<PathBuf, String> {
    let problem = match (program(path), own) {
        (None, _) => "is no program that can be run: install it",
        (Some(program), Some(own)) if is_same_file(own, &program) => {
            "is this wrapper itself: name the real runc"
        }
        _ => return Ok(path.to_owned()),
    };
    Err(format!("the policy's runtime {} {problem}, or set \"runtime\" to null", path.display()))
}

/// The next `runc` on `path` behind this wrapper's own place there, so that several runtimes in a row
/// each find the following one; where the wrapper's place is the last, or is not on PATH, the first.
/// This wrapper under any name or link is never taken. Empty and relative folders are passed over.
pub fn on_path(path: Option<&OsStr>, own: Option<&Stat>) -> Result<PathBuf, String> {
    let path = path.unwrap_or(OsStr::new(PATH_WITHOUT_ONE));
    let mut before = None;
    let mut met_myself = false;
    for folder in path.as_bytes().split(|b| *b == b':') {
        if folder.first() != Some(&b'/') {
            continue;
        }
        let candidate = Path::new(OsStr::from_bytes(folder)).join("runc");
        let Some(program) = program(&candidate) else { continue };
        if own.is_some_and(|own| is_same_file(own, &program)) {
            met_myself = true;
        } else if met_myself {
            return Ok(candidate);
        } else if before.is_none() {
            before = Some(candidate);
        }
    }
    before.ok_or_else(|| format!("no runc but this wrapper itself is on the PATH {path:?}: install runc"))
}

/// The runc on `path`, in place of a runtime that the kernel could not execute (another machine's program, a
/// script whose interpreter is missing, a file system mounted noexec). `None` where that is the runtime
/// itself.
pub fn in_place_of(runtime: &Path, path: Option<&OsStr>, own: &Path) -> Option<PathBuf> {
    on_path(path, self::own(own).as_ref()).ok().filter(|next| next != runtime)
}

fn program(path: &Path) -> Option<Stat> {
    regular(path).filter(|found| found.st_mode & 0o111 != 0)
}

/// This program by the name under which it was executed. Where that file is gone, by `/proc/self/exe`, for
/// which the kernel has to build this process's folder in `/proc`.
pub fn own(named: &Path) -> Option<Stat> {
    regular(named).or_else(|| stat("/proc/self/exe").ok())
}

fn regular(path: &Path) -> Option<Stat> {
    stat(path).ok().filter(|found| FileType::from_raw_mode(found.st_mode).is_file())
}

fn is_same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Folders a, b, c, …; each holds what its letter means.
    fn laid_out(kinds: &[&str]) -> (tempfile::TempDir, PathBuf, OsString) {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("wrapper");
        std::fs::write(&own, "wrapper").unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut path = vec![OsString::new(), OsString::from("relative")];
        for (n, kind) in kinds.iter().enumerate() {
            let folder = place.path().join(n.to_string());
            std::fs::create_dir(&folder).unwrap();
            let runc = folder.join("runc");
            match *kind {
                "link to the wrapper" => symlink(&own, &runc).unwrap(),
                "hard link to the wrapper" => std::fs::hard_link(&own, &runc).unwrap(),
                "nothing" => {}
                "folder" => std::fs::create_dir(&runc).unwrap(),
                "runc" | "not executable" => {
                    std::fs::write(&runc, "runc").unwrap();
                    let mode = if *kind == "runc" { 0o755 } else { 0o644 };
                    std::fs::set_permissions(&runc, std::fs::Permissions::from_mode(mode)).unwrap();
                }
                other => panic!("{other}"),
            }
            path.push(folder.into_os_string());
        }
        (place, own, path.join(OsStr::new(":")))
    }

    #[test]
    fn the_runtime_is_the_next_runc_on_path_that_is_not_the_wrapper() {
        for (kinds, expected) in [
            (&["runc"][..], Some("0/runc")),
            (&["link to the wrapper", "runc"], Some("1/runc")),
            (&["runc", "link to the wrapper", "runc"], Some("2/runc")),
            (&["runc", "link to the wrapper"], Some("0/runc")),
            (&["link to the wrapper", "hard link to the wrapper", "nothing", "runc"], Some("3/runc")),
            (&["folder", "not executable", "runc", "runc"], Some("2/runc")),
            (&["link to the wrapper", "not executable"], None),
            (&[], None),
        ] {
            let (place, own, path) = laid_out(kinds);
            let expected = expected.map(|name| place.path().join(name));
            let found = on_path(Some(&path), stat(&own).ok().as_ref());
            let nothing = format!("no runc but this wrapper itself is on the PATH {path:?}: install runc");
            assert_eq!(found, expected.ok_or(nothing), "{kinds:?}");
        }
    }

    #[test]
    fn the_runtime_of_a_policy_must_be_a_program_and_not_the_wrapper() {
        let (place, own, _) = laid_out(&["runc", "link to the wrapper", "not executable"]);
        let (at, own) = (|name: &str| place.path().join(name), stat(&own).unwrap());
        assert_eq!(named(&at("0/runc"), Some(&own)), Ok(at("0/runc")));
        for (name, problem) in [
            ("1/runc", "is this wrapper itself: name the real runc, or"),
            ("2/runc", "is no program that can be run: install it, or"),
            ("3/runc", "is no program that can be run: install it, or"),
        ] {
            let sentence = named(&at(name), Some(&own)).unwrap_err();
            assert!(
                sentence.starts_with(&format!("the policy's runtime {} {problem}", at(name).display())),
                "{sentence}"
            );
        }
    }

    #[test]
    fn wrappers_that_run_one_another_come_to_an_end() {
        assert_eq!(next_depth(None), Ok(1));
        assert_eq!(next_depth(Some(OsStr::new("7"))), Ok(8));
        for deep in ["8", "4294967295"] {
            assert!(
                next_depth(Some(OsStr::new(deep)))
                    .unwrap_err()
                    .starts_with("8 wrappers have run one another")
            );
        }
        assert_eq!(next_depth(Some(OsStr::new("mud"))), Ok(1));
    }
}
