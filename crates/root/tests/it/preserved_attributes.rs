//! A replacement keeps a file's access control lists, capabilities and flags, and a new file has none.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use root::{Attributes, New, Root};
use rustix::fs::{IFlags, XattrFlags, getxattr, ioctl_getflags, ioctl_setflags, setxattr};
use support::real;

const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";
const CAPABILITY: &str = "security.capability";

/// `cap_net_bind_service=ep`, as setcap(8) stores it (struct vfs_cap_data in include/uapi/linux/capability.h).
const CAPABILITIES: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// An access control list (struct posix_acl_xattr_entry in include/uapi/linux/posix_acl_xattr.h): the owner may write, uid
/// 4711 may do this, others nothing.
fn acl(of_4711: u16) -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, NOBODY), (2, of_4711, 4711), (4, 0, NOBODY), (16, of_4711, NOBODY), (32, 0, NOBODY)];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// A folder on a disk: tmpfs has neither all attributes nor all flags.
fn on_disk() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}

fn has(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = [0; 256];
    getxattr(path, name, value.as_mut_slice()).ok().map(|length| value[..length].to_vec())
}

/// Makes a file in each possible way: by a write or by a replacement.
fn put(root: &Root, way: usize, path: &str, mode: u32) {
    let how = Attributes { mode, owner: None };
    if way == 0 {
        root.write(path, b"new", how).unwrap();
    } else {
        root.replace(path, New::File { bytes: b"new", how }, &|_| true).unwrap();
    }
}

#[test]
fn a_new_file_has_the_mode_that_was_asked_for_whatever_its_folder_gives_new_ones() {
    for way in 0..2 {
        let (dir, root) = on_disk();
        setxattr(dir.path(), DEFAULT, &acl(7), XattrFlags::empty()).unwrap();
        for (name, mode) in [("private", 0o640), ("public", 0o644), ("deep/er/file", 0o640)] {
            put(&root, way, name, mode);
            let path = dir.path().join(name);
            assert_eq!(has(&path, ACCESS), None, "{name}: uid 4711 may read it");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        }
        assert_eq!(has(&dir.path().join("deep"), ACCESS), None, "a folder on the way");
        root.make_folder("/made", Attributes { mode: 0o750, owner: None }).unwrap();
        assert_eq!(has(&dir.path().join("made"), ACCESS), None, "a folder");
    }
}

#[test]
fn a_private_file_stays_private_when_it_is_replaced_in_a_folder_that_opens_new_ones() {
    for way in 0..2 {
        let (dir, root) = on_disk();
        let path = dir.path().join("private");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        setxattr(dir.path(), DEFAULT, &acl(7), XattrFlags::empty()).unwrap();
        put(&root, way, "private", 0o640);
        assert_eq!(has(&path, ACCESS), None);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        // A file with an access control list of its own keeps that list.
        setxattr(&path, ACCESS, &acl(4), XattrFlags::empty()).unwrap();
        root.replace(
            "private",
            New::File { bytes: b"newer", how: Attributes { mode: 0o640, owner: None } },
            &|_| true,
        )
        .unwrap();
        assert_eq!(has(&path, ACCESS), Some(acl(4)));
    }
}

#[test]
fn real_a_file_that_is_replaced_keeps_its_capabilities_and_flags() {
    // Capabilities are root's to give.
    if !real::require_root(&[]) {
        return;
    }
    for way in 0..2 {
        let (dir, root) = on_disk();
        let path = dir.path().join("program");
        fs::write(&path, "old").unwrap();
        setxattr(&path, CAPABILITY, &CAPABILITIES, XattrFlags::empty()).unwrap();
        let flags = |set: Option<IFlags>| {
            let file = File::open(&path).unwrap();
            let now = ioctl_getflags(&file).unwrap();
            if let Some(set) = set {
                ioctl_setflags(&file, now | set).unwrap();
            }
            now
        };
        let kept = IFlags::NODUMP | IFlags::NOATIME;
        flags(Some(kept));
        let how = Attributes { mode: 0o755, owner: Some((0, 0)) };
        if way == 0 {
            root.write("program", b"new", how).unwrap();
        } else {
            root.replace("program", New::File { bytes: b"new", how }, &|_| true).unwrap();
        }
        assert_eq!(has(&path, CAPABILITY).as_deref(), Some(&CAPABILITIES[..]));
        assert!(flags(None).contains(kept), "{:?}", flags(None));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}

#[test]
fn real_a_file_that_may_not_be_replaced_stays_and_the_flag_is_named_also_before_it_is_tried() {
    // Only root may set these flags.
    if !real::require_root(&[]) {
        return;
    }
    for (flag, word) in [(IFlags::IMMUTABLE, "immutable"), (IFlags::APPEND, "append-only")] {
        for of_folder in [false, true] {
            let (dir, root) = on_disk();
            fs::create_dir(dir.path().join("etc")).unwrap();
            let path = dir.path().join("etc/file");
            fs::write(&path, "old").unwrap();
            let flagged = if of_folder { dir.path().join("etc") } else { path.clone() };
            let set = |on: bool| {
                let file = File::open(&flagged).unwrap();
                let now = ioctl_getflags(&file).unwrap();
                ioctl_setflags(&file, if on { now | flag } else { now - flag }).unwrap();
            };
            set(true);
            let how = Attributes { mode: 0o644, owner: None };
            let errors = [
                root.check_replaceable("/etc/file").unwrap_err(),
                root.write("/etc/file", b"new", how).unwrap_err(),
                root.remove("/etc/file").unwrap_err(),
                root.replace("/etc/file", New::File { bytes: b"new", how }, &|_| true).unwrap_err(),
                root.replace("/etc/file", New::Nothing, &|_| true).unwrap_err(),
            ];
            let names: Vec<_> = root.list("/etc").unwrap();
            set(false);
            for error in errors {
                let error = error.to_string();
                assert!(error.contains(word) && error.contains("chattr -"), "{of_folder}: {error}");
            }
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names, ["file"]);
            root.check_replaceable("/etc/file").unwrap();
        }
    }
}
