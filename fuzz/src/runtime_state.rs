//! What runc and crun wrote down of a container: its first process, by which a lease lives or dies.
//!
//! serde_json reads it, here as in the product. A lone surrogate in what is read makes the whole unreadable, and a
//! list stands for an object whose fields it has in their order: neither runtime writes such.

use std::path::{Path, PathBuf};

use lease::runtime_state::{Cgroup, State, has_nodes, init_of};

use crate::json::{elements, members, value};

thread_local! {
    static PLACE: tempfile::TempDir = tempfile::tempdir().expect("a folder");
}

/// The first byte chooses the runtime; what is behind it is the text of its file.
pub fn check(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let is_runc = choice % 2 == 0;
    PLACE.with(|place| {
        let (root, id) = (place.path(), if is_runc { "runc" } else { "crun" });
        let folder = root.join(id);
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join(if is_runc { "state.json" } else { "status" });
        std::fs::write(&file, text).expect("a file");
        says_what_stands_there(root, id, is_runc, std::str::from_utf8(text).ok());
    });
}

fn says_what_stands_there(root: &Path, id: &str, is_runc: bool, text: Option<&str>) {
    let state = State::read(root, id);
    let init = state.as_ref().map(|state| state.init);
    assert_eq!(init_of(root, id), init);
    let has = has_nodes(root, id, allocation::Render::parse("renderD128"));
    let Some(text) = text else {
        assert!(state.is_none(), "read, though it is no text");
        return assert!(has, "nothing tells");
    };
    if is_runc {
        let stands =
            ["/dev/dri/renderD128\"", "\\/dev\\/dri\\/renderD128\""].iter().any(|n| text.contains(n));
        assert_eq!(has, stands);
    } else {
        assert!(has, "nothing tells: crun's nodes stand in another file");
    }
    let expected = if is_runc { of_runc(text) } else { of_crun(text) };
    let found = state.map(|state| ((state.init.pid, state.init.start_time), state.cgroup));
    assert_eq!(found, expected, "{text}");
}

type Read = ((u32, u64), Cgroup);

fn of_runc(text: &str) -> Option<Read> {
    let fields = fields(text, ["init_process_pid", "init_process_start", "cgroup_paths"], 3)?;
    let init = (u32::try_from(plain(fields[0]?)?).ok()?, plain(fields[1]?)?);
    // serde_json takes the last of what stands twice in a map.
    let mut folders = std::collections::BTreeMap::new();
    if let Some(paths) = fields[2].filter(|paths| *paths != "null") {
        for (hierarchy, path) in members(paths)? {
            folders.insert(hierarchy, value::<PathBuf>(path)?);
        }
    }
    let folders: Vec<PathBuf> = folders.into_values().filter(|path| path.has_root()).collect();
    Some((init, if folders.is_empty() { Cgroup::Unknown } else { Cgroup::Folders(folders) }))
}

fn of_crun(text: &str) -> Option<Read> {
    let fields = fields(text, ["pid", "process-start-time", "cgroup-path"], 2)?;
    let init = (u32::try_from(plain(fields[0]?)?).ok()?, plain(fields[1]?)?);
    let path = fields[2].map_or(Some(String::new()), value::<String>)?;
    let path = path.trim_matches('/').to_owned();
    Some((init, if path.is_empty() { Cgroup::Unknown } else { Cgroup::Below(path) }))
}

/// Digits and nothing else: no sign, no point, no exponent, no leading zero.
fn plain(raw: &str) -> Option<u64> {
    let is_plain = raw.bytes().all(|byte| byte.is_ascii_digit()) && (raw == "0" || !raw.starts_with('0'));
    if is_plain { raw.parse().ok() } else { None }
}

/// The values of these keys, each of which may stand there once; of a list, its first elements.
fn fields<'a>(text: &'a str, keys: [&str; 3], at_least: usize) -> Option<[Option<&'a str>; 3]> {
    if let Some(list) = elements(text) {
        let fits = (at_least..=keys.len()).contains(&list.len());
        return fits.then(|| [0, 1, 2].map(|at| list.get(at).copied()));
    }
    let members = members(text)?;
    let mut values = [None; 3];
    for (value, key) in values.iter_mut().zip(keys) {
        let mut found = members.iter().filter(|(name, _)| name == key).map(|(_, raw)| *raw);
        *value = found.next();
        if found.next().is_some() {
            return None;
        }
    }
    Some(values)
}
