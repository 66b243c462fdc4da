//! Somebody edits a file in the moment in which rocworker replaces it: the edit is there afterwards, and counts as
//! unmanaged.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::machine::{Machine, Ran, desired, edited, owned};
use edit::Format;
use reconcile::Desired;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::json;

const FILE: &str = "/etc/docker/daemon.json";
const THEIRS: &str = "{\n  \"debug\": false\n}\n";
const EDITED: &str = "{\n  \"debug\": true\n}\n";

fn runtime() -> Desired {
    desired([edited(FILE, Format::Json, &[(&["runtimes", "amd", "path"], json!("/usr/lib/wrapper"))])])
}

/// Runs a function while an editor waits for the new file beside the old one, and then replaces the old one,
/// as editors do. The second value: whether the two met.
fn beside_an_editor(machine: &Machine, text: &str, run: impl FnOnce() -> Ran) -> (Ran, bool) {
    let (path, new) = (machine.path(FILE), machine.path("/etc/new"));
    fs::write(&new, text).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let mut names =
                    fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().file_name());
                if names.any(|name| name.as_encoded_bytes().starts_with(b".rocworker-daemon.json.")) {
                    fs::rename(&new, &path).unwrap();
                    return true;
                }
            }
            false
        });
        let ran = run();
        over.store(true, Ordering::Relaxed);
        (ran, editor.join().unwrap())
    })
}

#[test]
fn an_edit_that_comes_when_the_new_file_stands_beside_theirs_is_never_lost() {
    let mut met = 0;
    for _ in 0..30 {
        let machine = Machine::new();
        machine.put(FILE, THEIRS);
        let (ran, came) = beside_an_editor(&machine, EDITED, || machine.apply(&runtime()));
        if !came {
            continue;
        }
        assert_eq!(machine.text(FILE), EDITED, "{ran:?}");
        if let Some(failed) = ran.carried.failed.first() {
            met += 1;
            assert!(failed.text.contains("was changed at the same moment"), "{ran:?}");
            assert!(machine.is_bare(), "nothing of it is rocworker's");
        }
        // The next run has both, and undo gives back the unmanaged file.
        machine.apply(&runtime());
        assert!(machine.text(FILE).contains("\"debug\": true") && machine.text(FILE).contains("wrapper"));
        let (ran, came) = beside_an_editor(&machine, THEIRS, || machine.undo());
        if came {
            assert_eq!(machine.text(FILE), THEIRS, "{ran:?}");
        }
        machine.undo();
        assert_eq!(machine.text(FILE), if came { THEIRS } else { EDITED });
        assert!(machine.is_bare());
    }
    assert!(met > 0, "they never met");
}

/// uid 4711 may read what is new in the folder (struct posix_acl_xattr_entry in include/uapi/linux/posix_acl_xattr.h).
const DEFAULT_LIST: [(u16, u16, u32); 5] =
    [(1, 6, u32::MAX), (2, 4, 4711), (4, 0, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)];

#[test]
fn a_private_file_is_as_private_after_apply_and_after_undo_whatever_its_folder_gives_new_files() {
    let machine = Machine::new();
    machine.put(FILE, THEIRS);
    machine.put("/etc/docker/ours", "theirs\n");
    let files = [FILE, "/etc/docker/ours"].map(|path| machine.path(path));
    for path in &files {
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    }
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in DEFAULT_LIST {
        list.extend([&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat());
    }
    setxattr(machine.path("/etc/docker"), "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
    let has_list =
        |path: &std::path::Path| getxattr(path, "system.posix_acl_access", [0; 256].as_mut_slice()).is_ok();
    let mut wanted = runtime();
    wanted.extend(desired([owned("/etc/docker/ours", "ours\n"), owned("/etc/docker/new", "new\n")]));
    machine.apply(&wanted);
    assert!(!has_list(&files[0]) && !has_list(&files[1]) && !has_list(&machine.path("/etc/docker/new")));
    machine.undo();
    for path in &files {
        assert!(!has_list(path), "uid 4711 may read {}", path.display());
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, 0o640);
    }
    assert_eq!(machine.text(FILE), THEIRS);
}
