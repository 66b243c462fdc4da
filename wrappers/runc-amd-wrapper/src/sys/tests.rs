use super::*;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

fn c(path: &std::path::Path) -> std::ffi::CString {
    std::ffi::CString::new(path.to_str().unwrap()).unwrap()
}

#[test]
fn a_file_is_what_the_standard_library_says_it_is() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, "12345").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = place.path().join("link");
    symlink("file", &link).unwrap();
    for (found, expected) in [
        (stat(&c(&file)), file.metadata().unwrap()),
        (stat(&c(&link)), file.metadata().unwrap()),
        (stat_no_follow(&c(&link)), link.symlink_metadata().unwrap()),
        (stat_of(&open(&c(&file), flag::NOFOLLOW, 0).unwrap()), file.metadata().unwrap()),
        (stat(c"/dev/null"), std::fs::metadata("/dev/null").unwrap()),
    ] {
        let found = found.unwrap();
        assert_eq!((found.mode, found.uid, found.gid), (expected.mode(), expected.uid(), expected.gid()));
        assert_eq!((found.size, found.inode), (expected.size(), expected.ino()));
        assert_eq!(found.is_regular(), expected.is_file());
        assert_eq!(found.is_folder(), expected.is_dir());
    }
    assert_eq!(stat(c"/dev/full").unwrap().node, (1, 7));
    assert!(stat(c"/dev/full").unwrap().is_character_device());
    assert_eq!(stat(&c(&place.path().join("none"))).unwrap_err(), Errno::NOT_FOUND);
    assert!(stat(&c(&file)).unwrap().is_same_file(&stat(&c(&link)).unwrap()));
    assert!(!stat(&c(&file)).unwrap().is_same_file(&stat_no_follow(&c(&link)).unwrap()));
}

#[test]
fn a_folder_has_the_names_that_the_standard_library_lists() {
    let place = tempfile::tempdir().unwrap();
    let open = || open(&c(place.path()), flag::DIRECTORY, 0).unwrap();
    assert!(names(&open()).unwrap().is_empty());
    for n in 0..200 {
        std::fs::write(place.path().join(format!("{n}{}", "x".repeat(n))), "").unwrap();
    }
    let mut found = names(&open()).unwrap();
    found.sort();
    let listed = std::fs::read_dir(place.path()).unwrap();
    let mut expected: Vec<Vec<u8>> =
        listed.map(|entry| entry.unwrap().file_name().into_encoded_bytes()).collect();
    expected.sort();
    assert_eq!(found, expected);
    const ENOTDIR: i32 = 20;
    let file = super::open(&c(&place.path().join("0")), 0, 0).unwrap();
    assert_eq!(names(&file).unwrap_err(), Errno(ENOTDIR));
}

#[test]
fn a_file_is_written_read_and_not_opened_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (file, link) = (place.path().join("file"), place.path().join("link"));
    symlink("file", &link).unwrap();
    let made = open(&c(&file), flag::WRITE | flag::CREATE | flag::EXCLUSIVE, 0o600).unwrap();
    write(&made, b"abcdef").unwrap();
    drop(made);
    assert_eq!(open(&c(&file), flag::CREATE | flag::EXCLUSIVE, 0o600).unwrap_err(), Errno::EXISTS);
    let mut buffer = b"x".to_vec();
    let opened = open(&c(&file), flag::NOFOLLOW, 0).unwrap();
    assert_eq!(read(&opened, &mut buffer, 4).unwrap(), 4);
    assert_eq!(read(&opened, &mut buffer, 4).unwrap(), 2);
    assert_eq!(read(&opened, &mut buffer, 4).unwrap(), 0);
    assert_eq!(buffer, b"xabcdef");
    const ELOOP: i32 = 40;
    assert_eq!(open(&c(&link), flag::NOFOLLOW, 0).unwrap_err(), Errno(ELOOP));
    read_link(Begin::WorkingFolder, &c(&link), &mut buffer).unwrap();
    assert_eq!(buffer, b"file");
    let folder = open(&c(place.path()), flag::PATH | flag::DIRECTORY, 0).unwrap();
    buffer.clear();
    read_link(Begin::Folder(&folder), c"link", &mut buffer).unwrap();
    assert_eq!(buffer, b"file");
    assert!(stat_no_follow_from(Begin::Folder(&folder), c"file").unwrap().is_regular());
    assert_eq!(stat_no_follow_from(Begin::Folder(&folder), c"none").unwrap_err(), Errno::NOT_FOUND);
}

#[test]
fn a_file_systems_flags_are_those_it_is_mounted_with() {
    // proc(5): /proc/mounts has them, in the same words.
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mut seen = 0;
    for path in ["/", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/tmp"] {
        let of = |line: &str| line.split(' ').nth(1) == Some(path);
        let Some(line) = mounts.lines().rfind(|line| of(line)) else { continue };
        let options: Vec<&str> = line.split(' ').nth(3).unwrap().split(',').collect();
        let found = mount_flags(&c(std::path::Path::new(path))).unwrap();
        for (flag, name) in
            [(NO_SUID, "nosuid"), (NO_DEVICES, "nodev"), (NO_EXECUTION, "noexec"), (READ_ONLY, "ro")]
        {
            assert_eq!(found & flag != 0, options.contains(&name), "{line}: {found:x} {name}");
        }
        seen += 1;
    }
    assert!(seen > 2, "{mounts}");
    assert_eq!(mount_flags(c"/nowhere").unwrap_err(), Errno::NOT_FOUND);
}

#[test]
fn who_can_raise_the_limit_on_locked_memory_is_who_the_shell_can_raise_it_for() {
    let shell = |script: &str| std::process::Command::new("sh").args(["-c", script]).output().unwrap();
    let limits = || shell("ulimit -H -l; ulimit -S -l").stdout;
    let before = limits();
    assert_eq!(can_lock(1), Ok(()));
    let most = String::from_utf8(before.clone()).unwrap();
    let most = most.lines().next().unwrap().to_owned();
    let can_raise = shell("ulimit -H -l unlimited").status.success();
    match most.parse::<u64>() {
        Ok(kib) if !can_raise => assert_eq!(can_lock(u64::MAX), Err(kib * 1024)),
        _ => assert_eq!(can_lock(u64::MAX), Ok(())),
    }
    assert_eq!(limits(), before, "asking changes nothing");
}

#[test]
fn a_short_path_holds_what_is_no_longer_than_it_and_has_no_null() {
    let mut path = ShortPath::default();
    assert_eq!(path.as_c_str(), c"");
    for (added, expected) in [
        (Some(&b"226"[..]), Some(c"226")),
        (Some(b":"), Some(c"226:")),
        (Some(b"a\0b"), None),
        (Some(&[b'x'; 60]), None),
        (None, Some(c"226:4294967295")),
    ] {
        let pushed = match added {
            Some(bytes) => path.push(bytes),
            None => path.push_number(u32::MAX),
        };
        assert_eq!(pushed.map(|()| path.as_c_str()), expected, "{added:?}");
    }
    assert_eq!(path.as_c_str(), c"226:4294967295", "what does not fit changes nothing");
    for (number, text) in [(0, c"0"), (10, c"10"), (128, c"128")] {
        let mut path = ShortPath::default();
        assert_eq!(path.push_number(number).map(|()| path.as_c_str()), Some(text));
    }
    for (length, fits) in [(62, true), (63, true), (64, false)] {
        let long = vec![b'x'; length];
        assert_eq!(ShortPath::default().push(&long).is_some(), fits, "{length}");
    }
}
