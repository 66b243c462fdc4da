use nix::sys::stat::{FileStat, SFlag, major, minor};

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Regular,
    Directory,
    Link,
    /// A character device with its number.
    Character {
        major: u64,
        minor: u64,
    },
    /// Block device, fifo or socket.
    Other,
}

impl Kind {
    /// The kind as words for a sentence: "is a plain file".
    #[must_use]
    pub fn described(self) -> &'static str {
        match self {
            Self::Regular => "a plain file",
            Self::Directory => "a folder",
            Self::Link => "a symbolic link",
            Self::Character { .. } => "a character device",
            Self::Other => "a block device, fifo or socket",
        }
    }
}

/// Type, rights and owner of what is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    pub kind: Kind,
    /// Permission bits, 07777 at the most.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Size in bytes.
    pub len: i64,
    /// When the file's bytes were last changed, in seconds since 1970.
    pub modified_s: i64,
}

impl Meta {
    pub(crate) fn from_stat(stat: &FileStat) -> Self {
        let kind = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Kind::Regular,
            SFlag::S_IFDIR => Kind::Directory,
            SFlag::S_IFLNK => Kind::Link,
            SFlag::S_IFCHR => Kind::Character { major: major(stat.st_rdev), minor: minor(stat.st_rdev) },
            _ => Kind::Other,
        };
        Self {
            kind,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            len: stat.st_size,
            modified_s: stat.st_mtime,
        }
    }
}

/// Distinguishes a file from another one that replaced it at its path: device, inode, size and the time of
/// the last change (ctime, in nanoseconds since 1970).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    pub len: i64,
    pub changed_ns: i64,
}

impl Identity {
    pub(crate) fn from_stat(stat: &FileStat) -> Self {
        let changed_ns = stat.st_ctime.saturating_mul(1_000_000_000).saturating_add(stat.st_ctime_nsec);
        Self { device: stat.st_dev, inode: stat.st_ino, len: stat.st_size, changed_ns }
    }
}
