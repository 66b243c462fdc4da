//! A Root in memory must answer as a folder with those files does.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::errno::Errno;
use proptest::prelude::*;
use root::files::{Content, Entry, Files};
use root::{Asked, Attributes, Error, Kind, Meta, Root, Watch};

#[derive(Debug, Clone)]
enum Laid {
    File(u8),
    /// A folder; `true`: only its owner may write to it.
    Folder(bool),
    Link(String),
}

fn laid() -> impl Strategy<Value = Vec<(String, Laid)>> {
    let name = || prop_oneof![Just("a"), Just("b")];
    let path = prop::collection::vec(name(), 1..4).prop_map(|names| format!("/{}", names.join("/")));
    let step = prop_oneof![3 => name(), 2 => Just(".."), 1 => Just("."), 1 => Just("gone"), 1 => Just("")];
    let target = (prop::sample::select(vec!["", "/"]), prop::collection::vec(step, 1..5));
    let target = target.prop_map(|(start, steps)| format!("{start}{}", steps.join("/")));
    let what = prop_oneof![
        any::<u8>().prop_map(Laid::File),
        any::<bool>().prop_map(Laid::Folder),
        target.prop_filter("no link is empty", |it| !it.is_empty()).prop_map(Laid::Link),
    ];
    prop::collection::vec((path, what), 1..12)
}

fn lay_out(top: &Path, laid: &[(String, Laid)]) {
    for (path, what) in laid {
        let at = top.join(path.trim_start_matches('/'));
        // No link of this machine is followed.
        let is_plain = at.ancestors().skip(1).take_while(|it| *it != top).all(|it| !it.is_symlink());
        if !is_plain || at.symlink_metadata().is_ok() || fs::create_dir_all(at.parent().unwrap()).is_err() {
            continue;
        }
        match what {
            Laid::File(byte) => {
                fs::write(&at, [*byte; 9]).unwrap();
                let mode = if byte % 2 == 0 { 0o644 } else { 0o666 };
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
            Laid::Folder(is_closed) => {
                fs::create_dir(&at).unwrap();
                let mode = if *is_closed { 0o755 } else { 0o777 };
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
            Laid::Link(target) => symlink(target, &at).unwrap(),
        }
    }
}

/// Every path of these names, both existing and missing ones.
fn paths() -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    let mut longest = paths.clone();
    for _ in 0..4 {
        longest =
            longest.iter().flat_map(|path| ["a", "b", "gone", ".."].map(|name| path.join(name))).collect();
        paths.extend_from_slice(&longest);
    }
    paths
}

fn shown<T: std::fmt::Debug>(root: &Root, answer: Result<T, Error>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        // A folder is asked by a descriptor, of which the kernel says another errno than of a path.
        Err(Error::Io { action: "read the link", errno: Errno::ENOENT | Errno::EINVAL, .. }) => {
            "no link".into()
        }
        Err(error) => {
            error.to_string().replace(&format!("{}/", root.shown("/").display()).replace("//", "/"), "/")
        }
    }
}

/// The content of an opened file. A folder can be opened, and its read fails.
fn opened(root: &Root, path: &Path) -> String {
    let mut bytes = Vec::new();
    let read =
        root.open_to_read(path).map(|mut file| std::io::Read::read_to_end(&mut file, &mut bytes).is_ok());
    format!("{:?}", matches!(read, Ok(true)).then_some(bytes))
}

fn answers(root: &Root, path: &Path) -> Vec<String> {
    let mut links = Vec::new();
    let each = root.each_link(path, |name, target| links.push((name.to_owned(), target.to_owned())));
    links.sort();
    vec![
        shown(root, root.read(path, 1 << 20)),
        shown(root, root.read(path, 5)),
        shown(root, root.read_start(path, 3)),
        shown(root, root.read_text(path, 1 << 20)),
        shown(root, root.read_trusted(path, 1 << 20)),
        shown(root, root.check_folder_owner(path)),
        shown(root, root.list(path)),
        shown(root, root.stat(path)),
        shown(root, root.lstat(path)),
        shown(root, root.read_link(path)),
        shown(root, each.map(|()| links)),
        opened(root, path),
        shown(root, root.check_way(path)),
        format!("{:?}", root.without_links(path)),
        format!("{} {} {}", root.exists(path), root.is_there(path), root.is_recorded(path)),
        format!("{:?}", root.missing_folders(path)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_in_memory_answer_as_a_folder_does(laid in laid()) {
        let folder = tempfile::tempdir().unwrap();
        lay_out(folder.path(), &laid);
        let on_disk = Root::open(folder.path()).unwrap();
        let files = support::files::of(&on_disk);
        // Every file and folder by a path through as many links as there are.
        let mut by_alias = files.clone();
        for alias in paths() {
            let Some(path) = on_disk.without_links(&alias) else { continue };
            if alias != path && let Some(entry) = by_alias.entries.get(&path).cloned()
                && !files.entries.contains_key(&alias) && !alias.ends_with("..")
            {
                by_alias.entries.remove(&path);
                by_alias.entries.insert(alias, entry);
            }
        }
        for files in [files, by_alias] {
            let in_memory = Root::of_files(files.clone());
            for path in paths() {
                prop_assert_eq!(answers(&in_memory, &path), answers(&on_disk, &path), "{:?} {:?}", path, files);
            }
        }
    }
}

fn file(text: &str) -> Content {
    Content::File(text.into())
}

fn of(entries: impl IntoIterator<Item = (&'static str, Content)>) -> Root {
    let entries = entries.into_iter().map(|(path, content)| (path.into(), Entry { meta: None, content }));
    Root::of_files(Files { entries: entries.collect(), reader: 0 })
}

fn text(root: &Root, path: &str) -> String {
    root.read_text(path, 1 << 20).unwrap_or_else(|error| error.to_string())
}

/// Lays out a card as sysfs does: files under the alias by which a reader came, and links known by aliases.
#[test]
fn a_card_is_the_same_by_each_of_its_aliases() {
    const CARD: &str = "/sys/devices/pci0000:00/0000:03:00.0";
    let root = of([
        ("/sys/class/drm", Content::Folder(vec!["card0".into(), "version".into()])),
        ("/sys/class/drm/card0", Content::Link("../../devices/pci0000:00/0000:03:00.0/drm/card0".into())),
        ("/sys/class/drm/card0/device", Content::Link("../../../0000:03:00.0".into())),
        ("/sys/class/drm/card0/device/vendor", file("0x1002\n")),
        ("/sys/class/drm/card0/device/subsystem", Content::Link("../../../bus/pci".into())),
        (
            "/sys/bus/pci/devices/0000:03:00.0",
            Content::Link("../../../devices/pci0000:00/0000:03:00.0".into()),
        ),
        ("/sys/bus/pci/devices/0000:03:00.0/device", file("0x73bf\n")),
        ("/sys/class/drm/card0/device/vbios", Content::Failed(Errno::EINVAL)),
        ("/sys/class/drm/card0/device/gone", Content::Failed(Errno::ENOENT)),
    ]);
    for card in ["/sys/class/drm/card0/device", "/sys/bus/pci/devices/0000:03:00.0", CARD] {
        let of_card = |name: &str| text(&root, &format!("{card}/{name}"));
        assert_eq!([of_card("vendor"), of_card("device")], ["0x1002\n", "0x73bf\n"]);
        assert_eq!(of_card("vbios"), format!("cannot read {card}/vbios: Invalid argument"));
        assert_eq!(of_card("gone"), format!("cannot open {card}/gone: No such file or directory"));
        assert_eq!(of_card("other"), format!("{card}/other was not read from that machine"));
        assert_eq!(root.without_links(card).unwrap(), Path::new(CARD));
        assert_eq!(root.read_link(format!("{card}/subsystem")).unwrap(), Path::new("../../../bus/pci"));
        assert!(root.exists(format!("{card}/subsystem")) && root.is_there(format!("{card}/drm")));
    }
    assert_eq!(root.stat("/sys/class/drm/card0").unwrap().kind, Kind::Directory);
    assert_eq!(root.lstat("/sys/class/drm/card0").unwrap().kind, Kind::Link);
}

#[test]
fn what_was_not_read_is_not_absent() {
    let root = of([
        ("/etc/rocworker", Content::Folder(vec!["config.yaml".into(), "templates".into()])),
        ("/etc/docker/daemon.json", file("{}")),
        ("/etc/crio/crio.conf", Content::Failed(Errno::ENOENT)),
        ("/sys/kernel/debug", Content::Failed(Errno::EACCES)),
        ("/dev/kmsg", Content::Unread("cat: the pipe broke".into())),
        ("/proc/1/exe", Content::Failed(Errno::EACCES)),
    ]);
    // Listed, and no more.
    assert!(root.exists("/etc/rocworker/templates") && root.is_there("/etc/rocworker/config.yaml"));
    for path in
        ["/etc/rocworker/templates", "/etc/rocworker/templates/x", "/etc/docker", "/etc/other", "/", "/usr"]
    {
        let error = root.list(path).unwrap_err();
        assert_eq!(error.to_string(), format!("{path} was not read from that machine"));
        assert!(!error.is_not_found());
    }
    assert!(root.stat("/etc/rocworker/config.yaml").is_err() && root.exists("/etc/docker"));
    // Absent: a folder was listed without it, or the kernel said so.
    for path in ["/etc/rocworker/other", "/etc/rocworker/other/x", "/etc/crio/crio.conf"] {
        assert!(root.stat(path).unwrap_err().is_not_found(), "{path}");
    }
    // A file that is not there says nothing of the folder that it would be in.
    assert_eq!(root.stat("/etc/crio").unwrap_err().to_string(), "/etc/crio was not read from that machine");
    // The kernel's errors are its own.
    assert_eq!(
        text(&root, "/etc/docker/daemon.json/x"),
        "cannot open /etc/docker/daemon.json/x: Not a directory: something on the way to it is no folder, move that out of the way"
    );
    assert_eq!(
        root.list("/sys/kernel/debug").unwrap_err().to_string(),
        "cannot list /sys/kernel/debug: Permission denied"
    );
    assert_eq!(text(&root, "/proc/1/exe"), "cannot open /proc/1/exe: Permission denied");
    assert_eq!(text(&root, "/dev/kmsg"), "cannot read /dev/kmsg: cat: the pipe broke");
    // A file that could not be read gives the reason, and nothing else.
    assert_eq!(
        root.stat("/proc/1/exe").unwrap_err().to_string(),
        "cannot open /proc/1/exe: Permission denied"
    );
    // Whose owner was not read decides nothing.
    assert_eq!(
        root.read_trusted("/etc/docker/daemon.json", 99).unwrap_err().to_string(),
        "/etc/docker/daemon.json has an owner that was not read, and only root's is believed: ls -ld /etc/docker/daemon.json"
    );
}

#[test]
fn what_was_asked_and_not_read_is_recorded_for_all_that_share_the_files() {
    let root = of([("/etc", Content::Folder(vec!["x".into()])), ("/dev/kfd", Content::Node)]);
    assert!(root.stat("/etc/gone").is_err() && root.stat("/etc").is_ok() && !root.exists("/usr"));
    let of = |paths: &[(&str, Asked)]| paths.iter().map(|(path, asked)| (path.into(), *asked)).collect();
    assert_eq!(root.not_read(), of(&[("/usr", Asked::Meta)]));
    root.place().open().unwrap().read("/dev/kfd", 9).unwrap_err();
    root.stat("/etc/x").unwrap_err();
    root.list("/usr").unwrap_err();
    root.stat("/usr").unwrap_err();
    let all = [("/dev/kfd", Asked::Content), ("/etc/x", Asked::Meta), ("/usr", Asked::Content)];
    assert_eq!(root.not_read(), of(&all));
}

#[test]
fn what_cannot_be_reached_is_not_there_and_a_driver_refuses_root_when_it_is_read() {
    let root = of([
        ("/closed/x", Content::Unreachable(Errno::EACCES)),
        ("/sys/x", Content::Failed(Errno::EACCES)),
        ("/etc/x", Content::Failed(Errno::EACCES)),
    ]);
    assert!(!root.exists("/closed/x") && !root.is_there("/closed/x") && root.exists("/etc/x"));
    assert_eq!(root.stat("/closed/x").unwrap_err().to_string(), "cannot stat /closed/x: Permission denied");
    assert_eq!(text(&root, "/closed/x"), "cannot open /closed/x: Permission denied");
    assert_eq!(text(&root, "/sys/x"), "cannot read /sys/x: Permission denied");
    assert_eq!(text(&root, "/etc/x"), "cannot open /etc/x: Permission denied");
}

#[test]
fn of_two_answers_for_one_place_the_one_that_says_more_counts() {
    let (denied, words) = (|| Content::Failed(Errno::EACCES), || Content::Unread("dd broke".to_owned()));
    for (first, second, expected) in [
        (denied(), Content::Node, "cannot open /b/x: Permission denied"),
        (Content::Node, words(), "cannot read /b/x: dd broke"),
        (denied(), file("text"), "text"),
        (file("text"), Content::Failed(Errno::ENOENT), "text"),
        (Content::Node, Content::Node, "/b/x was not read from that machine"),
        (Content::Failed(Errno::EISDIR), Content::Node, "/b/x was not read from that machine"),
        (
            Content::Failed(Errno::ENOENT),
            Content::Failed(Errno::ENOENT),
            "cannot open /b/x: No such file or directory",
        ),
    ] {
        for (at_a, at_b) in [(first.clone(), second.clone()), (second, first)] {
            let link = Content::Link("b".into());
            assert_eq!(text(&of([("/a", link), ("/a/x", at_a), ("/b/x", at_b)]), "/b/x"), expected);
        }
    }
}

#[test]
fn the_files_of_root_and_of_their_reader_are_believed() {
    let meta = |uid, mode| Some(Meta { kind: Kind::Regular, mode, uid, gid: 0, len: 0, modified_s: 0 });
    let entries =
        [("/root", 0, 0o644), ("/reader", 1234, 0o600), ("/other", 1235, 0o644), ("/open", 0, 0o646)];
    let entries =
        entries.map(|(path, uid, mode)| (path.into(), Entry { meta: meta(uid, mode), content: file("x") }));
    let root = Root::of_files(Files { entries: entries.into(), reader: 1234 });
    let believed = ["/root", "/reader", "/other", "/open"].map(|path| root.read_trusted(path, 9).is_ok());
    assert_eq!(believed, [true, true, false, false]);
    assert!(!root.is_host());
}

#[test]
fn nothing_is_written_to_another_machine() {
    let root = of([("/etc", Content::Folder(vec!["x".into()])), ("/etc/x", file("x"))]);
    let how = Attributes { mode: 0o644, owner: None };
    let refused = "nothing is written to /etc: it is another machine's, whose files are only read here";
    let errors = [
        root.write("/etc/x", b"y", how).map(drop),
        root.write_link("/etc/y", Path::new("x")).map(drop),
        root.remove("/etc/x").map(drop),
        root.lock("/etc/lock", Duration::ZERO).map(drop),
        root.remove_tree("/etc/x"),
        root.make_folder("/etc/z", how),
    ];
    errors.into_iter().for_each(|error| {
        assert!(
            error
                .unwrap_err()
                .to_string()
                .ends_with(refused.trim_start_matches("nothing is written to /etc"))
        )
    });
    assert_eq!(root.write("/etc/x", b"y", how).unwrap_err().to_string(), refused);
    assert!(root.remove_empty_folder("/etc/x").is_ok_and(|gone| !gone));
}

#[derive(Default)]
struct Seen(Mutex<Vec<PathBuf>>);

impl Watch for Seen {
    fn begin(&self, path: &Path) -> Result<(), Duration> {
        self.0.lock().unwrap().push(path.to_owned());
        Ok(())
    }

    fn end(&self) {}
}

#[test]
fn it_is_opened_again_from_its_place_and_watched() {
    let seen = Arc::new(Seen::default());
    let root = of([("/a", file("x"))]).place().open().unwrap().watched_by(seen.clone());
    assert_eq!((text(&root, "/a"), root.place().path()), ("x".to_owned(), Path::new("/")));
    assert_eq!(*seen.0.lock().unwrap(), [Path::new("/a")]);
}
