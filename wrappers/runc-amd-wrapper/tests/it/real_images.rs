//! An image or a mount may have anything where a folder or a GPU would be put by default: the container starts.

use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::real;

use crate::machine::{CONCOURSE, Like, Machine, Program};

const NEEDED: &[&str] = &["runc", "unshare", "nsenter", "busybox", "mknod", "mkfifo"];

fn mknod(path: &Path, kind: &[&str]) {
    assert!(Command::new("mknod").arg(path).args(kind).status().unwrap().success());
}

fn change(file: &Path, edit: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    edit(&mut value);
    std::fs::write(file, value.to_string()).unwrap();
}

/// Puts something in a place.
type Plant = fn(&Path);

/// Files that are no folders, each with a name for messages.
const NO_FOLDERS: [(&str, Plant); 9] = [
    ("a file", |at| std::fs::write(at, "").unwrap()),
    ("a fifo", |at| mknod(at, &["p"])),
    ("a device", |at| mknod(at, &["c", "1", "3"])),
    ("a socket", |at| drop(std::os::unix::net::UnixListener::bind(at).unwrap())),
    ("a loop", |at| symlink(at.file_name().unwrap(), at).unwrap()),
    ("a link to /bin", |at| symlink("/bin", at).unwrap()),
    ("a link out of it", |at| symlink("../../../../../../../bin", at).unwrap()),
    ("a link to /proc", |at| symlink("/proc", at).unwrap()),
    ("a link to a file", |at| symlink("/bin/busybox", at).unwrap()),
];

#[test]
fn real_what_an_image_has_in_a_folders_place_stays_and_the_container_starts() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "none");
    let srv = machine.path("srv");
    std::fs::create_dir_all(srv.join("a")).unwrap();
    std::fs::write(srv.join("a/file"), "from the host\n").unwrap();
    change(&machine.path("etc/rocworker/wrapper.json"), |policy| policy["folders"] = json!([srv]));
    let script = format!("cat {}/a/file 2>/dev/null; /bin/busybox echo ran", srv.display());
    let like = Like { args: &["sh", "-c", &script], ..Like::default() };
    let start = |kind: &str, plant: &dyn Fn(&Path)| {
        let bundle = machine.bundle("b", like);
        let inside = bundle.join("rootfs").join(srv.strip_prefix("/").unwrap());
        plant(&inside);
        let output = machine.create_and_start(Program::Wrapper, &bundle, "b");
        machine.wrapper(&["delete", "--force", "b"]);
        assert!(output.status.success(), "{kind}: {output:?}");
        output
    };
    for is_above in [false, true] {
        for (kind, plant) in NO_FOLDERS {
            let output = start(kind, &|inside| {
                let at = if is_above { inside.to_owned() } else { inside.join("a") };
                std::fs::create_dir_all(at.parent().unwrap()).unwrap();
                // A socket's path is short.
                let short = tempfile::tempdir().unwrap();
                plant(&short.path().join("a"));
                assert!(Command::new("mv").arg(short.path().join("a")).arg(at).status().unwrap().success());
            });
            assert_eq!(output.stdout, "ran\n", "{kind}, above: {is_above}: {output:?}");
            let warned =
                output.stderr.contains("level=warning") && output.stderr.contains("has no place for it");
            assert!(warned && output.stderr.lines().count() == 1, "{kind}, above: {is_above}: {output:?}");
        }
    }
    for (kind, plant) in [
        ("nothing", (|_| {}) as Plant),
        ("the folder above", |inside| std::fs::create_dir_all(inside).unwrap()),
        ("the folder", |inside| std::fs::create_dir_all(inside.join("a")).unwrap()),
    ] {
        let output = start(kind, &plant);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("from the host\nran\n", ""), "{kind}");
    }
}

/// A bundle with the default of all GPUs, whose image and mounts are as the test says.
struct Case<'a> {
    machine: &'a Machine,
    bundle: PathBuf,
    /// The uid that is root in the container.
    root: u32,
}

impl<'a> Case<'a> {
    fn new(machine: &'a Machine, mapping: &'a [(u32, u32, u32)]) -> Self {
        let script = "for n in /dev/kfd /dev/dri/renderD128; do \
                      if [ -c $n ] && (: <> $n) 2>/dev/null; then echo $n opens; fi; done; echo ran";
        let like = Like { args: &["sh", "-c", script], mapping, ..Like::default() };
        let root = mapping.first().map_or(0, |(_, host, _)| *host);
        Self { machine, bundle: machine.bundle("b", like), root }
    }

    /// `/dev` is the image's.
    fn without_a_dev_of_its_own(&self) -> PathBuf {
        change(&self.config(), |config| {
            let mounts = config["mounts"].as_array_mut().unwrap();
            mounts.retain(|mount| mount["destination"] != "/dev");
        });
        self.folder("rootfs/dev")
    }

    /// A folder beside the bundle's config that the container's root may write in.
    fn folder(&self, name: &str) -> PathBuf {
        let path = self.bundle.join(name);
        std::fs::create_dir(&path).unwrap();
        chown(&path, Some(self.root), Some(self.root)).unwrap();
        path
    }

    fn mount(&self, destination: &str, kind: &str, source: &Path, options: &[&str]) {
        let mount = json!({"destination": destination, "type": kind, "source": source, "options": options});
        change(&self.config(), |config| config["mounts"].as_array_mut().unwrap().push(mount));
    }

    fn config(&self) -> PathBuf {
        self.bundle.join("config.json")
    }

    /// The container starts with plain runc. With the wrapper it starts too, and has the nodes or a warning.
    fn starts(&self, kind: &str, with_gpus: bool) {
        let before = std::fs::read(self.config()).unwrap();
        // What runc puts into an image stays there.
        let untouched = self.machine.path("untouched");
        let _ = std::fs::remove_dir_all(&untouched);
        assert!(Command::new("cp").arg("-a").args([&self.bundle, &untouched]).status().unwrap().success());
        let run = |program, bundle: &Path| {
            let output = self.machine.create_and_start(program, bundle, "b");
            self.machine.wrapper(&["delete", "--force", "b"]);
            output
        };
        let output = run(Program::Wrapper, &self.bundle);
        assert!(output.status.success(), "{kind}: {output:?}");
        let edited = std::fs::read(self.config()).unwrap() != before;
        assert_eq!(edited, with_gpus, "{kind}: {output:?}");
        if with_gpus {
            assert_eq!(
                output.stdout, "/dev/kfd opens\n/dev/dri/renderD128 opens\nran\n",
                "{kind}: {output:?}"
            );
            assert_eq!(output.stderr, "", "{kind}");
        } else {
            assert!(output.stdout.ends_with("ran\n"), "{kind}: {output:?}");
            assert!(!output.stdout.contains("renderD128 opens"), "{kind}: {output:?}");
            let warned =
                output.stderr.contains("level=warning") && output.stderr.contains("starts without GPUs");
            assert!(warned && output.stderr.lines().count() == 1, "{kind}: {output:?}");
            assert_eq!(self.machine.record("b"), None, "{kind}");
        }
        let plain = run(Program::Runc, &untouched);
        assert!(plain.status.success(), "plain runc, {kind}: {plain:?}");
    }
}

#[test]
fn real_what_an_image_has_in_a_gpus_place_costs_the_default_alone() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    for mapping in [&[][..], CONCOURSE] {
        let user = if mapping.is_empty() { "the host's users" } else { "a user namespace" };
        for (kind, plant) in NO_FOLDERS {
            let case = Case::new(&machine, mapping);
            case.without_a_dev_of_its_own();
            let short = tempfile::tempdir().unwrap();
            plant(&short.path().join("dri"));
            let to = case.bundle.join("rootfs/dev/dri");
            assert!(Command::new("mv").arg(short.path().join("dri")).arg(to).status().unwrap().success());
            case.starts(&format!("{kind} at /dev/dri, {user}"), false);
        }
        for (name, plant) in [
            ("a file", (|at| std::fs::write(at, "").unwrap()) as Plant),
            ("a fifo", |at| mknod(at, &["p"])),
            ("another device", |at| mknod(at, &["c", "1", "3"])),
            ("a folder", |at| std::fs::create_dir(at).unwrap()),
            ("a link", |at| symlink("null", at).unwrap()),
            ("a link to nothing", |at| symlink("nothing", at).unwrap()),
        ] {
            for node in ["kfd", "dri/renderD129"] {
                let case = Case::new(&machine, mapping);
                let dev = case.without_a_dev_of_its_own();
                case.folder("rootfs/dev/dri");
                plant(&dev.join(node));
                case.starts(&format!("{name} at /dev/{node}, {user}"), false);
            }
        }
    }
    for mapping in [&[][..], CONCOURSE] {
        let user = if mapping.is_empty() { "the host's users" } else { "a user namespace" };
        let case = Case::new(&machine, mapping);
        case.without_a_dev_of_its_own();
        case.starts(&format!("an empty /dev of the image's, {user}"), true);
        let case = Case::new(&machine, mapping);
        let dev = case.without_a_dev_of_its_own();
        mknod(&dev.join("kfd"), &["c", "10", "234"]);
        // runc opens a node at that path, to bind the host's over it.
        case.starts(&format!("the node itself, {user}"), mapping.is_empty());
        let case = Case::new(&machine, mapping);
        std::fs::write(case.folder("rootfs/dev").join("dri"), "").unwrap();
        case.starts(&format!("a file that the container's own /dev hides, {user}"), true);
    }
}

#[test]
fn real_what_is_mounted_in_a_gpus_place_costs_the_default_alone() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    for mapping in [&[][..], CONCOURSE] {
        let user = if mapping.is_empty() { "the host's users" } else { "a user namespace" };
        let named = |kind: &str| format!("{kind}, {user}");
        let case = Case::new(&machine, mapping);
        case.mount("/dev/dri", "bind", &case.folder("empty"), &["rbind", "ro"]);
        case.starts(&named("an empty folder, read-only"), false);

        let case = Case::new(&machine, mapping);
        case.mount("/dev/dri/", "", &case.folder("empty"), &["bind", "ro"]);
        case.starts(&named("the same without a type"), false);

        let case = Case::new(&machine, mapping);
        let file = case.bundle.join("file");
        std::fs::write(&file, "").unwrap();
        case.mount("/dev/dri", "bind", &file, &["bind"]);
        case.starts(&named("a file at /dev/dri"), false);

        let case = Case::new(&machine, mapping);
        let file = case.bundle.join("file");
        std::fs::write(&file, "").unwrap();
        case.mount("/dev/kfd", "bind", &file, &["bind", "ro"]);
        case.starts(&named("a file at /dev/kfd"), false);

        let case = Case::new(&machine, mapping);
        case.mount("/dev/kfd", "bind", Path::new("/dev/null"), &["bind"]);
        case.starts(&named("another device at /dev/kfd"), false);

        let case = Case::new(&machine, mapping);
        let source = case.folder("links");
        symlink("/bin/busybox", source.join("renderD128")).unwrap();
        case.mount("/dev/dri", "bind", &source, &["rbind"]);
        case.starts(&named("a link in what is mounted"), false);

        let case = Case::new(&machine, mapping);
        let source = case.folder("files");
        std::fs::write(source.join("renderD128"), "").unwrap();
        case.mount("/dev/dri", "bind", &source, &["rbind"]);
        case.starts(&named("a file in what is mounted"), false);

        let case = Case::new(&machine, mapping);
        let source = case.folder("dev");
        std::fs::write(source.join("dri"), "").unwrap();
        case.mount("/mnt", "bind", &source, &["rbind"]);
        case.starts(&named("what is mounted elsewhere"), true);

        let case = Case::new(&machine, mapping);
        case.mount("/dev/dri", "bind", Path::new("/dev/dri"), &["rbind", "ro"]);
        case.starts(&named("the host's own nodes, read-only"), mapping.is_empty());
    }
    let case = Case::new(&machine, &[]);
    case.mount("/dev/dri", "tmpfs", Path::new("tmpfs"), &["ro"]);
    case.starts("a tmpfs, read-only", false);

    let case = Case::new(&machine, &[]);
    case.mount("/dev/dri", "tmpfs", Path::new("tmpfs"), &["nosuid"]);
    case.starts("a tmpfs", true);
}

#[test]
fn real_a_device_of_the_bundle_a_link_of_the_image_and_a_counted_tmpfs_cost_the_default_alone() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    let device = |case: &Case<'_>, path: &str| {
        let device = json!({"path": path, "type": "c", "major": 1, "minor": 3, "fileMode": 438});
        change(&case.config(), |config| {
            let linux = config["linux"].as_object_mut().unwrap();
            let devices = linux.entry("devices").or_insert(json!([]));
            devices.as_array_mut().unwrap().push(device);
        });
    };
    for path in ["/dev/dri", "/dev//dri/../dri", "/dev/kfd"] {
        let case = Case::new(&machine, &[]);
        device(&case, path);
        case.starts(&format!("a device at {path}"), false);
    }
    let case = Case::new(&machine, &[]);
    device(&case, "/dev/drift");
    case.starts("a device beside the nodes", true);

    for (link, to) in [("ldev", "dev/dri"), ("ldev", "/dev/../dev/dri"), ("ldev", "../../dev/./dri")] {
        let case = Case::new(&machine, &[]);
        symlink(to, case.bundle.join("rootfs").join(link)).unwrap();
        case.mount("/ldev", "bind", &case.folder("empty"), &["rbind", "ro"]);
        case.starts(&format!("a mount by a link to {to}"), false);
    }
    let case = Case::new(&machine, &[]);
    case.folder("rootfs/run");
    symlink("/run", case.bundle.join("rootfs/var-run")).unwrap();
    case.mount("/var-run/it", "bind", &case.folder("empty"), &["rbind", "ro"]);
    case.starts("a mount by a link to elsewhere", true);

    for (at, option) in [("/dev/dri", "nr_inodes=1"), ("/dev/dri", "nr_inodes=2")] {
        let case = Case::new(&machine, &[]);
        case.mount(at, "tmpfs", Path::new("tmpfs"), &[option]);
        case.starts(&format!("a tmpfs at {at} with {option}"), false);
    }
    let case = Case::new(&machine, &[]);
    case.mount("/dev/dri", "tmpfs", Path::new("tmpfs"), &["size=1"]);
    case.starts("a tmpfs of one page: nodes take none", true);
}

/// The flag is of ext4, XFS and btrfs; tmpfs has it since Linux 6.6.
#[test]
fn real_an_image_whose_dev_is_immutable_costs_the_default_alone() {
    if !real::require_root(NEEDED) {
        return;
    }
    let machine = Machine::new();
    machine.policy("all", "all");
    let case = Case::new(&machine, &[]);
    let dev = case.without_a_dev_of_its_own();
    // runc puts these there itself.
    for (name, minor) in [("null", "3"), ("zero", "5"), ("full", "7"), ("random", "8"), ("urandom", "9")] {
        mknod(&dev.join(name), &["c", "1", minor]);
    }
    mknod(&dev.join("tty"), &["c", "5", "0"]);
    let folder = dev.join("dri");
    std::fs::create_dir(&folder).unwrap();
    let chattr = |flag: &str| Command::new("chattr").arg(flag).arg(&folder).status().unwrap().success();
    assert!(chattr("+i"));
    let output = machine.create_and_start(Program::Wrapper, &case.bundle, "b");
    machine.wrapper(&["delete", "--force", "b"]);
    assert!(chattr("-i"));
    assert!(output.status.success() && output.stderr.contains("starts without GPUs"), "{output:?}");
}
