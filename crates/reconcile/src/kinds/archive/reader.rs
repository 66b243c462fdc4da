//! A `.tar.gz` as it is read: each entry is judged by its name, kind and target before the first of them is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest as _, Sha256};
use tar::EntryType;

use crate::apt::Step;
use crate::command::Programs;
use crate::digest::Digest;

/// How much more than its bytes a file takes on a disk, at most, on today's file systems: the end of its last
/// block.
const BLOCK: u64 = 4096;

/// Bits of a mode that make a program run as another than who calls it.
const SET_ID: u32 = 0o6000;

/// How many links the kernel follows in one path (path_resolution(7)).
const LINKS: u32 = 40;

/// How many levels a path may have. ROCm uses a quarter of them, and each costs every step that walks the
/// folder.
const LEVELS: usize = 64;

/// Bits that unpacked files lose, so that only the owner can write to them.
const MASK: u32 = 0o022;

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("it cannot be read as a .tar.gz: {0}")]
    Read(io::Error),
    #[error("its entry {} {problem}: nothing of it is unpacked", path.display())]
    Entry { path: PathBuf, problem: String },
    #[error("its entry {} could not be unpacked: {cause}", path.display())]
    Unpack { path: PathBuf, cause: io::Error },
}

/// The content of an archive of which every entry may be unpacked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The bytes that the archive takes on a disk.
    pub(crate) bytes: u64,
    /// The archive's paths without the folder itself.
    seen: BTreeMap<PathBuf, Kind>,
    /// The target of each link.
    links: BTreeMap<PathBuf, PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
    Link,
}

/// An archive's file, which reports how far it was read.
struct Watched<'a> {
    file: BufReader<File>,
    programs: &'a Programs,
    doing: &'static str,
    read: u64,
    total: u64,
    reported: u64,
    hear: &'a mut dyn FnMut(Step),
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.programs.is_interrupted() {
            return Err(io::Error::other("it was interrupted"));
        }
        let count = self.file.read(buffer)?;
        self.read += count as u64;
        let percent = self.read.saturating_mul(100) / self.total.max(1);
        if percent > self.reported {
            self.reported = percent;
            // The number is at most 100, which a float holds exactly.
            let percent = u16::try_from(percent).ok().map(f32::from);
            (self.hear)(Step { text: self.doing.to_owned(), percent });
        }
        Ok(count)
    }
}

/// Reads an archive.
pub(crate) struct Archive<'a> {
    pub(crate) file: &'a File,
    pub(crate) programs: &'a Programs,
}

impl Archive<'_> {
    /// The digest of its bytes.
    pub(crate) fn digest(&self, hear: &mut dyn FnMut(Step)) -> Result<Digest, Fault> {
        let mut file = self.watched("Checking the archive's SHA-256", hear).map_err(Fault::Read)?;
        let mut sha256 = Sha256::new();
        let mut chunk = vec![0_u8; 1 << 16];
        loop {
            match file.read(&mut chunk).map_err(Fault::Read)? {
                0 => return Ok(Digest::from_hash(&sha256.finalize())),
                count => sha256.update(chunk.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Reads the archive through without unpacking it.
    ///
    /// # Errors
    /// When an entry leads out of the folder, or is no file, folder or link.
    pub(crate) fn look_through(&self, hear: &mut dyn FnMut(Step)) -> Result<Contents, Fault> {
        let mut contents = Contents::default();
        let watched = self.watched("Looking through the archive", hear).map_err(Fault::Read)?;
        let mut archive = tar::Archive::new(MultiGzDecoder::new(BufReader::new(watched)));
        for entry in archive.entries().map_err(Fault::Read)? {
            let mut entry = entry.map_err(Fault::Read)?;
            let path = entry.path().map_err(Fault::Read)?.into_owned();
            if has_pax_holes(&mut entry).map_err(Fault::Read)? {
                let problem =
                    "has holes as GNU tar writes them into a pax archive, which this does not read (tar \
                               --format=gnu)"
                        .to_owned();
                return Err(Fault::Entry { path, problem });
            }
            let target = entry.link_name().map_err(Fault::Read)?.map(|it| it.into_owned());
            let mode = entry.header().mode().map_err(Fault::Read)?;
            let judged =
                contents.admit(&path, entry.header().entry_type(), target.as_deref(), mode, entry.size());
            judged.map_err(|problem| Fault::Entry { path, problem })?;
        }
        if let Some((path, target)) = contents.astray() {
            let problem =
                format!("is a link to {}, which leads out of the folder by other links", target.display());
            return Err(Fault::Entry { path: path.to_owned(), problem });
        }
        Ok(contents)
    }

    /// Writes all of it beneath a folder in which nothing is yet. It must have been looked through.
    pub(crate) fn unpack(&self, folder: &Path, hear: &mut dyn FnMut(Step)) -> Result<(), Fault> {
        let watched = self.watched("Unpacking the archive", hear).map_err(Fault::Read)?;
        let mut archive = tar::Archive::new(MultiGzDecoder::new(BufReader::new(watched)));
        archive.set_mask(MASK);
        archive.set_overwrite(false);
        for entry in archive.entries().map_err(Fault::Read)? {
            let mut entry = entry.map_err(Fault::Read)?;
            let path = entry.path().map_err(Fault::Read)?.into_owned();
            match entry.unpack_in(folder) {
                Ok(true) => {}
                Ok(false) => {
                    let problem = "leads out of the folder".to_owned();
                    return Err(Fault::Entry { path, problem });
                }
                Err(cause) => return Err(Fault::Unpack { path, cause }),
            }
        }
        Ok(())
    }

    fn watched<'a>(&'a self, doing: &'static str, hear: &'a mut dyn FnMut(Step)) -> io::Result<Watched<'a>> {
        let mut file = self.file.try_clone()?;
        let total = file.metadata()?.len();
        io::Seek::rewind(&mut file)?;
        let file = BufReader::with_capacity(1 << 16, file);
        Ok(Watched { file, programs: self.programs, doing, read: 0, total, reported: 0, hear })
    }
}

impl Contents {
    /// Whether the archive has the path as an entry, or as a folder on the way to one.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.seen.contains_key(path) || self.seen.range(path.to_owned()..).any(|(it, _)| it.starts_with(path))
    }

    /// Whether the archive sets the mode of a folder.
    pub(crate) fn names_folder(&self, path: &Path) -> bool {
        self.seen.get(path) == Some(&Kind::Folder)
    }

    /// The first link that leads out by way of others, or nowhere: behind a name that is itself a link, `..` is not the
    /// folder that the words name. Ask it once all entries were added, since a link may come after its users.
    fn astray(&self) -> Option<(&Path, &Path)> {
        let mut links = self.links.iter().map(|(place, target)| (place.as_path(), target.as_path()));
        links.find(|(place, target)| {
            self.follow(place.parent().unwrap_or(Path::new("")), target, &mut { LINKS }).is_none()
        })
    }

    /// The end of a path that begins in a folder, with links followed as the kernel does.
    fn follow(&self, from: &Path, path: &Path, left: &mut u32) -> Option<PathBuf> {
        let mut place = from.to_owned();
        for part in path.components() {
            place = inside(&place, Path::new(part.as_os_str()))?;
            if let Some(target) = self.links.get(&place) {
                *left = left.checked_sub(1)?;
                place = self.follow(place.parent().unwrap_or(Path::new("")), target, left)?;
            }
        }
        Some(place)
    }

    /// Takes an entry in, or says why it may not be unpacked.
    fn admit(
        &mut self,
        path: &Path,
        kind: EntryType,
        target: Option<&Path>,
        mode: u32,
        size: u64,
    ) -> Result<(), String> {
        // These entries are the archive maker's remarks on the entries behind them: nothing of them is
        // written.
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            return Ok(());
        }
        let place = inside(Path::new(""), path).ok_or("leads out of the folder")?;
        let depth = place.components().count();
        if depth > LEVELS {
            return Err(format!("lies {depth} levels deep, and this reads archives of at most {LEVELS}"));
        }
        if let Some(link) = place.ancestors().skip(1).find(|it| self.seen.get(*it) == Some(&Kind::Link)) {
            return Err(format!("is to be written through the link {}", link.display()));
        }
        let kind = match (kind, target) {
            (EntryType::Directory, _) => Kind::Folder,
            (EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse, _) => Kind::File,
            (EntryType::Symlink, Some(target)) => {
                let from = place.parent().unwrap_or(Path::new(""));
                inside(from, target).ok_or_else(|| {
                    format!("is a link to {}, which leads out of the folder", target.display())
                })?;
                self.links.insert(place.clone(), target.to_owned());
                Kind::Link
            }
            (EntryType::Link, Some(target)) => {
                let other = inside(Path::new(""), target);
                if other.and_then(|other| self.seen.get(&other)) != Some(&Kind::File) {
                    return Err(format!(
                        "is to be the same file as {}, which is none of its own",
                        target.display()
                    ));
                }
                Kind::File
            }
            _ => return Err("is neither a file nor a folder nor a link".to_owned()),
        };
        if kind == Kind::File && mode & SET_ID != 0 {
            return Err(format!("would run as its owner whoever calls it (mode {mode:04o})"));
        }
        let is_again = |known: &Kind| !(*known == Kind::Folder && kind == Kind::Folder);
        if place.as_os_str().is_empty() {
            return if kind == Kind::Folder { Ok(()) } else { Err("names the folder itself".to_owned()) };
        }
        if self.seen.get(&place).is_some_and(is_again) {
            return Err("is in it twice".to_owned());
        }
        self.seen.insert(place, kind);
        self.bytes = self.bytes.saturating_add(size.div_ceil(BLOCK).saturating_add(1).saturating_mul(BLOCK));
        Ok(())
    }
}

/// The tar crate takes the map of such a file for its bytes.
fn has_pax_holes(entry: &mut tar::Entry<'_, impl Read>) -> io::Result<bool> {
    let Some(extensions) = entry.pax_extensions()? else { return Ok(false) };
    for extension in extensions {
        if extension?.key_bytes().starts_with(b"GNU.sparse.") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The end of a path that begins in a folder, by its words alone; `None` where it leaves the top folder.
fn inside(from: &Path, path: &Path) -> Option<PathBuf> {
    let mut place = from.to_owned();
    for part in path.components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !place.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Entry<'a> = (&'a str, EntryType, &'a str, u32);

    fn admitted(entries: &[Entry<'_>]) -> Result<Contents, String> {
        let mut contents = Contents::default();
        for (path, kind, target, mode) in entries {
            let target = (!target.is_empty()).then(|| Path::new(target));
            contents.admit(Path::new(path), *kind, target, *mode, 1)?;
        }
        Ok(contents)
    }

    #[test]
    fn what_leads_out_of_the_folder_or_is_more_than_a_file_is_refused() {
        use EntryType::{Block, Char, Directory, Fifo, Link, Regular, Symlink};
        let deep = |levels: usize| vec!["d"; levels].join("/");
        let (deepest, deeper) = (deep(LEVELS), deep(LEVELS + 1));
        let cases: &[(&[Entry<'_>], &str)] = &[
            (&[("/etc/x", Regular, "", 0o644)], "leads out of the folder"),
            (&[("../x", Regular, "", 0o644)], "leads out of the folder"),
            (&[("lib/../../x", Regular, "", 0o644)], "leads out of the folder"),
            (&[("lib/out", Symlink, "/etc", 0o777)], "is a link to /etc, which leads out of the folder"),
            (
                &[("out", Symlink, "lib/../..", 0o777)],
                "is a link to lib/../.., which leads out of the folder",
            ),
            (
                &[("lib64", Symlink, "lib", 0o777), ("lib64/x", Regular, "", 0o644)],
                "is to be written through the link lib64",
            ),
            (
                &[("x", Link, "/etc/passwd", 0o644)],
                "is to be the same file as /etc/passwd, which is none of its own",
            ),
            (&[("x", Link, "y", 0o644)], "is to be the same file as y, which is none of its own"),
            (&[("x", Char, "", 0o644)], "is neither a file nor a folder nor a link"),
            (&[("x", Block, "", 0o644)], "is neither a file nor a folder nor a link"),
            (&[("x", Fifo, "", 0o644)], "is neither a file nor a folder nor a link"),
            (&[("x", Regular, "", 0o4755)], "would run as its owner whoever calls it (mode 4755)"),
            (&[("x", Regular, "", 0o2755)], "would run as its owner whoever calls it (mode 2755)"),
            (&[("x", Regular, "", 0o644), ("./x", Regular, "", 0o644)], "is in it twice"),
            (&[("x", Regular, "", 0o644), ("x", Directory, "", 0o755)], "is in it twice"),
            (&[("./", Regular, "", 0o644)], "names the folder itself"),
            (
                &[(&deepest, Directory, "", 0o755), (&deeper, Directory, "", 0o755)],
                "lies 65 levels deep, and this reads archives of at most 64",
            ),
        ];
        for (entries, problem) in cases {
            assert_eq!(admitted(entries), Err((*problem).to_owned()), "{entries:?}");
        }
    }

    #[test]
    fn links_are_followed_through_each_other() {
        use EntryType::{Directory, Regular, Symlink};
        let link = |path, target| (path, Symlink, target, 0o777);
        let cases: &[(&[Entry<'_>], Option<&str>)] = &[
            (&[("lib/deep/x", Regular, "", 0o644), link("a", "lib/deep"), link("b", "a/../x")], None),
            (&[link("bin/amdclang", "../lib/llvm/bin/clang"), link("lib/llvm", "../llvm")], None),
            // By its words alone it leads to lib; `lib/up` is the folder itself.
            (
                &[
                    ("lib", Directory, "", 0o755),
                    link("lib/deep/up", "../.."),
                    link("lib/deep/out", "up/../.."),
                ],
                Some("lib/deep/out"),
            ),
            // The link that makes it so comes later.
            (&[link("a/out", "up/.."), link("a/up", "..")], Some("a/out")),
            (&[link("a", "b"), link("b", "a")], Some("a")),
        ];
        for (entries, astray) in cases {
            let contents = admitted(entries).unwrap();
            let found = contents.astray().map(|(path, _)| path);
            assert_eq!(found, astray.map(Path::new), "{entries:?}");
        }
        // What doubles with each link is given up, not followed to its end.
        let names: Vec<String> = (0..60).map(|at| format!("l{at}")).collect();
        let targets: Vec<String> = names.iter().map(|name| format!("{name}/../{name}/.")).collect();
        let mut entries = vec![("d", Directory, "", 0o755), link("l0", "d")];
        entries.extend(names[1..].iter().zip(&targets).map(|(name, target)| link(name, target)));
        assert!(admitted(&entries).unwrap().astray().is_some());
    }

    #[test]
    fn what_is_in_an_archive_is_known_by_its_place_and_by_the_folders_on_the_way() {
        use EntryType::{Directory, Link, Regular, Symlink};
        let contents = admitted(&[
            ("./", Directory, "", 0o755),
            ("./bin/", Directory, "", 0o755),
            ("bin", Directory, "", 0o755),
            ("bin/rocminfo", Regular, "", 0o755),
            ("bin/again", Link, "./bin/rocminfo", 0o755),
            ("lib/deep/libx.so.1", Regular, "", 0o644),
            ("lib/deep/libx.so", Symlink, "libx.so.1", 0o777),
            ("lib/up", Symlink, "../bin", 0o777),
        ])
        .unwrap();
        for path in ["bin", "bin/rocminfo", "lib", "lib/deep", "lib/up"] {
            assert!(contents.holds(Path::new(path)), "{path}");
        }
        for path in ["include", "li", "lib/deeper"] {
            assert!(!contents.holds(Path::new(path)), "{path}");
        }
        assert!(contents.names_folder(Path::new("bin")) && !contents.names_folder(Path::new("lib")));
        assert_eq!(contents.bytes, 7 * 2 * BLOCK, "the folder bin counts twice, which is on the safe side");
    }
}
