use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use host::timestamp::Timestamp;
use tar::{Builder, EntryType, Header};

use super::collect::Entry;

/// One compressed archive with everything in one folder. The same entries and moment give the same bytes: no
/// owner, no order, no clock of the machine is in it.
pub(super) fn pack(
    folder: &str,
    moment: Timestamp,
    entries: &BTreeMap<PathBuf, Entry>,
) -> io::Result<Vec<u8>> {
    // The clock of gzip's header ends in 2106.
    let clock = u32::try_from(moment.seconds()).unwrap_or(0);
    let gzip = GzBuilder::new().mtime(clock).write(Vec::new(), Compression::default());
    let mut archive = Builder::new(gzip);
    let top = Path::new(folder);
    append(&mut archive, top, &Entry::Folder, moment)?;
    for (path, entry) in entries {
        append(&mut archive, &top.join(path.strip_prefix("/").unwrap_or(path)), entry, moment)?;
    }
    archive.into_inner()?.finish()
}

fn append(
    archive: &mut Builder<impl io::Write>,
    path: &Path,
    entry: &Entry,
    moment: Timestamp,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(moment.seconds());
    let (kind, mode, bytes): (EntryType, u32, &[u8]) = match entry {
        Entry::File(bytes) => (EntryType::Regular, 0o644, bytes),
        Entry::Denied => (EntryType::Regular, 0, &[]),
        Entry::Folder => (EntryType::Directory, 0o755, &[]),
        Entry::Link(_) => (EntryType::Symlink, 0o777, &[]),
    };
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    match entry {
        Entry::Link(target) => archive.append_link(&mut header, path, target),
        _ => archive.append_data(&mut header, path, bytes),
    }
}
