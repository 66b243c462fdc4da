//! Finds the path of this program that units can name: it must stay.

use std::path::{Path, PathBuf};

use root::Root;

/// The program's path in the Debian package.
pub const PACKAGED: &str = "/usr/bin/rocworker";
/// The path at which an administrator puts the program.
pub const LOCAL: &str = "/usr/local/bin/rocworker";

/// The name of the exporter's program, which is beside rocworker.
pub const EXPORTER: &str = "rocworker-exporter";

/// The start of the name of a copy that `rocworker --host` keeps (crates/fleet/src/program.sh), in front of 64 digits. A copy of
/// another version removes it.
const COPY: &str = "rocworker-";

/// Folders in which a unit finds no program. The system empties the first five at a start (file-hierarchy(7)); the
/// daemon's unit hides the next, and /run/user, by `ProtectHome=yes` (systemd.exec(5)); those beneath /var are ostree's.
/// Juju replaces a charm's folder at each upgrade.
const NOT_FOR_UNITS: [&str; 10] = [
    "/tmp",
    "/var/tmp",
    "/run",
    "/dev",
    "/proc",
    "/home",
    "/root",
    "/var/home",
    "/var/roothome",
    "/var/lib/juju",
];

/// The path beneath `root` of the program that units run: where it is installed, else where the one that runs is
/// (`running`; only on the machine itself). Root runs it at each start, so only root may be able to replace it.
///
/// # Errors
/// Why there is none, and the command that installs one.
pub fn find(root: &Root, running: Option<&Path>) -> Result<PathBuf, String> {
    let mut why = "rocworker is not installed".to_owned();
    let is_copy = |path: &&Path| {
        let digest = path.file_name().and_then(|name| name.to_str()?.strip_prefix(COPY));
        digest.is_some_and(|digest| digest.len() == 64)
    };
    if running.as_ref().is_some_and(is_copy) && ![PACKAGED, LOCAL].iter().any(|path| root.is_there(path)) {
        return Err(format!("{why}: install its package"));
    }
    let on_host = running.filter(|_| root.is_host());
    let installed = [PACKAGED, LOCAL].into_iter().map(Path::new).filter(|path| root.is_there(path));
    for path in installed.chain(on_host) {
        match stays(root, path) {
            Ok(()) => return Ok(path.to_owned()),
            Err(problem) => why = problem,
        }
    }
    let source = running.unwrap_or(Path::new("rocworker")).display();
    // Apply copies the wrapper from beside the program that runs it, and a unit runs the exporter.
    let beside = |name| on_host.map(|running| running.with_file_name(name)).filter(|path| root.exists(path));
    let beside = ["runc-amd-wrapper", EXPORTER].into_iter().filter_map(beside);
    let beside: String = beside.map(|path| format!(" {}", path.display())).collect();
    let folder = root.shown("/usr/local/bin");
    Err(format!("{why}: run `install -D -m 755 -t {} {source}{beside}`", folder.display()))
}

/// Finds the exporter, which is beside the program in a package and an archive.
///
/// # Errors
/// A sentence that says what to run, as with [`find`].
pub fn exporter(root: &Root, running: Option<&Path>) -> Result<PathBuf, String> {
    let mut why = format!("{EXPORTER} is not installed");
    let installed = [PACKAGED, LOCAL].map(Path::new);
    let on_host = running.filter(|_| root.is_host());
    let places = installed.into_iter().chain(on_host).map(|program| program.with_file_name(EXPORTER));
    let mut source = PathBuf::from(EXPORTER);
    for path in places.filter(|path| root.is_there(path)) {
        match stays(root, &path) {
            Ok(()) => return Ok(path),
            Err(problem) => why = problem,
        }
        source = path;
    }
    let folder = root.shown("/usr/local/bin");
    Err(format!("{why}: run `install -D -m 755 -t {} {}`", folder.display(), source.display()))
}

fn stays(root: &Root, path: &Path) -> Result<(), String> {
    let behind_links = root.without_links(path).unwrap_or_else(|| path.to_owned());
    let is_hidden = |folder: &&&str| path.starts_with(folder) || behind_links.starts_with(folder);
    if let Some(folder) = NOT_FOR_UNITS.iter().find(is_hidden) {
        return Err(format!("no unit can run {} from {folder}", path.display()));
    }
    // What a unit's line takes unquoted: no blank, no quote, no specifier.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(&byte);
    if !path.to_str().is_some_and(|path| path.bytes().all(is_plain)) {
        return Err(format!("{:?} is no path that a unit takes", path.display().to_string()));
    }
    let meta = root.lstat(path).map_err(|error| error.to_string())?;
    root.check_owner(path, &meta).map_err(|error| error.to_string())?;
    let mut folders = path.ancestors().skip(1);
    folders.try_for_each(|folder| root.check_folder_owner(folder)).map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn laid(programs: &[&str]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for program in programs {
            let path = dir.path().join(program);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn the_packages_comes_first_then_the_administrators() {
        let both = ["usr/local/bin/rocworker", "usr/bin/rocworker"];
        for (programs, found) in [(&both[..], "/usr/bin/rocworker"), (&both[..1], "/usr/local/bin/rocworker")]
        {
            let (_dir, root) = laid(programs);
            assert_eq!(find(&root, None).unwrap(), Path::new(found));
        }
    }

    #[test]
    fn beneath_another_root_the_program_that_runs_is_not_there() {
        let (dir, root) = laid(&[]);
        assert_eq!(
            find(&root, Some(Path::new("/usr/sbin/nologin"))).unwrap_err(),
            format!(
                "rocworker is not installed: run `install -D -m 755 -t {}/usr/local/bin /usr/sbin/nologin`",
                dir.path().display()
            )
        );
    }

    #[test]
    fn a_path_that_goes_that_units_cannot_see_that_others_can_write_to_or_that_no_unit_takes_is_refused() {
        let hidden = ["tmp/rocworker", "root/src/rocworker", "home/ann/rocworker", "run/user/0/rocworker"];
        let (_dir, root) = laid(&[&hidden[..], &["opt/my programs/rocworker", "opt/rocworker"]].concat());
        for (path, problem) in [
            ("/tmp/rocworker", "no unit can run /tmp/rocworker from /tmp"),
            ("/root/src/rocworker", "no unit can run /root/src/rocworker from /root"),
            ("/home/ann/rocworker", "no unit can run /home/ann/rocworker from /home"),
            ("/run/user/0/rocworker", "no unit can run /run/user/0/rocworker from /run"),
            ("/opt/my programs/rocworker", "\"/opt/my programs/rocworker\" is no path that a unit takes"),
        ] {
            assert_eq!(stays(&root, Path::new(path)).unwrap_err(), problem);
        }
        assert_eq!(stays(&root, Path::new("/opt/rocworker")), Ok(()));
        std::os::unix::fs::symlink("/home/ann", root.shown("/usr")).unwrap();
        let by_a_link = stays(&root, Path::new("/usr/rocworker"));
        assert_eq!(by_a_link.unwrap_err(), "no unit can run /usr/rocworker from /home");

        let (dir, root) = laid(&["usr/bin/rocworker"]);
        let folder = dir.path().join("usr/bin");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let why = find(&root, None).unwrap_err();
        assert!(why.contains(&folder.display().to_string()) && why.contains("install -D -m 755 -t"), "{why}");
    }
}
