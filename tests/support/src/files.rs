//! A folder's machine as files in memory.

use std::path::Path;

use root::files::{Content, Entry, Files};
use root::{CAPTURE_FILE, Kind, Recording, Root};

/// Every file, folder, link and node of a Root by its path without links, as a reader of the whole Root would
/// send them.
pub fn of(root: &Root) -> Files {
    let mut files = Files { reader: root.owner(), ..Files::default() };
    add(root, Path::new("/"), &mut files);
    // A capture's nodes are in folders that need not be there.
    let recording = root.read(CAPTURE_FILE, 1 << 20).ok();
    let recording: Option<Recording> = recording.map(|json| serde_json::from_slice(&json).unwrap());
    for node in recording.into_iter().flat_map(|it| it.nodes) {
        let meta = root.lstat(&node.path).ok();
        files.entries.insert(node.path.clone(), Entry { meta, content: Content::Node });
        for path in node.path.ancestors() {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let folder = files.entries.entry(folder.to_owned());
            let folder = folder.or_insert(Entry { meta: None, content: Content::Folder(Vec::new()) });
            if let Content::Folder(names) = &mut folder.content {
                names.push(name.to_owned());
            }
        }
    }
    files
}

fn add(root: &Root, path: &Path, files: &mut Files) {
    let meta = root.lstat(path).unwrap();
    let content = match meta.kind {
        Kind::Directory => {
            let names = root.list(path).unwrap();
            names.iter().for_each(|name| add(root, &path.join(name), files));
            Content::Folder(names)
        }
        Kind::Link => Content::Link(root.read_link(path).unwrap()),
        Kind::Regular => match root.read(path, 1 << 30) {
            Ok(bytes) => Content::File(bytes),
            Err(root::Error::Io { errno, .. }) => Content::Failed(errno),
            Err(error) => Content::Unread(error.to_string()),
        },
        Kind::Character { .. } | Kind::Other => Content::Node,
    };
    files.entries.insert(path.to_owned(), Entry { meta: Some(meta), content });
}
