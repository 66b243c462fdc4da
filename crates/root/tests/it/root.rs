//! Tests the promises of a Root on real directories.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use root::{Amount, Attributes, Failure, Kept, Kind, New, Reader, Root, Written};

const MODE: Attributes = Attributes { mode: 0o644, owner: None };

fn fixture() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("etc")).unwrap();
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}

#[test]
fn each_link_of_a_folder_comes_with_its_target_as_it_is_written() {
    let (dir, root) = fixture();
    let folder = dir.path().join("fd");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    let long = "x".repeat(300);
    let links: Vec<(String, String)> = (0..300).map(|n| (n.to_string(), format!("/dev/{n}"))).collect();
    for (name, target) in links.iter().chain([&("long".to_owned(), long.clone())]) {
        symlink(target, folder.join(name)).unwrap();
    }
    let mut found = Vec::new();
    let note = |name: &std::ffi::OsStr, target: &[u8]| {
        found.push((name.to_str().unwrap().to_owned(), String::from_utf8(target.to_vec()).unwrap()));
    };
    root.each_link("/fd", note).unwrap();
    found.sort();
    let mut expected = links;
    expected.push(("long".to_owned(), long[..256].to_owned()));
    expected.sort();
    assert_eq!(found, expected);
    assert!(root.each_link("/fd/file", |_, _| {}).is_err());
    assert!(root.each_link("/gone", |_, _| {}).unwrap_err().is_not_found());
}

#[test]
fn links_are_resolved_inside_also_those_that_point_at_the_machine_outside() {
    let (dir, root) = fixture();
    fs::write(dir.path().join("etc/real"), "inside").unwrap();
    symlink("/etc/real", dir.path().join("absolute")).unwrap();
    symlink("../../../../../etc/real", dir.path().join("etc/climbing")).unwrap();
    symlink("/etc/passwd", dir.path().join("outside")).unwrap();
    assert_eq!(root.read_text("/absolute", 100).unwrap(), "inside");
    assert_eq!(root.read_text("/etc/climbing", 100).unwrap(), "inside");
    assert!(root.read("/outside", 1 << 20).unwrap_err().is_not_found());
    assert_eq!(root.read_link("/outside").unwrap(), Path::new("/etc/passwd"));
}

#[test]
fn a_file_larger_than_its_limit_and_a_fifo_do_not_hold_the_reader() {
    let (dir, root) = fixture();
    fs::write(dir.path().join("big"), vec![b'x'; 1 << 20]).unwrap();
    let error = root.read("/big", 4096).unwrap_err().to_string();
    assert!(error.contains("/big is larger than 4096 bytes"), "{error}");
    assert_eq!(root.read("/big", 1 << 20).unwrap().len(), 1 << 20);
    nix::unistd::mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    assert!(root.read("/fifo", 4096).unwrap().is_empty());
    assert!(root.read_trusted("/fifo", 4096).unwrap_err().to_string().contains("not a regular file"));
}

#[test]
fn only_a_file_that_nobody_else_can_write_is_believed() {
    let (dir, root) = fixture();
    let path = dir.path().join("etc/policy");
    fs::write(&path, "{}").unwrap();
    for (mode, believed) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(root.read_trusted("/etc/policy", 100).is_ok(), believed, "mode {mode:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    symlink("policy", dir.path().join("etc/link")).unwrap();
    let error = root.read_trusted("/etc/link", 100).unwrap_err().to_string();
    assert!(error.contains("a symbolic link, not a regular file"), "{error}");
}

#[test]
fn recorded_nodes_stand_in_a_capture_and_a_wrong_record_is_refused_by_name() {
    let (dir, _) = fixture();
    let record = |text: &str| {
        fs::write(dir.path().join("capture.json"), text).unwrap();
        Root::open(dir.path())
    };
    let root = record(
        r#"{"schema_version":1,"taken_on":"x","nodes":[{"path":"/dev/dri/renderD128","type":"c","major":226,"minor":128,"mode":"0660","uid":0,"gid":992}]}"#,
    )
    .unwrap();
    let meta = root.stat("/dev/dri/renderD128").unwrap();
    assert_eq!(meta.kind, Kind::Character { major: 226, minor: 128 });
    assert_eq!((meta.mode, meta.gid), (0o660, 992));
    assert_eq!(root.list("/dev/dri").unwrap(), ["renderD128"]);
    for (text, part) in [
        ("{", "not a capture's record"),
        (r#"{"schema_version":2,"nodes":[]}"#, "schema_version 2"),
        (
            r#"{"schema_version":1,"nodes":[{"path":"/etc/x","type":"c","major":1,"minor":1,"mode":"0660","uid":0,"gid":0}]}"#,
            "outside /dev",
        ),
        (
            r#"{"schema_version":1,"nodes":[{"path":"/dev/x","type":"c","major":1,"minor":1,"mode":"rw","uid":0,"gid":0}]}"#,
            "not octal",
        ),
    ] {
        let error = record(text).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("capture.json"), "{error}");
    }
}

#[test]
fn a_write_is_whole_and_a_second_one_touches_nothing() {
    let (dir, root) = fixture();
    let path = dir.path().join("etc/cdi/amd.json");
    assert_eq!(root.write("/etc/cdi/amd.json", b"one", MODE).unwrap(), Written::Changed);
    let first = fs::metadata(&path).unwrap();
    assert_eq!(root.write("/etc/cdi/amd.json", b"one", MODE).unwrap(), Written::Unchanged);
    let second = fs::metadata(&path).unwrap();
    assert_eq!((first.ino(), first.ctime_nsec()), (second.ino(), second.ctime_nsec()));
    assert_eq!(root.write("/etc/cdi/amd.json", b"two", MODE).unwrap(), Written::Changed);
    assert_eq!(fs::read(&path).unwrap(), b"two");
    let only = Attributes { mode: 0o600, owner: None };
    assert_eq!(root.write("/etc/cdi/amd.json", b"two", only).unwrap(), Written::Changed);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(root.list("/etc/cdi").unwrap(), ["amd.json"], "no temporary file stays");
    // What a killed run left: no process has the highest pid that there is.
    fs::write(dir.path().join("etc/cdi/.rocworker-amd.json.4194304"), "half").unwrap();
    fs::write(dir.path().join("etc/cdi/.rocworker-other.json.4194304"), "half").unwrap();
    assert_eq!(root.write("/etc/cdi/amd.json", b"three", only).unwrap(), Written::Changed);
    assert_eq!(root.list("/etc/cdi").unwrap(), [".rocworker-other.json.4194304", "amd.json"]);
    assert_eq!(root.write("/opt/a/b/amd.json", b"x", MODE).unwrap(), Written::Changed);
    assert_eq!(fs::read(dir.path().join("opt/a/b/amd.json")).unwrap(), b"x");
}

#[test]
fn a_write_goes_through_no_link_and_over_no_folder() {
    let (dir, root) = fixture();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), dir.path().join("etc/cdi")).unwrap();
    symlink("elsewhere", dir.path().join("etc/file")).unwrap();
    fs::create_dir(dir.path().join("etc/folder")).unwrap();
    fs::write(dir.path().join("etc/plain"), "").unwrap();
    for (path, part) in [
        ("/etc/cdi/amd.json", "symbolic link"),
        ("/etc/file", "a symbolic link, not a regular file"),
        ("/etc/folder", "a folder, not a regular file"),
        ("/etc/plain/amd.json", "not a folder"),
    ] {
        let error = root.write(path, b"x", MODE).unwrap_err().to_string();
        assert!(error.contains(part), "{path}: {error}");
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// ostree's `/usr/local` is root's link to `../var/usrlocal` (ostree(1), "Writing OS content").
#[test]
fn a_write_goes_through_a_link_that_root_alone_could_have_put_there() {
    type Lay = fn(&Path);
    let table: [(&str, Lay, bool); 10] = [
        ("a relative link", |dir| symlink("../var/usrlocal", dir.join("usr/local")).unwrap(), true),
        ("an absolute link", |dir| symlink("/var/usrlocal", dir.join("usr/local")).unwrap(), true),
        (
            "a link behind a link",
            |dir| {
                symlink("var/usrlocal", dir.join("second")).unwrap();
                symlink("../second/", dir.join("usr/local")).unwrap();
            },
            true,
        ),
        (
            "a link that leads out",
            |dir| symlink("../../../../var/usrlocal", dir.join("usr/local")).unwrap(),
            true,
        ),
        ("a link to nothing", |dir| symlink("../var/gone", dir.join("usr/local")).unwrap(), false),
        ("a link to itself", |dir| symlink("local", dir.join("usr/local")).unwrap(), false),
        (
            "a link to a file",
            |dir| {
                fs::write(dir.join("var/file"), "").unwrap();
                symlink("../var/file", dir.join("usr/local")).unwrap();
            },
            false,
        ),
        (
            "a folder where others may put links",
            |dir| {
                symlink("../var/usrlocal", dir.join("usr/local")).unwrap();
                open_to_others(&dir.join("usr"));
            },
            false,
        ),
        (
            "a folder on the link's way that others may rename",
            |dir| {
                symlink("../var/usrlocal", dir.join("usr/local")).unwrap();
                open_to_others(&dir.join("var"));
            },
            false,
        ),
        (
            "a folder that others may write",
            |dir| {
                symlink("../var/usrlocal", dir.join("usr/local")).unwrap();
                open_to_others(&dir.join("var/usrlocal"));
            },
            false,
        ),
    ];
    for (what, lay, is_taken) in table {
        let (dir, root) = fixture();
        fs::create_dir_all(dir.path().join("usr")).unwrap();
        fs::create_dir_all(dir.path().join("var/usrlocal")).unwrap();
        lay(dir.path());
        let path = "/usr/local/lib/rocworker/wrapper";
        let written = root.check_way(path).and_then(|()| root.write(path, b"bytes", MODE));
        let there = fs::read(dir.path().join("var/usrlocal/lib/rocworker/wrapper")).ok();
        assert_eq!(there.as_deref(), is_taken.then_some(&b"bytes"[..]), "{what}: {written:?}");
        if is_taken {
            assert_eq!(root.write(path, b"bytes", MODE).unwrap(), Written::Unchanged, "{what}");
            assert_eq!(root.missing_folders(path), Vec::<PathBuf>::new(), "{what}");
            root.remove(path).unwrap();
            assert!(root.remove_empty_folder("/usr/local/lib/rocworker").unwrap(), "{what}");
        } else {
            assert!(written.is_err(), "{what}");
        }
    }
}

fn open_to_others(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o775)).unwrap();
}

#[test]
fn renames_elsewhere_on_the_system_make_no_file_disappear() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let (dir, root) = fixture();
    fs::create_dir_all(dir.path().join("a/b")).unwrap();
    fs::write(dir.path().join("file"), "x").unwrap();
    // The walk of ".." is what the kernel gives up on when a rename falls into it.
    symlink("../../file", dir.path().join("a/b/link")).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (one, two) = (other.path().join("one"), other.path().join("two"));
    fs::create_dir(&one).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&one, &two).unwrap();
                fs::rename(&two, &one).unwrap();
            }
        });
        let failed = (0..20_000).find_map(|_| root.read("/a/b/link", 10).err());
        done.store(true, Ordering::Relaxed);
        assert!(failed.is_none(), "{failed:?}");
    });
}

#[test]
fn a_file_takes_the_place_of_a_link_and_leaves_alone_what_that_leads_to() {
    let (dir, root) = fixture();
    fs::write(dir.path().join("etc/target"), "target").unwrap();
    symlink("target", dir.path().join("etc/it")).unwrap();
    let refused = root.write("/etc/it", b"bytes", MODE).unwrap_err().to_string();
    assert!(
        refused.ends_with("etc/it is a symbolic link, not a regular file: move it out of the way"),
        "{refused}"
    );
    let new = New::File { bytes: b"bytes", how: MODE };
    root.replace("/etc/it", new, &|_| true).unwrap();
    assert_eq!(root.lstat("/etc/it").unwrap().kind, Kind::Regular);
    assert_eq!(root.read_text("/etc/it", 100).unwrap(), "bytes");
    assert_eq!(root.read_text("/etc/target", 100).unwrap(), "target");
    // A folder is exchanged back like anything that is not expected.
    fs::create_dir(dir.path().join("etc/folder")).unwrap();
    fs::write(dir.path().join("etc/folder/in"), "").unwrap();
    let is_file = |path: &Path| root.lstat(path).unwrap().kind == Kind::Regular;
    assert!(root.replace("/etc/folder", new, &is_file).is_err());
    assert!(dir.path().join("etc/folder/in").exists());
    assert_eq!(root.list("/etc").unwrap(), ["folder", "it", "target"], "no temporary file");
}

#[test]
fn what_is_in_the_way_of_a_path_is_reported_with_what_to_do() {
    let (dir, root) = fixture();
    fs::write(dir.path().join("etc/cdi"), "a file").unwrap();
    let refusal = root.lstat("/etc/cdi/amd.json").unwrap_err().to_string();
    assert!(
        refusal
            .ends_with("Not a directory: something on the way to it is no folder, move that out of the way"),
        "{refusal}"
    );
}

#[test]
fn a_file_that_is_replaced_keeps_its_extended_attributes() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    // Not in memory: tmpfs has no attributes of a user's before Linux 6.6.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("etc");
    fs::write(&file, "old").unwrap();
    setxattr(&file, "user.owner", b"them", XattrFlags::empty()).unwrap();
    let root = Root::open(dir.path()).unwrap();
    root.write("/etc", b"new", Attributes { mode: 0o644, owner: None }).unwrap();
    let mut value = [0; 16];
    let length = getxattr(&file, "user.owner", value.as_mut_slice()).unwrap();
    assert_eq!(&value[..length], b"them");
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

/// Reads each file as its own path.
struct Paths;

impl Reader for Paths {
    fn read(&self, path: &Path, _: Amount) -> Result<Vec<u8>, Failure> {
        Ok(path.as_os_str().as_bytes().to_owned())
    }

    fn ask_again(&self) {}

    fn stuck(&self) -> usize {
        0
    }
}

#[test]
fn what_is_asked_is_kept_whoever_reads_it_and_of_this_root_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("etc")).unwrap();
    fs::write(folder.path().join("etc/a"), "1").unwrap();
    let root = Root::open(folder.path()).unwrap().read_by(Arc::new(Paths));
    assert!(root.read("/etc/a", 9).is_ok() && root.reads().is_empty());
    let other = root.place().open().unwrap();
    let root = root.keeping_reads();
    assert!(!root.exists("/etc/b") && root.list("/etc").is_ok() && other.list("/").is_ok());
    assert!(root.read_start("/etc/b", 9).is_err() && root.read_text("/sys/c", 9).is_ok());
    assert!(root.read("/etc/a", 9).is_ok() && root.stat("/etc/a").is_ok());
    let reads = root.reads();
    assert_eq!(
        reads.keys().map(|path| path.to_str().unwrap()).collect::<Vec<_>>(),
        ["/etc", "/etc/a", "/etc/b", "/sys/c"]
    );
    assert!(matches!(&reads[Path::new("/etc")], Kept::Looked));
    assert!(matches!(&reads[Path::new("/etc/a")], Kept::Read(Ok(bytes)) if bytes == b"1"));
    assert!(matches!(&reads[Path::new("/etc/b")], Kept::Read(Err(error)) if error.is_not_found()));
    assert!(matches!(&reads[Path::new("/sys/c")], Kept::Read(Ok(bytes)) if bytes == b"/sys/c"));
}
