//! A tarball as TheRock publishes them, and tarballs that nobody should unpack.

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

/// An entry that leads out of the folder into which a tarball is unpacked, or brings along what none should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hostile {
    /// `/etc/rocworker-lab-hostile`
    Absolute,
    /// `../rocworker-lab-hostile`
    Parent,
    /// A link to /etc, and then a file in it.
    ThroughLink,
    /// A hard link to /etc/passwd.
    HardLink,
    /// A node for /dev/mem.
    Device,
    /// A program that runs as root whoever calls it.
    SetUserId,
}

impl Hostile {
    pub const ALL: [Self; 6] =
        [Self::Absolute, Self::Parent, Self::ThroughLink, Self::HardLink, Self::Device, Self::SetUserId];
}

/// Entries in their order.
#[derive(Clone, Debug, Default)]
pub struct Tarball(Vec<(Header, Vec<u8>)>);

/// The name under which it is published.
pub fn name(family: &str, version: &str) -> String {
    format!("therock-dist-linux-{family}-{version}.tar.gz")
}

impl Tarball {
    /// bin, lib and include with a little in each, and links among them.
    pub fn therock(version: &str) -> Self {
        Self::default()
            .folder("bin")
            .folder("lib")
            .folder("include")
            .file("bin/rocminfo", 0o755, format!("#!/bin/sh\necho rocminfo of {version}\n").as_bytes())
            .file("lib/libamdhip64.so.7.0", 0o644, b"made by a test of rocworker\n")
            .link("lib/libamdhip64.so.7", "libamdhip64.so.7.0")
            .link("lib/libamdhip64.so", "libamdhip64.so.7")
            .file("include/hip/hip_version.h", 0o644, format!("/* {version} */\n").as_bytes())
            .file(".info/version", 0o644, format!("{version}\n").as_bytes())
    }

    #[must_use]
    pub fn folder(self, path: &str) -> Self {
        self.entry(path, EntryType::Directory, "", 0o755, &[])
    }

    #[must_use]
    pub fn file(self, path: &str, mode: u32, bytes: &[u8]) -> Self {
        self.entry(path, EntryType::Regular, "", mode, bytes)
    }

    #[must_use]
    pub fn link(self, path: &str, target: &str) -> Self {
        self.entry(path, EntryType::Symlink, target, 0o777, &[])
    }

    #[must_use]
    pub fn hostile(self, how: Hostile) -> Self {
        let bytes = b"hostile\n";
        match how {
            Hostile::Absolute => self.file("/etc/rocworker-lab-hostile", 0o644, bytes),
            Hostile::Parent => self.file("../rocworker-lab-hostile", 0o644, bytes),
            Hostile::ThroughLink => {
                self.link("lib/out", "/etc").file("lib/out/rocworker-lab-hostile", 0o644, bytes)
            }
            Hostile::HardLink => self.entry("lib/passwd", EntryType::Link, "/etc/passwd", 0o644, &[]),
            Hostile::Device => self.entry("lib/mem", EntryType::Char, "", 0o666, &[]),
            Hostile::SetUserId => self.file("bin/hostile", 0o4755, bytes),
        }
    }

    /// Names are put down as they are: the library that writes the archive would refuse those that a hostile one has.
    fn entry(mut self, path: &str, kind: EntryType, target: &str, mode: u32, bytes: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        let fields = header.as_gnu_mut().unwrap();
        fields.name[..path.len()].copy_from_slice(path.as_bytes());
        fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(bytes.len() as u64);
        if kind == EntryType::Char {
            // mem(4)
            header.set_device_major(1).unwrap();
            header.set_device_minor(1).unwrap();
        }
        header.set_cksum();
        self.0.push((header, bytes.to_owned()));
        self
    }

    /// The compressed archive.
    ///
    /// # Panics
    /// Where memory cannot be written to.
    pub fn bytes(&self) -> Vec<u8> {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (header, bytes) in &self.0 {
            archive.append(header, bytes.as_slice()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }
}
