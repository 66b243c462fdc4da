//! A machine served through FUSE: reads can fail as sysfs' reads do, wait, or never come back. What was read is noted.
//! Writes are a driver's, where the machine has one ([`Served::driven`]).
//!
//! Needs root and /dev/fuse ([`require`]). The mount goes when the [`Served`] is dropped; reads that hang then fail.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fuser::{
    BackgroundSession, Config, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, SessionACL, WriteFlags,
};
use nix::errno::Errno;
use tempfile::TempDir;

use crate::real;

/// Whether the calling test can mount: it is root, and /dev/fuse is there.
///
/// # Panics
/// Where [`real::require`] panics.
#[must_use = "a test that cannot run must return"]
#[track_caller]
pub fn require() -> bool {
    real::require_root_and(Path::new("/dev/fuse").exists(), "there is no /dev/fuse: modprobe fuse")
}

/// The fault of reading a file, or of listing a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The read fails; the open before it succeeds, as with sysfs.
    Errno(Errno),
    /// The read does not come back before [`Served::release`].
    Block,
    /// The read succeeds after this time. Other reads do not wait for it.
    Delay(Duration),
}

/// A request that the file system has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Open,
    Read,
    /// A list of a folder's names.
    List,
}

/// A machine's folder, mounted.
#[derive(Debug)]
pub struct Served {
    session: Option<BackgroundSession>,
    mount: PathBuf,
    /// The folder of the mount, where it has one of its own.
    folder: Option<TempDir>,
    state: Arc<State>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("source", &self.source).finish_non_exhaustive()
    }
}

/// What a write does to the machine: the folder in which it is laid out afterwards, or the kernel's error.
pub type Write = Box<dyn FnMut(&Path, &str) -> Result<PathBuf, Errno> + Send>;

struct State {
    /// Where the machine is laid out now.
    source: Mutex<PathBuf>,
    write: Option<Mutex<Write>>,
    /// Inside the machine, by inode number from 1.
    paths: Mutex<Paths>,
    faults: Mutex<BTreeMap<PathBuf, Fault>>,
    every: Mutex<Option<Fault>>,
    hanging: Mutex<Vec<ReplyData>>,
    log: Mutex<Vec<(Operation, PathBuf)>>,
}

#[derive(Debug, Default)]
struct Paths {
    by_inode: Vec<PathBuf>,
    inodes: HashMap<PathBuf, u64>,
}

impl Served {
    /// Serves what is beneath `source`, which may change meanwhile.
    ///
    /// # Panics
    /// Where it cannot be mounted.
    pub fn new(source: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut served = Self::at(source, folder.path());
        served.folder = Some(folder);
        served
    }

    /// Serves what is beneath `source` at this folder, as a machine's /sys alone.
    ///
    /// # Panics
    /// Where it cannot be mounted.
    pub fn at(source: &Path, mount: &Path) -> Self {
        Self::with(source, mount, None)
    }

    /// Serves what is beneath `source` at a folder; a write is what `write` makes of it.
    ///
    /// # Panics
    /// Where it cannot be mounted.
    pub fn driven(source: &Path, mount: &Path, write: Write) -> Self {
        Self::with(source, mount, Some(Mutex::new(write)))
    }

    fn with(source: &Path, mount: &Path, write: Option<Mutex<Write>>) -> Self {
        let access = if write.is_some() { MountOption::RW } else { MountOption::RO };
        let state = Arc::new(State {
            source: Mutex::new(source.canonicalize().unwrap()),
            write,
            paths: Mutex::default(),
            faults: Mutex::default(),
            every: Mutex::default(),
            hanging: Mutex::default(),
            log: Mutex::default(),
        });
        state.inode(Path::new("/"));
        let mut config = Config::default();
        config.mount_options = vec![access, MountOption::FSName("rocworker-test".to_owned())];
        config.acl = SessionACL::All;
        let session = fuser::spawn_mount(Sysfs(Arc::clone(&state)), mount, &config).unwrap();
        Self { session: Some(session), mount: mount.to_owned(), folder: None, state }
    }

    /// The path of the mounted machine, for `--root`.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// From now on this file or folder has the fault. The path begins at the machine's root and may lead
    /// through its links.
    ///
    /// # Panics
    /// Where nothing is there.
    pub fn fault(&self, path: &str, fault: Fault) {
        let path = self.real(path);
        lock(&self.state.faults).insert(path, fault);
    }

    /// From now on every file and folder without a fault of its own has this one.
    pub fn fault_everywhere(&self, fault: Fault) {
        *lock(&self.state.every) = Some(fault);
    }

    /// Serves another folder from now on.
    pub fn serve(&self, source: PathBuf) {
        *lock(&self.state.source) = source;
    }

    /// Takes all faults away. Reads that hang keep hanging.
    pub fn mend(&self) {
        lock(&self.state.faults).clear();
        *lock(&self.state.every) = None;
    }

    /// Lets the reads that hang fail with EIO, and says how many there were.
    pub fn release(&self) -> usize {
        let hanging = std::mem::take(&mut *lock(&self.state.hanging));
        let count = hanging.len();
        hanging.into_iter().for_each(|reply| reply.error(fuser::Errno::EIO));
        count
    }

    /// The number of reads that hang now.
    pub fn hanging(&self) -> usize {
        lock(&self.state.hanging).len()
    }

    /// The requests since the last call, in order, with their paths inside the machine after links are
    /// followed.
    pub fn take_log(&self) -> Vec<(Operation, PathBuf)> {
        std::mem::take(&mut *lock(&self.state.log))
    }

    /// The path that a path inside the machine leads to, as the log names it.
    ///
    /// # Panics
    /// Where nothing is there.
    pub fn real(&self, path: &str) -> PathBuf {
        let real = self.state.beneath(Path::new(path)).canonicalize().unwrap();
        Path::new("/").join(real.strip_prefix(&*lock(&self.state.source)).unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.mend();
        self.release();
        // A reading process whose answer has just come back closes its file in a moment.
        let end = Instant::now() + Duration::from_secs(5);
        while has_open_files(self.path()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(session) = self.session.take() {
            // A process that still has a file open keeps the mount busy: the test fails, and says so.
            let result = session.umount_and_join();
            if !std::thread::panicking() {
                result.unwrap();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl State {
    fn beneath(&self, path: &Path) -> PathBuf {
        lock(&self.source).join(path.strip_prefix("/").unwrap_or(path))
    }

    fn inode(&self, path: &Path) -> u64 {
        let mut paths = lock(&self.paths);
        if let Some(inode) = paths.inodes.get(path) {
            return *inode;
        }
        paths.by_inode.push(path.to_owned());
        let inode = paths.by_inode.len() as u64;
        paths.inodes.insert(path.to_owned(), inode);
        inode
    }

    fn path(&self, inode: INodeNo) -> PathBuf {
        let index = usize::try_from(u64::from(inode)).unwrap() - 1;
        lock(&self.paths).by_inode[index].clone()
    }

    fn attributes(&self, path: &Path) -> io::Result<FileAttr> {
        let stat = fs::symlink_metadata(self.beneath(path))?;
        Ok(attributes(self.inode(path), &stat))
    }

    fn answer(&self, path: &Path, offset: usize, size: usize, reply: ReplyData) {
        match fs::read(self.beneath(path)) {
            Ok(bytes) => {
                let start = offset.min(bytes.len());
                let end = (start + size).min(bytes.len());
                reply.data(&bytes[start..end]);
            }
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn note(&self, operation: Operation, path: &Path) {
        lock(&self.log).push((operation, path.to_owned()));
    }

    fn fault_of(&self, path: &Path) -> Option<Fault> {
        lock(&self.faults).get(path).copied().or(*lock(&self.every))
    }
}

fn attributes(inode: u64, stat: &Metadata) -> FileAttr {
    let time = stat.modified().unwrap();
    let kind = kind(stat);
    FileAttr {
        ino: INodeNo(inode),
        // sysfs reports one page, whatever a read gives.
        size: if kind == FileType::RegularFile { 4096 } else { stat.len() },
        blocks: 0,
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind,
        perm: u16::try_from(stat.mode() & 0o7777).unwrap(),
        nlink: 1,
        uid: stat.uid(),
        gid: stat.gid(),
        rdev: u32::try_from(stat.rdev()).unwrap_or(0),
        blksize: 4096,
        flags: 0,
    }
}

fn kind(stat: &Metadata) -> FileType {
    match stat.file_type() {
        it if it.is_dir() => FileType::Directory,
        it if it.is_symlink() => FileType::Symlink,
        it if it.is_char_device() => FileType::CharDevice,
        _ => FileType::RegularFile,
    }
}

/// Whether a process has a file beneath a mount open, by the links of /proc, which do not reach the file
/// system.
fn has_open_files(mount: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut files = processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok()).flatten();
    files.any(|file| {
        file.is_ok_and(|file| fs::read_link(file.path()).is_ok_and(|target| target.starts_with(mount)))
    })
}

fn errno(error: &io::Error) -> fuser::Errno {
    fuser::Errno::from_i32(error.raw_os_error().unwrap_or(Errno::EIO as i32))
}

struct Sysfs(Arc<State>);

/// How long the kernel may keep an answer. What a name leads to does not change where nobody writes, and the kernel
/// notices at the next open that a file has gone.
const KEPT: Duration = Duration::from_secs(60);

impl State {
    fn kept(&self) -> Duration {
        if self.write.is_some() { Duration::ZERO } else { KEPT }
    }
}

impl Filesystem for Sysfs {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.0.attributes(&self.0.path(parent).join(name)) {
            Ok(attributes) => reply.entry(&self.0.kept(), &attributes, Generation(0)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.0.attributes(&self.0.path(inode)) {
            Ok(attributes) => reply.attr(&self.0.kept(), &attributes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match fs::read_link(self.0.beneath(&self.0.path(inode))) {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let path = self.0.path(inode);
        self.0.note(Operation::Open, &path);
        match fs::symlink_metadata(self.0.beneath(&path)) {
            // Reads come one by one and may be short, as those of sysfs.
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let path = self.0.path(inode);
        self.0.note(Operation::Read, &path);
        let at = usize::try_from(offset).unwrap();
        match self.0.fault_of(&path) {
            None => self.0.answer(&path, at, size as usize, reply),
            Some(Fault::Errno(errno)) => reply.error(fuser::Errno::from_i32(errno as i32)),
            Some(Fault::Block) => lock(&self.0.hanging).push(reply),
            Some(Fault::Delay(time)) => {
                let state = Arc::clone(&self.0);
                std::thread::spawn(move || {
                    std::thread::sleep(time);
                    state.answer(&path, at, size as usize, reply);
                });
            }
        }
    }

    /// A shell truncates the file before it writes; sysfs ignores that.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<std::time::SystemTime>,
        _: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.0.attributes(&self.0.path(inode)) {
            Ok(attributes) => reply.attr(&self.0.kept(), &attributes),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let path = self.0.path(inode);
        let Some(write) = &self.0.write else { return reply.error(fuser::Errno::EROFS) };
        match lock(write)(&path, String::from_utf8_lossy(data).trim()) {
            Ok(source) => {
                *lock(&self.0.source) = source;
                reply.written(u32::try_from(data.len()).unwrap());
            }
            Err(errno) => reply.error(fuser::Errno::from_i32(errno as i32)),
        }
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let path = self.0.path(inode);
        if offset == 0 {
            self.0.note(Operation::List, &path);
        }
        match self.0.fault_of(&path) {
            Some(Fault::Errno(errno)) => return reply.error(fuser::Errno::from_i32(errno as i32)),
            // The one thread of this file system waits too: folders are listed rarely.
            Some(Fault::Delay(time)) => std::thread::sleep(time),
            Some(Fault::Block) | None => {}
        }
        let entries = match fs::read_dir(self.0.beneath(&path)) {
            Ok(entries) => entries.map(|entry| entry.unwrap()),
            Err(error) => return reply.error(errno(&error)),
        };
        let mut names: Vec<_> = entries.map(|entry| (entry.file_name(), entry.metadata())).collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        for (next, (name, stat)) in (1..).zip(names).skip(usize::try_from(offset).unwrap()) {
            let Ok(stat) = stat else { continue };
            let inode = INodeNo(self.0.inode(&path.join(&name)));
            if reply.add(inode, next, kind(&stat), &name) {
                break;
            }
        }
        reply.ok();
    }
}

#[cfg(test)]
mod tests {
    use super::{Errno, Fault, Operation, Served};
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    #[test]
    fn real_fuse_serves_a_folder_with_its_faults_and_notes_what_is_read() {
        if !super::require() {
            return;
        }
        let source = tempfile::tempdir().unwrap();
        let folder = source.path().join("sys/devices/a");
        fs::create_dir_all(&folder).unwrap();
        for name in ["good", "bad", "slow", "stuck"] {
            fs::write(folder.join(name), format!("{name}\n")).unwrap();
        }
        std::os::unix::fs::symlink("devices/a", source.path().join("sys/link")).unwrap();
        let served = Served::new(source.path());
        served.fault("/sys/link/bad", Fault::Errno(Errno::EINVAL));
        served.fault("/sys/link/slow", Fault::Delay(Duration::from_millis(50)));
        served.fault("/sys/link/stuck", Fault::Block);

        let link = served.path().join("sys/link");
        let stuck = link.join("stuck");
        let stuck = std::thread::spawn(move || fs::read(stuck).unwrap_err().raw_os_error());
        while served.hanging() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(served.take_log()[0], (Operation::Open, "/sys/devices/a/stuck".into()));
        assert_eq!(fs::read_to_string(link.join("good")).unwrap(), "good\n", "beside one that hangs");
        let log = served.take_log();
        assert_eq!(log[0], (Operation::Open, "/sys/devices/a/good".into()));
        assert!(log.contains(&(Operation::Read, "/sys/devices/a/good".into())), "{log:?}");
        assert_eq!(fs::read(link.join("bad")).unwrap_err().raw_os_error(), Some(Errno::EINVAL as i32));
        let start = Instant::now();
        assert_eq!(fs::read_to_string(link.join("slow")).unwrap(), "slow\n");
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert_eq!(fs::read_dir(&link).unwrap().count(), 4);
        fs::remove_file(folder.join("good")).unwrap();
        assert_eq!(fs::read(link.join("good")).unwrap_err().raw_os_error(), Some(Errno::ENOENT as i32));
        assert_eq!(served.release(), 1);
        assert_eq!(stuck.join().unwrap(), Some(Errno::EIO as i32));
        let mount = served.path().to_owned();
        drop(served);
        assert!(!fs::read_to_string("/proc/mounts").unwrap().contains(mount.to_str().unwrap()));
        assert!(!Path::new(&mount).exists());
    }
}
