//! Archives that real apt-helper fetches from a server on loopback, and the folders that they become, on a copy of this
//! system and on a second release of Debian.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::packages::worker::{Ran, Worker};
use lab::machine::Machine;
use lab::repository::sha256;
use lab::server::{Misbehaviour, Server, nobody};
use lab::systems;
use lab::tarball::{Hostile, Tarball};
use support::tree::Tree;

const FOLDER: &str = "/opt/rocm-7.0";
/// The archive's path on the server.
const ARCHIVE: &str = "/rocm.tar.gz";

/// A machine, and a server with archives.
struct Place {
    worker: Worker,
    server: Server,
    served: tempfile::TempDir,
}

impl Place {
    fn new(machine: Machine) -> Self {
        let worker = Worker::new(machine, []);
        let served = tempfile::tempdir().unwrap();
        let server = Server::start(served.path());
        Self { worker, server, served }
    }

    /// Serves an archive. What is wanted then.
    fn serve(&self, archive: &[u8]) -> String {
        fs::write(self.served.path().join(&ARCHIVE[1..]), archive).unwrap();
        format!("unpack {FOLDER} {}{ARCHIVE} {}", self.server.url(), sha256(archive))
    }

    fn apply(&self, wanted: &[&str]) -> Ran {
        let mut order = self.worker.order(wanted);
        order.repository = None;
        self.worker.run(&order)
    }

    fn tree(&self) -> Tree {
        self.worker.machine.tree(&["opt", "etc", "var/lib/rocworker", "var/cache"])
    }

    /// Checks that nothing of the archive is left anywhere.
    #[track_caller]
    fn is_as(&self, before: &Tree) {
        let off: Vec<String> = self.tree().differences(&[before]);
        // The lock of our own state stays.
        let off: Vec<&String> = off.iter().filter(|line| !line.contains("var/lib/rocworker")).collect();
        assert!(off.is_empty(), "{off:#?}");
        assert!(!self.worker.machine.outside("/var/lib/rocworker/unpacked").exists());
    }
}

#[test]
fn real_an_archive_becomes_a_folder_and_undo_takes_all_of_it_away() {
    for (system, machine) in systems::each() {
        let place = Place::new(machine);
        let machine = &place.worker.machine;
        let before = place.tree();
        let wanted = place.serve(&Tarball::therock("7.0").bytes());
        let ran = place.apply(&[&wanted]);
        assert!(ran.failed.is_empty() && ran.error.is_none() && ran.done.len() == 1, "{system}: {ran:#?}");
        let problem = machine.call(&["/opt/rocm-7.0/bin/rocminfo"]).well();
        assert_eq!(problem, "rocminfo of 7.0\n", "{system}");
        let link = machine.call(&["readlink", "/opt/rocm-7.0/lib/libamdhip64.so"]).well();
        assert_eq!(link, "libamdhip64.so.7\n", "{system}");
        // include/hip stands in no entry of its own.
        for folder in ["", "bin", "include", "include/hip", ".info"] {
            let meta = fs::metadata(machine.outside(&format!("{FOLDER}/{folder}"))).unwrap();
            assert_eq!(meta.permissions().mode() & 0o7777, 0o755, "{system}: {folder}");
        }
        assert!(!machine.outside("/var/cache/rocworker").exists(), "{system}");
        assert!(ran.steps.iter().any(|step| step.contains("100.0) Unpacking the archive")), "{ran:#?}");

        let asked = place.server.requests().len();
        let again = place.apply(&[&wanted]);
        assert!(again.planned.is_empty() && again.blocked.is_empty(), "{system}: {again:#?}");
        assert_eq!(place.server.requests().len(), asked, "{system}: a second apply asks nobody");

        // What Python leaves beside its sources is nobody's.
        machine.put(&format!("{FOLDER}/bin/__pycache__/x.cpython-311.pyc"), "x");
        let undone = place.worker.undo();
        assert!(undone.is_bare && undone.left.is_empty(), "{system}: {undone:#?}");
        place.is_as(&before);
    }
}

#[test]
fn real_what_somebody_has_put_into_the_folder_or_changed_keeps_it_whole() {
    let Some(machine) = systems::this() else { return };
    let place = Place::new(machine);
    let machine = &place.worker.machine;
    let before = place.tree();
    let wanted = place.serve(&Tarball::therock("7.0").bytes());
    for (path, problem) in [
        ("lib/of-theirs/libmine.so", "in it: /opt/rocm-7.0/lib/of-theirs;"),
        ("bin/rocminfo", "in it: /opt/rocm-7.0/bin/rocminfo;"),
    ] {
        place.apply(&[&wanted]);
        let path = format!("{FOLDER}/{path}");
        machine.put(&path, "of theirs\n");
        let tree = place.tree();
        let undone = place.worker.undo();
        assert!(!undone.is_bare && undone.planned.is_empty(), "{undone:#?}");
        assert!(undone.left[0].contains(problem), "{undone:#?}");
        assert!(tree.differences(&[&place.tree()]).is_empty(), "{undone:#?}");
        let undone = place.worker.undo_by_force();
        assert!(undone.is_bare, "{undone:#?}");
        place.is_as(&before);
    }
}

#[test]
fn real_a_folder_that_is_somebodys_or_has_lost_something_is_told_and_left() {
    let Some(machine) = systems::this() else { return };
    let place = Place::new(machine);
    let machine = &place.worker.machine;
    let wanted = place.serve(&Tarball::therock("7.0").bytes());
    machine.put(&format!("{FOLDER}/bin/rocminfo"), "of theirs\n");
    let ran = place.apply(&[&wanted]);
    assert!(ran.blocked[0].contains("a folder is there, which rocworker has not unpacked"), "{ran:#?}");
    assert_eq!(machine.text(&format!("{FOLDER}/bin/rocminfo")).as_deref(), Some("of theirs\n"));
    assert!(place.worker.undo().is_bare);
    fs::remove_dir_all(machine.outside(FOLDER)).unwrap();

    place.apply(&[&wanted]);
    let other = place.serve(&Tarball::therock("7.1").bytes());
    let ran = place.apply(&[&other]);
    assert!(ran.blocked[0].contains("another archive was unpacked there"), "{ran:#?}");
    fs::remove_dir_all(machine.outside(&format!("{FOLDER}/include"))).unwrap();
    let ran = place.apply(&[&wanted]);
    assert!(ran.blocked[0].contains("include is missing from it"), "{ran:#?}");
    fs::remove_dir_all(machine.outside(FOLDER)).unwrap();
    let wanted = place.serve(&Tarball::therock("7.0").bytes());
    let ran = place.apply(&[&wanted]);
    assert!(ran.planned[0].starts_with("Repair /opt/rocm-7.0"), "{ran:#?}");
    assert!(machine.outside(&format!("{FOLDER}/include")).exists());
    assert!(place.worker.undo().is_bare);
}

#[test]
fn real_an_archive_that_is_not_the_one_that_is_meant_leaves_nothing() {
    for (system, machine) in systems::each() {
        let place = Place::new(machine);
        let before = place.tree();
        let archive = Tarball::therock("7.0").bytes();
        let wanted = place.serve(&archive);
        let cases = [
            (Misbehaviour::Other(Tarball::therock("7.1").bytes()), "is not used: its SHA-256 is "),
            (Misbehaviour::Cut(archive.len() / 2), "could not be fetched: "),
            (Misbehaviour::Close, "could not be fetched: "),
            (Misbehaviour::Status(404), "could not be fetched: apt: "),
        ];
        for (how, problem) in cases {
            place.server.misbehave(ARCHIVE, how.clone());
            let ran = place.apply(&[&wanted]);
            assert!(ran.failed.len() == 1 && ran.failed[0].contains(problem), "{system}: {how:?}: {ran:#?}");
            assert!(ran.failed[0].contains(&place.server.url()), "{system}: {ran:#?}");
            assert!(ran.is_bare, "{system}: {ran:#?}");
            place.is_as(&before);
        }
        place.server.behave();
        let offline = format!("unpack {FOLDER} {}{ARCHIVE} {}", nobody(), sha256(&archive));
        let ran = place.apply(&[&offline]);
        assert!(ran.failed[0].contains("could not be fetched: "), "{system}: {ran:#?}");
        // What is no archive, lacks something or is hostile has the right checksum all the same.
        let hostile = |how| (Tarball::therock("7.0").hostile(how).bytes(), "nothing of it is unpacked");
        let unfit = [
            (b"no archive\n".to_vec(), "it cannot be read as a .tar.gz"),
            (Tarball::default().folder("bin").folder("lib").bytes(), "include is not in it"),
        ];
        for (archive, problem) in unfit.into_iter().chain(Hostile::ALL.map(hostile)) {
            let ran = place.apply(&[&place.serve(&archive)]);
            assert!(ran.failed[0].contains(problem), "{system}: {ran:#?}");
            assert!(!ran.steps.iter().any(|step| step.contains("Unpacking")), "{system}: {ran:#?}");
            place.is_as(&before);
        }
    }
}

/// An archive that the system's own tar makes of a tree with names of more than a hundred bytes, hard links
/// and holes.
#[test]
fn real_an_archive_of_the_systems_tar_comes_out_as_tar_itself_unpacks_it() {
    let Some(machine) = systems::this() else { return };
    let place = Place::new(machine);
    let machine = &place.worker.machine;
    let long = format!("lib/{}/{}", "long-".repeat(18), "name-".repeat(22));
    machine.put(&format!("/root/tree/{long}"), "long\n");
    for file in ["bin/tool", "include/x.h"] {
        machine.put(&format!("/root/tree/{file}"), file);
    }
    machine.call(&["ln", "/root/tree/bin/tool", "/root/tree/bin/same"]).well();
    machine.call(&["ln", "-s", "../bin/tool", "/root/tree/lib/tool"]).well();
    machine.call(&["truncate", "--size=300000", "/root/tree/lib/hole"]).well();
    for options in [&["--format=gnu", "--sparse"][..], &["--format=posix"], &["--format=posix", "--sparse"]] {
        let make = ["tar", "--create", "--gzip", "--directory=/root/tree", "--file=/root/a.tgz"];
        let make = [&make[..], options, &["."]].concat();
        machine.call(&make).well();
        machine.call(&["rm", "-rf", "/root/theirs"]).well();
        machine.call(&["mkdir", "/root/theirs"]).well();
        machine.call(&["tar", "--extract", "--directory=/root/theirs", "--file=/root/a.tgz"]).well();
        let archive = fs::read(machine.outside("/root/a.tgz")).unwrap();
        // Without a server.
        let wanted = format!("unpack {FOLDER} file:/root/a.tgz {}", sha256(&archive));
        let ran = place.apply(&[&wanted]);
        if options == ["--format=posix", "--sparse"] {
            assert!(
                ran.failed[0].contains("has holes as GNU tar writes them into a pax archive"),
                "{ran:#?}"
            );
            continue;
        }
        assert!(ran.failed.is_empty(), "{options:?}: {ran:#?}");
        machine.call(&["diff", "-r", "--no-dereference", "/root/theirs", FOLDER]).well();
        assert!(place.worker.undo().is_bare);
        assert!(machine.outside("/root/a.tgz").exists(), "somebody's own archive stays");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_disk_without_room_is_told_before_it_is_full_and_nothing_stays() {
    let Some(machine) = systems::this() else { return };
    let place = Place::new(machine);
    let machine = &place.worker.machine;
    let before = place.tree();
    // The archive packs well: little comes, and much would be there.
    let large = Tarball::therock("7.0").file("lib/large", 0o644, &vec![0; 600 << 20]);
    let wanted = place.serve(&large.bytes());
    machine.leave_free(500 << 20);
    let ran = place.apply(&[&wanted]);
    assert!(
        ran.failed[0].contains("it takes 600 MiB unpacked, and the file system of /opt/rocm-7.0 has "),
        "{ran:#?}"
    );
    place.is_as(&before);
    // More comes than there is room for: it is given up before the disk is full.
    let noise: Vec<u8> =
        (0..6_u32 << 18).flat_map(|it| it.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let long = place.serve(&noise);
    machine.leave_free((256 << 20) + (3 << 20));
    let ran = place.apply(&[&long]);
    assert!(ran.failed[0].contains("which is more than may come"), "{ran:#?}");
    place.is_as(&before);
    // No room for what comes.
    machine.leave_free(1 << 20);
    let ran = place.apply(&[&wanted]);
    assert!(ran.failed[0].contains("has room"), "{ran:#?}");
    place.is_as(&before);
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_server_that_hangs_is_given_up_and_a_proxy_is_asked() {
    let Some(machine) = systems::this() else { return };
    let place = Place::new(machine);
    let archive = Tarball::therock("7.0").bytes();
    let wanted = place.serve(&archive);
    place.server.misbehave(ARCHIVE, Misbehaviour::Stall(100));
    let begun = Instant::now();
    let ran = place.apply(&[&wanted]);
    assert!(ran.failed[0].contains("could not be fetched: "), "{ran:#?}");
    assert!(begun.elapsed() < Duration::from_secs(150), "it was waited for");
    assert!(ran.steps.iter().any(|step| step.contains("MiB have come")), "{ran:#?}");
    place.server.behave();

    let proxy = format!("Acquire::http::Proxy \"{}\";\n", place.server.url());
    place.worker.machine.put("/etc/apt/apt.conf.d/99proxy", proxy);
    let wanted = format!("unpack {FOLDER} http://rocm.example{ARCHIVE} {}", sha256(&archive));
    let ran = place.apply(&[&wanted]);
    assert!(ran.failed.is_empty(), "{ran:#?}");
    let asked = place.server.requests().into_iter().next_back().unwrap();
    assert_eq!(asked.authority.as_deref(), Some("rocm.example"));
    assert!(place.worker.undo().is_bare);
}
