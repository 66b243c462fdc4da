//! Files, folders and nodes as they change: inotify(7). A file that is replaced is another file: so its folder is
//! watched, and events of other names in it do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use root::{Kind, Root};

use super::RECEIPT;

/// What changes a folder or what is in it. A file counts once its writer has closed it.
const OF_FILES: AddWatchFlags = AddWatchFlags::IN_CLOSE_WRITE.union(OF_NODES);

/// What changes a folder of device nodes. A write that ends does not count: every program that uses a GPU opens and
/// closes its node for writing.
const OF_NODES: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

/// The name that means every name in a folder.
const ALL: &str = "*";

/// Names that matter in a folder.
type Names = BTreeSet<OsString>;

/// Everything in a folder, and the folder itself, as paths to watch.
pub fn all_in(folder: &Path) -> [PathBuf; 2] {
    [folder.to_owned(), folder.join(ALL)]
}

/// The folders that can be watched for paths, and the names that matter there. In the place of a folder that is not
/// there it is the nearest above, in which the next on the way down matters. Paths that are not absolute are no files.
fn watchable(paths: &BTreeSet<PathBuf>, is_folder: impl Fn(&Path) -> bool) -> BTreeMap<PathBuf, Names> {
    let mut found = BTreeMap::<PathBuf, Names>::new();
    for path in paths.iter().filter(|path| path.is_absolute()) {
        let mut way = path.ancestors().filter_map(|at| Some((at.parent()?, at.file_name()?)));
        if let Some((folder, name)) = way.find(|(folder, _)| is_folder(folder)) {
            found.entry(folder.to_owned()).or_default().insert(name.to_owned());
        }
    }
    found
}

/// Whether an event in a folder matters: of a name in it, or without one of the folder itself.
fn matters(names: &Names, name: Option<&OsStr>) -> bool {
    name.is_none_or(|name| names.contains(name) || names.contains(OsStr::new(ALL)))
}

/// What came since the last call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Events that matter.
    pub events: u64,
    /// How many of `events` are about the receipt, which a look that changes something writes itself.
    pub receipt: u64,
    /// How often the kernel dropped events: there were more than it keeps.
    pub lost: u64,
}

#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    watched: HashMap<WatchDescriptor, Names>,
    followed: BTreeMap<PathBuf, Names>,
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl Watch {
    pub fn new() -> Result<Self, Errno> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self { inotify, watched: HashMap::new(), followed: BTreeMap::new() })
    }

    /// Watches these paths from now on, and no others. The watch notices what changes after this call, also in folders
    /// that were made or removed since the last call.
    pub fn follow(&mut self, root: &Root, paths: &BTreeSet<PathBuf>) -> Result<(), String> {
        let is_folder = |path: &Path| root.stat(path).is_ok_and(|meta| meta.kind == Kind::Directory);
        let mut problem = None;
        // A folder that comes between the look and the watch above it is found by the second turn.
        for _ in 0..8 {
            let wanted = watchable(paths, is_folder);
            let is_settled = wanted == self.followed;
            let mut watched = HashMap::<WatchDescriptor, Names>::new();
            for (folder, names) in &wanted {
                let mask = if folder.starts_with("/dev") { OF_NODES } else { OF_FILES };
                match self.inotify.add_watch(&root.shown(folder), mask) {
                    // Two paths may lead to one folder.
                    Ok(id) => watched.entry(id).or_default().extend(names.iter().cloned()),
                    // The folder has just gone: the one above it has an event.
                    Err(Errno::ENOENT | Errno::ENOTDIR) => {}
                    Err(errno) => {
                        let folder = root.shown(folder);
                        problem = Some(format!("{} cannot be watched: {errno}", folder.display()));
                    }
                }
            }
            for id in self.watched.keys().filter(|id| !watched.contains_key(id)) {
                // The kernel has removed it already where the folder has gone.
                self.inotify.rm_watch(*id).ok();
            }
            (self.watched, self.followed) = (watched, wanted);
            if is_settled {
                break;
            }
        }
        problem.map_or(Ok(()), Err)
    }

    /// Reads what has come, and does not wait for more.
    pub fn read(&self) -> Result<Heard, Errno> {
        let mut heard = Heard::default();
        for _ in 0..256 {
            match self.inotify.read_events() {
                Ok(events) => events.iter().for_each(|event| self.hear(event, &mut heard)),
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(heard)
    }

    fn hear(&self, event: &InotifyEvent, heard: &mut Heard) {
        if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
            heard.lost += 1;
        } else if let Some(names) = self.watched.get(&event.wd)
            && matters(names, event.name.as_deref())
        {
            heard.events += 1;
            heard.receipt += u64::from(event.name.as_deref().is_some_and(|name| name == RECEIPT));
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use config::CDI_SPEC;

    /// What is done, how, and how many changes that matter it makes at the least.
    type Step<'a> = (&'a str, &'a dyn Fn(&Path), u64);

    fn heard(steps: &[Step<'_>]) {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["etc", "dev/dri"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("dev/dri/renderD128"), "").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let mut paths = BTreeSet::from([CDI_SPEC.into()]);
        paths.extend(all_in(Path::new("/dev/dri")));
        let mut watch = Watch::new().unwrap();
        watch.follow(&root, &paths).unwrap();
        for (what, step, least) in steps {
            step(dir.path());
            let heard = watch.read().unwrap();
            assert_eq!(
                (heard.events >= *least && (*least > 0 || heard.events == 0), heard.lost),
                (true, 0),
                "{what}"
            );
            watch.follow(&root, &paths).unwrap();
        }
    }

    #[test]
    fn what_matters_is_heard_and_other_names_are_not() {
        let write = |path: &'static str| move |dir: &Path| fs::write(dir.join(path), "x").unwrap();
        heard(&[
            ("another file", &write("etc/passwd"), 0),
            ("the folder comes", &|dir| fs::create_dir(dir.join("etc/cdi")).unwrap(), 1),
            ("another file beside it", &write("etc/cdi/other.json"), 0),
            ("the file comes", &write("etc/cdi/amd.json"), 1),
            (
                "it is replaced",
                &|dir| fs::rename(dir.join("etc/cdi/other.json"), dir.join("etc/cdi/amd.json")).unwrap(),
                1,
            ),
            (
                "its mode changes",
                &|dir| {
                    fs::set_permissions(dir.join("etc/cdi/amd.json"), Permissions::from_mode(0o600)).unwrap();
                },
                1,
            ),
            ("it is read", &|dir| drop(fs::read(dir.join("etc/cdi/amd.json")).unwrap()), 0),
            (
                "a node is used",
                &|dir| drop(fs::OpenOptions::new().write(true).open(dir.join("dev/dri/renderD128")).unwrap()),
                0,
            ),
            (
                "a node's mode changes",
                &|dir| {
                    fs::set_permissions(dir.join("dev/dri/renderD128"), Permissions::from_mode(0o600))
                        .unwrap();
                },
                1,
            ),
            ("the folder of nodes goes", &|dir| fs::remove_dir_all(dir.join("dev/dri")).unwrap(), 1),
            ("it comes back", &|dir| fs::create_dir(dir.join("dev/dri")).unwrap(), 1),
            ("with a node", &write("dev/dri/renderD128"), 1),
            (
                "a folder is put in another's place",
                &|dir| {
                    fs::create_dir(dir.join("etc/new")).unwrap();
                    fs::rename(dir.join("etc/cdi"), dir.join("etc/old")).unwrap();
                    fs::rename(dir.join("etc/new"), dir.join("etc/cdi")).unwrap();
                },
                1,
            ),
            ("in the new one", &write("etc/cdi/amd.json"), 1),
            ("in the old one", &write("etc/old/amd.json"), 0),
        ]);
    }

    #[test]
    fn more_than_the_kernel_keeps_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        fs::create_dir(dir.path().join("many")).unwrap();
        let mut watch = Watch::new().unwrap();
        watch.follow(&root, &all_in(Path::new("/many")).into()).unwrap();
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        // Two files by turns: an event that is as the one before it is not kept twice.
        for n in 0..limit.trim().parse::<usize>().unwrap() + 10 {
            fs::write(dir.path().join("many").join(["a", "b"][n % 2]), "").unwrap();
        }
        let (mut lost, mut events) = (0, 0);
        loop {
            let heard = watch.read().unwrap();
            (lost, events) = (lost + heard.lost, events + heard.events);
            if heard == Heard::default() {
                break;
            }
        }
        assert!(lost >= 1 && events > 0, "{lost} {events}");
    }

    fn these(names: &[&str]) -> Names {
        names.iter().map(OsString::from).collect()
    }

    #[test]
    fn paths_are_names_in_their_folders_and_of_a_missing_one_the_nearest_above_is_watched() {
        for (paths, there, expected) in [
            (
                &["/etc/group", "/etc/cdi/amd.json", "/etc/passwd"][..],
                &["/", "/etc", "/etc/cdi"][..],
                &[("/etc", &["group", "passwd"][..]), ("/etc/cdi", &["amd.json"])][..],
            ),
            (
                &["/dev/kfd", "/dev/dri/card0", "/dev/dri", "/dev/dri/*"],
                &["/", "/dev", "/dev/dri"],
                &[("/dev", &["dri", "kfd"]), ("/dev/dri", &["*", "card0"])],
            ),
            (
                &["/etc/docker/conf/daemon.json", "/etc/group", "/opt/a/b", "/opt/a/b/*"],
                &["/", "/etc"],
                &[("/", &["opt"]), ("/etc", &["docker", "group"])],
            ),
            (&["package:rocm", "/", "relative/file"], &["/"], &[]),
        ] {
            let paths = paths.iter().map(PathBuf::from).collect();
            let found = watchable(&paths, |folder| there.iter().any(|it| Path::new(it) == folder));
            let expected = expected.iter().map(|(folder, names)| (PathBuf::from(folder), these(names)));
            assert_eq!(found, expected.collect(), "{paths:?}");
        }
    }

    #[test]
    fn what_happens_to_other_names_is_nothing() {
        for (names, name, expected) in [
            (these(&["a"]), Some("a"), true),
            (these(&["a"]), Some("b"), false),
            (these(&["a"]), None, true),
            (these(&[ALL]), Some("b"), true),
        ] {
            assert_eq!(matters(&names, name.map(OsStr::new)), expected, "{names:?} {name:?}");
        }
    }
}
