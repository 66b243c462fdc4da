use super::*;
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

fn paths_in(place: &Path) -> Paths {
    let owner = place.metadata().unwrap().uid();
    Paths { run: place.join("run"), owner, ..Paths::system() }
}

const KIND: Kind = Kind { folder: "things", what: "the thing", limit: 16 };

fn taken(paths: &Paths) -> (Lock, RunFolder) {
    let lock = Lock::take(paths, paths.lock_patience).unwrap();
    let folder = RunFolder::of(paths, KIND, None);
    folder.ensure(&lock).unwrap();
    (lock, folder)
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_file_is_kept_until_it_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let paths = paths_in(place.path());
    let folder = RunFolder::of(&paths, KIND, None);
    assert!(folder.read("a").unwrap().is_none() && folder.names().unwrap().is_empty());
    let (lock, folder) = taken(&paths);
    folder.write(&lock, "a", "old").unwrap();
    folder.write(&lock, "a", "new").unwrap();
    assert_eq!(folder.read("a").unwrap().as_deref(), Some("new"));
    assert_eq!(folder.names().unwrap(), ["a"]);
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
    let modes = [&paths.run, &paths.run.join("things"), &folder.path_of("a"), &paths.run.join("lock")];
    assert_eq!(modes.map(|path| mode(path)), [0o755, 0o700, 0o600, 0o600]);
    folder.write(&lock, "a", &"x".repeat(17)).unwrap();
    assert!(folder.read("a").unwrap_err().ends_with("things/a is longer than 16 bytes"));
    folder.remove("a").unwrap();
    folder.remove("a").unwrap();
    assert!(folder.read("a").unwrap().is_none());
}

#[test]
fn what_others_could_open_and_lock_is_closed_to_them() {
    let place = tempfile::tempdir().unwrap();
    let paths = paths_in(place.path());
    drop(taken(&paths));
    let closed = ["records", "things", "lock"].map(|name| paths.run.join(name));
    let mode = |path: &PathBuf| path.metadata().unwrap().mode() & 0o777;
    let before = closed.each_ref().map(mode);
    for path in &closed {
        let open = std::fs::Permissions::from_mode(mode(path) | 0o055);
        std::fs::set_permissions(path, open).unwrap();
    }
    // What every user may open, every user may lock.
    let folder = File::open(&paths.run).unwrap();
    folder.try_lock().unwrap();
    drop(taken(&paths));
    assert_eq!(closed.each_ref().map(mode), before);
    assert_eq!(mode(&paths.run), 0o755);
}

#[test]
fn a_folder_that_another_user_may_have_made_holds_nothing() {
    let place = tempfile::tempdir().unwrap();
    let paths = paths_in(place.path());
    let run = &paths.run;
    let elsewhere = place.path().join("elsewhere");
    let refusal = |paths: &Paths| Lock::take(paths, paths.lock_patience).unwrap_err();
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, run).unwrap();
    assert!(
        refusal(&paths).ends_with("/run is no folder, or a symbolic link: remove it"),
        "{}",
        refusal(&paths)
    );
    assert!(!elsewhere.join("lock").exists());
    std::fs::remove_file(run).unwrap();
    std::fs::create_dir(run).unwrap();
    std::fs::set_permissions(run, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(refusal(&paths).ends_with("its mode 0777 lets others write: make it so, or remove it"));
    std::fs::set_permissions(run, std::fs::Permissions::from_mode(0o700)).unwrap();
    let strangers = Paths { owner: paths.owner + 1, ..paths.clone() };
    assert!(refusal(&strangers).contains("/run is not root's alone: its owner is user "));
    std::fs::remove_dir(run).unwrap();
    let nowhere = Paths { run: place.path().join("missing/run"), ..paths.clone() };
    assert!(
        refusal(&nowhere).contains("the folder ")
            && refusal(&nowhere).contains("/run cannot be made: No such file")
    );

    // A reader that has no lock does not believe such a folder beneath the run folder either.
    let reader = || RunFolder::of(&paths, KIND, None);
    let (lock, folder) = taken(&paths);
    folder.write(&lock, "a", "x").unwrap();
    for shut in [run.clone(), run.join("things")] {
        std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o722)).unwrap();
        for refused in [reader().read("a").unwrap_err(), reader().names().unwrap_err()] {
            assert!(refused.starts_with(&format!("the folder {} is not", shut.display())), "{refused}");
        }
        std::fs::set_permissions(&shut, std::fs::Permissions::from_mode(0o700)).unwrap();
    }
}

/// Files that another user planted before the folder was root's alone, or that a killed writer left.
#[test]
fn what_is_at_the_temporary_name_is_removed_and_never_opened() {
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant); 5] = [
        ("a link", |temporary, victim| symlink(victim, temporary).unwrap()),
        ("a link to nothing", |temporary, victim| symlink(victim.with_extension("x"), temporary).unwrap()),
        ("a hard link", |temporary, victim| std::fs::hard_link(victim, temporary).unwrap()),
        ("a fifo", |temporary, _| fifo(temporary)),
        ("half a file, open to all", |temporary, _| {
            std::fs::write(temporary, "a longer text").unwrap();
            std::fs::set_permissions(temporary, std::fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, plant) in plants {
        let place = tempfile::tempdir().unwrap();
        let (lock, folder) = taken(&paths_in(place.path()));
        let victim = place.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        plant(&folder.path_of(TEMPORARY), &victim);
        folder.write(&lock, "a", "mine").unwrap();
        assert_eq!(folder.read("a").unwrap().as_deref(), Some("mine"), "{what}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{what}");
        assert!(!victim.with_extension("x").exists() && !folder.path_of(TEMPORARY).exists(), "{what}");
        assert_eq!(folder.path_of("a").metadata().unwrap().mode() & 0o7777, 0o600, "{what}");
    }
    let place = tempfile::tempdir().unwrap();
    let (lock, folder) = taken(&paths_in(place.path()));
    std::fs::create_dir(folder.path_of(TEMPORARY)).unwrap();
    let refusal = folder.write(&lock, "a", "mine").unwrap_err();
    assert!(
        refusal.starts_with("the file ") && refusal.contains("/things/new~ cannot be removed: "),
        "{refusal}"
    );
}

#[test]
fn what_stands_at_a_files_name_is_never_followed_and_nobody_waits_for_it() {
    let place = tempfile::tempdir().unwrap();
    let (lock, folder) = taken(&paths_in(place.path()));
    let victim = place.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, folder.path_of("link")).unwrap();
    fifo(&folder.path_of("fifo"));
    std::fs::create_dir(folder.path_of("folder")).unwrap();
    for (name, expected) in [
        ("link", "/link is a symbolic link: remove it"),
        ("fifo", "/fifo is no regular file: remove it"),
        ("folder", "/folder is no regular file: remove it"),
    ] {
        let refusal = folder.read(name).unwrap_err();
        assert!(refusal.starts_with("the thing ") && refusal.ends_with(expected), "{refusal}");
    }
    assert_eq!(folder.entries().unwrap().iter().filter(|(_, text)| text.is_err()).count(), 3);
    for name in ["link", "fifo"] {
        folder.write(&lock, name, "mine").unwrap();
        assert_eq!(folder.read(name).unwrap().as_deref(), Some("mine"));
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    let refusal = folder.write(&lock, "folder", "mine").unwrap_err();
    assert!(refusal.contains("/things/folder cannot be put in its place: Is a directory"), "{refusal}");
    assert!(!folder.path_of(TEMPORARY).exists());
}

#[test]
fn the_lock_is_a_regular_file_of_roots_or_there_is_none() {
    type Plant = fn(&Path, &Path);
    let plants: [(&str, Plant, &str); 4] = [
        ("a link", |lock, victim| symlink(victim, lock).unwrap(), "/lock is a symbolic link: remove it"),
        ("a fifo", |lock, _| fifo(lock), "/lock is no regular file: remove it"),
        (
            "a folder",
            |lock, _| std::fs::create_dir(lock).unwrap(),
            "/lock cannot be opened: Is a directory (os error 21): remove it",
        ),
        (
            "anybody's",
            |lock, _| {
                std::fs::write(lock, "").unwrap();
                std::fs::set_permissions(lock, std::fs::Permissions::from_mode(0o666)).unwrap();
            },
            "its mode 0666 lets others write: make it so, or remove it",
        ),
    ];
    for (what, plant, expected) in plants {
        let place = tempfile::tempdir().unwrap();
        let paths = paths_in(place.path());
        drop(taken(&paths));
        let (lock, victim) = (paths.run.join("lock"), place.path().join("victim"));
        std::fs::write(&victim, "precious").unwrap();
        std::fs::remove_file(&lock).unwrap();
        plant(&lock, &victim);
        let refusal = Lock::take(&paths, paths.lock_patience).unwrap_err();
        assert!(refusal.starts_with("the lock ") && refusal.ends_with(expected), "{what}: {refusal}");
    }
}
