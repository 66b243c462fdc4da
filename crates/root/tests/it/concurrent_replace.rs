//! Replaces a file while another process writes it: what that process wrote must be there afterwards.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use root::{Attributes, Error, New, Root};

const HOW: Attributes = Attributes { mode: 0o644, owner: None };
const OURS: New<'_> = New::File { bytes: b"ours", how: HOW };

fn machine() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    fs::write(dir.path().join("file"), "old").unwrap();
    (dir, root)
}

/// Asked about what was displaced; where that is the old file, somebody writes another one to the path then.
fn is_old<'a>(root: &'a Root, then: &'a dyn Fn()) -> impl Fn(&Path) -> bool + 'a {
    move |path| {
        let is_old = root.read(path, 100).is_ok_and(|bytes| bytes == b"old");
        then();
        is_old
    }
}

fn names(root: &Root) -> Vec<String> {
    root.list("/").unwrap().into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn what_is_expected_is_replaced_by_a_file_a_link_and_nothing() {
    for new in [OURS, New::Link(Path::new("elsewhere")), New::Nothing] {
        let (_dir, root) = machine();
        root.replace("/file", new, &is_old(&root, &|| {})).unwrap();
        match new {
            New::File { bytes, .. } => assert_eq!(root.read("/file", 100).unwrap(), bytes),
            New::Link(target) => assert_eq!(root.read_link("/file").unwrap(), target),
            New::Nothing => assert!(root.lstat("/file").unwrap_err().is_not_found()),
        }
        assert!(names(&root).iter().all(|name| name == "file"), "{:?}", names(&root));
        // Where nothing stands, that is what must be expected.
        root.remove("/file").unwrap();
        root.replace("/file", new, &|path| root.lstat(path).is_err()).unwrap();
        root.remove("/file").unwrap();
        if new != New::Nothing {
            let error = root.replace("/file", new, &|_| false).unwrap_err();
            assert!(matches!(error, Error::Changed { .. }), "{error}");
        }
        assert_eq!(names(&root), Vec::<String>::new());
    }
}

#[test]
fn what_is_not_expected_stays_with_all_that_is_its_own() {
    for new in [OURS, New::Link(Path::new("elsewhere")), New::Nothing] {
        let (dir, root) = machine();
        for lay in [
            |path: &Path| fs::write(path, "theirs").unwrap(),
            |path: &Path| symlink("theirs", path).unwrap(),
            |path: &Path| fs::create_dir(path).unwrap(),
        ] {
            let path = dir.path().join("file");
            fs::remove_file(&path).ok();
            lay(&path);
            let before = root.identity("/").unwrap().inode;
            let inode = |root: &Root| {
                let meta = root.lstat("/file").unwrap();
                (meta, std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(&path).unwrap()), before)
            };
            let was = inode(&root);
            let error = root.replace("/file", new, &is_old(&root, &|| {})).unwrap_err();
            assert!(matches!(error, Error::Changed { .. }), "{error}");
            assert_eq!(inode(&root), was, "{new:?}");
            assert_eq!(names(&root), ["file"], "{new:?}");
        }
    }
}

/// Somebody writes once more between the two exchanges: the last word counts.
#[test]
fn what_is_written_while_it_is_put_back_stays_too() {
    for new in [OURS, New::Nothing] {
        let (dir, root) = machine();
        let path = dir.path().join("file");
        fs::write(&path, "theirs").unwrap();
        let again = || {
            fs::write(dir.path().join("beside"), "theirs, again").unwrap();
            fs::rename(dir.path().join("beside"), &path).unwrap();
        };
        root.replace("/file", new, &is_old(&root, &again)).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs, again", "{new:?}");
        assert_eq!(names(&root), ["file"], "{new:?}");
        // Into the file that was just put there, as an editor does that opens it.
        fs::write(&path, "theirs").unwrap();
        if new == OURS {
            root.replace("/file", new, &is_old(&root, &|| fs::write(&path, "ours, edited").unwrap()))
                .unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), "ours, edited");
        }
        assert_eq!(names(&root), ["file"], "{new:?}");
    }
}

/// Somebody replaces the old file as soon as the new one stands beside it: none of these edits may be lost.
#[test]
fn no_edit_is_lost_that_comes_when_the_new_file_stands_beside_the_old_one() {
    for new in [New::File { bytes: &[b'x'; 300_000], how: HOW }, New::Nothing] {
        let mut met = 0;
        for round in 0..30 {
            let (dir, root) = machine();
            let (path, theirs) = (dir.path().join("file"), dir.path().join("theirs"));
            fs::write(&theirs, format!("theirs {round}")).unwrap();
            let over = AtomicBool::new(false);
            let (ended, came) = std::thread::scope(|scope| {
                let editor = scope.spawn(|| {
                    loop {
                        let is_beside = |name: &String| name.starts_with(".rocworker-file.");
                        if names(&root).iter().any(is_beside) || new == New::Nothing {
                            fs::rename(&theirs, &path).unwrap();
                            return true;
                        }
                        if over.load(Ordering::Relaxed) {
                            return false;
                        }
                    }
                });
                let ended = root.replace("/file", new, &is_old(&root, &|| {}));
                over.store(true, Ordering::Relaxed);
                (ended, editor.join().unwrap())
            });
            let text = fs::read(&path);
            if came && ended.is_err() {
                met += 1;
            }
            if came {
                // Before the exchange it is put back, after it it is written over what we have put there.
                assert_eq!(text.unwrap(), format!("theirs {round}").as_bytes(), "{ended:?}");
            }
            assert!(names(&root).iter().all(|name| !name.starts_with(".rocworker-")), "{:?}", names(&root));
        }
        if new != New::Nothing {
            assert!(met > 0, "they never met");
        }
    }
}

#[test]
fn what_a_killed_run_has_displaced_is_found_beside_the_path_and_put_back() {
    let (dir, root) = machine();
    fs::write(dir.path().join(".rocworker-file.17"), "theirs").unwrap();
    fs::write(dir.path().join(".rocworker-file.x"), "another's").unwrap();
    fs::write(dir.path().join(".rocworker-file2.17"), "another's").unwrap();
    assert_eq!(root.left_beside("/file"), [Path::new("/.rocworker-file.17")]);
    root.put_back("/.rocworker-file.17", "/file").unwrap();
    assert_eq!(root.read("/file", 100).unwrap(), b"theirs");
    assert_eq!(root.left_beside("/file"), Vec::<&Path>::new());
    // A removal had moved it out of its place.
    root.remove("/file").unwrap();
    fs::write(dir.path().join(".rocworker-file.18"), "theirs").unwrap();
    root.put_back("/.rocworker-file.18", "/file").unwrap();
    assert_eq!(root.read("/file", 100).unwrap(), b"theirs");
    assert_eq!(names(&root), [".rocworker-file.x", ".rocworker-file2.17", "file"]);
}
