//! Reads the kernel's own buffer, /dev/kmsg (Documentation/ABI/testing/dev-kmsg): a record a read.
//!
//! Beneath a Root other than `/`, a plain file in this format stands in for the device.

mod file;
mod record;

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use nix::errno::Errno;
use nix::sys::stat::{major, minor};
use root::{Kind, Root};

use file::Lines;
pub use record::Record;

use crate::origin::Origin;

pub const PATH: &str = "/dev/kmsg";

/// Documentation/admin-guide/devices.txt.
const NUMBER: (u64, u64) = (1, 11);

/// CONSOLE_EXT_LOG_MAX of kernel/printk/internal.h: no record of the kernel's is longer.
const LONGEST_RECORD: usize = 8192;

/// The most records of one [`Kmsg::read`]: a kernel that logs without pause must not hold its reader.
const MOST_RECORDS: usize = 4096;

/// The buffer, read from its oldest record on.
#[derive(Debug)]
pub struct Kmsg {
    source: Source,
    /// The file's name in errors.
    shown: String,
}

#[derive(Debug)]
enum Source {
    Device(File),
    Plain(Lines),
}

/// The records since the last read.
#[derive(Debug, Default)]
pub struct Read {
    pub records: Vec<Record>,
    /// Whether the kernel has overwritten records before this reader reached them.
    pub lost: bool,
    /// Whether this read stopped at its limit: another one may give more at once.
    pub more: bool,
}

impl Kmsg {
    /// # Errors
    /// A sentence: it cannot be opened.
    pub fn open(root: &Root) -> Result<Self, String> {
        let shown = root.shown(PATH).display().to_string();
        let refused = || {
            let plain = if root.is_host() { "" } else { ", nor a plain file in its place" };
            let (major, minor) = NUMBER;
            format!("{shown} is not the kernel's log, a character device {major}:{minor}{plain}: remove it")
        };
        // Before it is opened: some devices act on that alone.
        match root.lstat(PATH).map_err(not_opened)?.kind {
            Kind::Character { major, minor } if (major, minor) == NUMBER => {}
            Kind::Regular if !root.is_host() => {}
            _ => return Err(refused()),
        }
        let file = root.open_to_read(PATH).map_err(not_opened)?;
        let meta = file.metadata().map_err(|error| format!("cannot stat {shown}: {error}"))?;
        let kind = meta.file_type();
        let source = if kind.is_char_device() && (major(meta.rdev()), minor(meta.rdev())) == NUMBER {
            Source::Device(file)
        } else if kind.is_file() && !root.is_host() {
            Source::Plain(Lines::new(file))
        } else {
            return Err(refused());
        };
        Ok(Self { source, shown })
    }

    /// Does not wait. Reads some thousand records at the most.
    ///
    /// # Errors
    /// A sentence: the kernel gives no more.
    pub fn read(&mut self) -> Result<Read, String> {
        let read = match &mut self.source {
            Source::Device(device) => read_device(device),
            Source::Plain(lines) => lines.read(),
        };
        read.map_err(|error| format!("cannot read {}: {error}", self.shown))
    }
}

fn not_opened(error: root::Error) -> String {
    let remedy = if error.is_denied() { ": run this as root or with CAP_SYSLOG" } else { "" };
    format!("{error}{remedy}")
}

fn read_device(device: &mut impl std::io::Read) -> std::io::Result<Read> {
    let mut read = Read { more: true, ..Read::default() };
    let mut record = [0; LONGEST_RECORD];
    for _ in 0..MOST_RECORDS {
        match device.read(&mut record) {
            Ok(0) => read.more = false,
            Ok(length) => {
                read.records.extend(record.get(..length).and_then(Record::parse).filter(is_of_its_device));
                continue;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => read.more = false,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // EPIPE: the kernel goes on at the oldest record that is left. EINVAL: at the one behind this, which is
            // longer than any (devkmsg_read in kernel/printk/printk.c).
            Err(error)
                if matches!(
                    error.raw_os_error().map(Errno::from_raw),
                    Some(Errno::EPIPE | Errno::EINVAL)
                ) =>
            {
                read.lost = true;
                continue;
            }
            Err(error) => return Err(error),
        }
        break;
    }
    Ok(read)
}

/// dev_printk_emit of drivers/base/core.c never leaves DEVICE= out. Root can load a module that is named like a prefix, and
/// the kernel begins records with its name.
fn is_of_its_device(record: &Record) -> bool {
    record.device.is_some() || Origin::of_record(&record.text, None).device.is_none()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests lay out files")]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use nix::sys::stat::{Mode, SFlag, makedev, mknod};
    use nix::unistd::mkfifo;

    use super::*;

    fn laid_out() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("dev")).unwrap();
        let kmsg = folder.path().join("dev/kmsg");
        (folder, kmsg)
    }

    fn open(folder: &Path) -> Result<Kmsg, String> {
        Kmsg::open(&Root::open(folder).unwrap())
    }

    fn texts(read: &Read) -> Vec<String> {
        read.records.iter().map(|record| String::from_utf8_lossy(&record.text).into_owned()).collect()
    }

    #[test]
    fn a_plain_file_is_read_to_its_end_and_on_when_it_grows() {
        let (folder, path) = laid_out();
        let text = "\n DEVICE=+pci:0000:09:00.0\n6,1,0,-;one\n DEVICE=+pci:0000:03:00.0\n30,2,0,-;a program's\n\
                    garbage\n6,3,5,-;two\n SUBSYSTEM=pci\n DEVICE=+pci:0000:04:00.0";
        fs::write(&path, text).unwrap();
        let mut kmsg = open(folder.path()).unwrap();
        let read = kmsg.read().unwrap();
        assert_eq!(texts(&read), ["one", "two"]);
        let devices: Vec<_> = read.records.iter().map(|record| record.device.unwrap().to_string()).collect();
        assert_eq!(devices, ["0000:03:00.0", "0000:04:00.0"]);
        assert_eq!((read.lost, read.more), (false, false));
        assert_eq!(texts(&kmsg.read().unwrap()), [""; 0]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"\n6,4,7,-;three\n").unwrap();
        let read = kmsg.read().unwrap();
        assert_eq!(
            (texts(&read), read.records[0].since_boot),
            (vec!["three".to_owned()], Duration::from_micros(7))
        );
    }

    #[test]
    fn a_plain_file_with_devices_has_no_record_that_names_one_and_is_of_none() {
        let (folder, path) = laid_out();
        let bare = "3,1,0,-;amdgpu 0000:03:00.0: failed\n";
        fs::write(&path, bare).unwrap();
        assert_eq!(texts(&open(folder.path()).unwrap().read().unwrap()), ["amdgpu 0000:03:00.0: failed"]);
        let text = format!("{bare}6,2,0,-;amdgpu 0000:03:00.0: x\n DEVICE=+pci:0000:03:00.0\n6,3,0,-;two\n");
        fs::write(&path, text).unwrap();
        let mut kmsg = open(folder.path()).unwrap();
        assert_eq!(texts(&kmsg.read().unwrap()), ["amdgpu 0000:03:00.0: x", "two"]);
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(bare.as_bytes()).unwrap();
        assert_eq!(texts(&kmsg.read().unwrap()), [""; 0]);
    }

    #[test]
    fn a_hostile_file_is_read_in_bounded_pieces() {
        let (folder, path) = laid_out();
        let records: String = (0..5000).map(|n| format!("6,{n},0,-;x\n")).collect();
        fs::write(&path, records).unwrap();
        let mut kmsg = open(folder.path()).unwrap();
        let [first, second, third] = [(); 3].map(|()| kmsg.read().unwrap());
        assert_eq!((first.records.len(), first.more), (MOST_RECORDS, true));
        assert_eq!((second.records.len(), second.more), (5000 - MOST_RECORDS, false));
        assert_eq!((third.records.len(), third.more), (0, false));
        let sequences = first.records.iter().chain(&second.records).map(|record| record.sequence);
        assert!(sequences.eq(0..5000));

        // A line, and a record of many, that are longer than the kernel's: the rest is no record.
        let long =
            format!("6,1,0,-;{}\n6,2,0,-;y\n{}6,3,0,-;z\n", "x".repeat(100_000), " A=b\n".repeat(100_000));
        fs::write(&path, long).unwrap();
        let read = open(folder.path()).unwrap().read().unwrap();
        let lengths: Vec<_> = read.records.iter().map(|record| record.text.len()).collect();
        assert_eq!(lengths, [LONGEST_RECORD - "6,1,0,-;".len(), 1, 1]);

        // A terabyte of nothing.
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let mut kmsg = open(folder.path()).unwrap();
        for _ in 0..2 {
            let read = kmsg.read().unwrap();
            assert_eq!((read.records.len(), read.more), (0, true));
        }
    }

    /// Answers of the kernel, one for each read; then it has no more.
    struct Answers(Vec<Result<&'static str, Errno>>);

    impl std::io::Read for Answers {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let answer = if self.0.is_empty() { Err(Errno::EAGAIN) } else { self.0.remove(0) };
            let mut record =
                answer.map_err(|errno| std::io::Error::from_raw_os_error(errno as i32))?.as_bytes();
            record.read(to)
        }
    }

    #[test]
    fn overwritten_records_are_told_and_a_log_without_pause_is_left() {
        let (one, two) = (Ok("6,1,0,-;one\n"), Ok("6,9,0,-;two\n"));
        for (answers, records, lost) in [
            (vec![], &[][..], false),
            (vec![one, Err(Errno::EINTR), two], &["one", "two"], false),
            (vec![one, Err(Errno::EPIPE), two], &["one", "two"], true),
            (vec![Err(Errno::EINVAL), two], &["two"], true),
            (vec![one, Ok("")], &["one"], false),
            // A module that is named like a prefix (kernel/module/main.c) is no device.
            (
                vec![
                    Ok("3,1,0,-;amdgpu 0000:03:00.0: failed\n"),
                    Ok("3,2,0,-;amdgpu 0000:03:00.0: failed: loading out-of-tree module taints kernel.\n"),
                    Ok("3,3,0,-;pci 0000:03:00.0: x\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n"),
                ],
                &["pci 0000:03:00.0: x"],
                false,
            ),
        ] {
            let read = read_device(&mut Answers(answers)).unwrap();
            assert_eq!(
                (texts(&read), read.lost, read.more),
                (records.iter().map(ToString::to_string).collect(), lost, false)
            );
        }
        let mut device = Answers(vec![one; MOST_RECORDS + 1]);
        let [first, second] = [(); 2].map(|()| read_device(&mut device).unwrap());
        assert_eq!((first.records.len(), first.more), (MOST_RECORDS, true));
        assert_eq!((second.records.len(), second.more), (1, false));
        assert!(read_device(&mut Answers(vec![Err(Errno::EPIPE); 9999])).unwrap().more);
        assert!(read_device(&mut Answers(vec![one, Err(Errno::EIO)])).is_err());
    }

    #[test]
    fn who_may_not_read_it_learns_what_it_takes() {
        let error = |errno| root::Error::Io { action: "open", path: PATH.into(), errno };
        for (errno, sentence) in [
            (
                Errno::EPERM,
                "cannot open /dev/kmsg: Operation not permitted: run this as root or with CAP_SYSLOG",
            ),
            (Errno::EACCES, "cannot open /dev/kmsg: Permission denied: run this as root or with CAP_SYSLOG"),
            (Errno::ENOENT, "cannot open /dev/kmsg: No such file or directory"),
        ] {
            assert_eq!(not_opened(error(errno)), sentence);
        }
    }

    #[test]
    fn what_is_not_the_log_is_refused_in_a_sentence() {
        let (folder, path) = laid_out();
        let shown = path.display();
        assert_eq!(
            open(folder.path()).unwrap_err(),
            format!("cannot stat {shown}: No such file or directory")
        );
        let refused = format!(
            "{shown} is not the kernel's log, a character device 1:11, nor a plain file in its place: remove it"
        );
        mkfifo(&path, Mode::S_IRUSR).unwrap();
        assert_eq!(open(folder.path()).unwrap_err(), refused);
        fs::remove_file(&path).unwrap();
        fs::write(folder.path().join("log"), "6,1,0,-;x\n").unwrap();
        symlink("../log", &path).unwrap();
        assert_eq!(open(folder.path()).unwrap_err(), refused);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(open(folder.path()).unwrap_err(), refused);
    }

    #[test]
    fn real_another_device_is_refused_and_kmsg_beneath_another_root_is_read() {
        if !support::real::require_root(&[]) {
            return;
        }
        let (folder, path) = laid_out();
        mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR, makedev(1, 5)).unwrap();
        assert!(open(folder.path()).unwrap_err().contains(" is not the kernel's log"));
        fs::remove_file(&path).unwrap();
        mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR, makedev(1, 11)).unwrap();
        assert!(!open(folder.path()).unwrap().read().unwrap().records.is_empty());
    }

    /// tests/qemu writes to such a log as a program does; here the line would stay in this machine's log.
    #[test]
    fn real_the_kernels_log_is_read_in_its_order() {
        if !support::real::require_root(&[]) {
            return;
        }
        let read = all(&mut open(Path::new("/")).unwrap());
        assert!(!read.is_empty() && read.is_sorted_by(|a, b| a.sequence < b.sequence));
    }

    fn all(kmsg: &mut Kmsg) -> Vec<Record> {
        let mut records = Vec::new();
        loop {
            let read = kmsg.read().unwrap();
            records.extend(read.records);
            if !read.more {
                return records;
            }
        }
    }
}
