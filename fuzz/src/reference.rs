//! The edit of a bundle once more, on a tree of values, with the text read as Go's decoder reads it.

use std::{collections::BTreeSet, path::Path};

use allocation::bundle::{Injection, Node, ProcessEdits};
use serde_json::{Map, Value, json};

/// Nobody can say what the text means, or it contradicts the injection: it must not be edited.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

fn refused<T>(why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(why.into()))
}

/// The bundle with the injection in it.
pub(crate) fn edit(mut bundle: Value, injection: &Injection<'_>) -> Result<Value, Refused> {
    let root = bundle.as_object_mut().ok_or(Refused("no object".into()))?;
    if let Some(process) = get(root, "process")? {
        let mut process = process.clone();
        edit_process(&mut process, &injection.process)?;
        *slot(root, "process", Value::Null)? = process;
    }
    edit_linux(root, &injection.nodes)?;
    let before = match get(root, "mounts")? {
        Some(list) => list.as_array().cloned().ok_or(Refused("mounts".into()))?,
        None => Vec::new(),
    };
    if let Some(bytes) = injection.shm_bytes {
        edit_shm(root, &before, &format!("size={bytes}"))?;
    }
    for folder in injection.folders {
        let mut covers = false;
        for mount in &before {
            let mount = mount.as_object().ok_or(Refused("no mount".into()))?;
            let (destination, source) =
                (text(mount, "destination")?.unwrap_or_default(), text(mount, "source")?);
            let (destination, place) = (Path::new("/").join(normal(destination)), Path::new(&folder.path));
            let is_the_hosts =
                source.map(Path::new).is_some_and(|source| source.as_os_str() == destination.as_os_str());
            covers |= destination.starts_with(place)
                || place.starts_with(&destination) && destination != Path::new("/") && !is_the_hosts;
        }
        if !covers {
            let mut options = vec!["rbind", if folder.writable { "rw" } else { "ro" }];
            options.extend(folder.kept.iter().filter(|_| !folder.writable));
            let mount = json!({"destination": folder.path, "type": "bind", "source": folder.path, "options": options});
            append(slot(root, "mounts", json!([]))?, mount)?;
        }
    }
    Ok(bundle)
}

/// The last one of those that were there before is the one that is seen.
fn edit_shm(root: &mut Map<String, Value>, before: &[Value], size: &str) -> Result<(), Refused> {
    let is_shm = |mount: &Value| {
        let destination = mount.as_object().and_then(|mount| text(mount, "destination").ok().flatten());
        destination.is_some_and(|destination| normal(destination) == "dev/shm")
    };
    let Some(at) = before.iter().rposition(is_shm) else {
        let options = ["nosuid", "noexec", "nodev", "mode=1777", size];
        let mount = json!({"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": options});
        return append(slot(root, "mounts", json!([]))?, mount);
    };
    let mount = slot(root, "mounts", json!([]))?.get_mut(at).and_then(Value::as_object_mut);
    let mount = mount.ok_or(Refused("no mount".into()))?;
    if text(mount, "type")? != Some("tmpfs") {
        return Ok(());
    }
    let options = slot(mount, "options", json!([]))?.as_array_mut().ok_or(Refused("options".into()))?;
    let mut sizes = options
        .iter_mut()
        .filter(|option| option.as_str().is_some_and(|o| o.starts_with("size=")))
        .peekable();
    if sizes.peek().is_none() {
        drop(sizes);
        options.push(json!(size));
        return Ok(());
    }
    sizes.for_each(|option| *option = json!(size));
    Ok(())
}

/// A process object with these edits.
pub(crate) fn edit_process(process: &mut Value, edits: &ProcessEdits<'_>) -> Result<(), Refused> {
    let ProcessEdits { gids, env, memlock_bytes } = edits;
    let process = process.as_object_mut().ok_or(Refused("process is no object".into()))?;
    for gid in gids {
        let gid = json!(gid);
        let there = match get(process, "user")? {
            Some(Value::Object(user)) => match get(user, "additionalGids")? {
                Some(list) => list.as_array().ok_or(Refused("gids".into()))?.contains(&gid),
                None => false,
            },
            Some(_) => return refused("user is no object"),
            None => false,
        };
        if !there {
            let user = slot(process, "user", json!({}))?.as_object_mut().ok_or(Refused("user".into()))?;
            append(slot(user, "additionalGids", json!([]))?, gid)?;
        }
    }
    for entry in env {
        let name = |entry: &str| entry.split('=').next().map(str::to_owned);
        let there = match get(process, "env")? {
            Some(list) => list.as_array().ok_or(Refused("env".into()))?.clone(),
            None => Vec::new(),
        };
        if !there.iter().filter_map(Value::as_str).any(|other| name(other) == name(entry)) {
            append(slot(process, "env", json!([]))?, json!(entry))?;
        }
    }
    match memlock_bytes {
        Some(bytes) => raise(process, *bytes),
        None => Ok(()),
    }
}

fn raise(process: &mut Map<String, Value>, bytes: u64) -> Result<(), Refused> {
    let mut found = false;
    if get(process, "rlimits")?.is_some() {
        let list = slot(process, "rlimits", json!([]))?.as_array_mut().ok_or(Refused("rlimits".into()))?;
        for rlimit in list {
            let rlimit = rlimit.as_object_mut().ok_or(Refused("no rlimit".into()))?;
            if text(rlimit, "type")? != Some("RLIMIT_MEMLOCK") {
                continue;
            }
            found = true;
            for limit in ["hard", "soft"] {
                let limit = slot(rlimit, limit, Value::Null)?;
                let now = limit.as_u64().ok_or(Refused("no limit".into()))?;
                *limit = json!(now.max(bytes));
            }
        }
    }
    if !found {
        let rlimit = json!({"type": "RLIMIT_MEMLOCK", "hard": bytes, "soft": bytes});
        append(slot(process, "rlimits", json!([]))?, rlimit)?;
    }
    Ok(())
}

fn edit_linux(root: &mut Map<String, Value>, nodes: &[Node<'_>]) -> Result<(), Refused> {
    let mut added = BTreeSet::new();
    let mut rules = BTreeSet::new();
    let linux = match get(root, "linux")? {
        Some(linux) if !nodes.is_empty() => linux.as_object().cloned().ok_or(Refused("linux".into()))?,
        _ => Map::new(),
    };
    let resources = match get(&linux, "resources")? {
        Some(resources) => resources.as_object().cloned().ok_or(Refused("resources".into()))?,
        None => Map::new(),
    };
    for node in nodes {
        let mut there = false;
        for device in get(&linux, "devices")?.map_or(Ok(Vec::new()), list_of_objects)? {
            if normal(text(device, "path")?.unwrap_or_default()) == normal(node.path) {
                let kind = text(device, "type")?;
                let same = matches!(kind, Some("c" | "u"))
                    && number(device, "major")? == Some(i64::from(node.major))
                    && number(device, "minor")? == Some(i64::from(node.minor));
                if !same {
                    return refused(format!("{} is another device", node.path));
                }
                there = true;
            }
        }
        let same_path = |(path, _): &&(String, (u32, u32))| *path == normal(node.path);
        match added.iter().find(same_path) {
            Some((_, numbers)) if *numbers != (node.major, node.minor) => return refused("two nodes"),
            Some(_) => continue,
            None => added.insert((normal(node.path), (node.major, node.minor))),
        };
        if !there {
            append(at(root, &["linux", "devices"])?, device_value(node))?;
        }
        let mut allowed = node.access.is_empty();
        for rule in get(&resources, "devices")?.map_or(Ok(Vec::new()), list_of_objects)?.iter().rev() {
            if get(rule, "allow")? != Some(&json!(true)) {
                break;
            }
            allowed |= text(rule, "type")? == Some("c")
                && number(rule, "major")? == Some(i64::from(node.major))
                && number(rule, "minor")? == Some(i64::from(node.minor))
                && node
                    .access
                    .chars()
                    .all(|c| text(rule, "access").ok().flatten().is_some_and(|a| a.contains(c)));
        }
        if !allowed && rules.insert((node.major, node.minor, node.access)) {
            let rule = json!({"allow": true, "type": "c", "major": node.major, "minor": node.minor,
                "access": node.access});
            append(at(root, &["linux", "resources", "devices"])?, rule)?;
        }
    }
    Ok(())
}

fn device_value(node: &Node<'_>) -> Value {
    let mut device = json!({"path": node.path, "type": "c", "major": node.major, "minor": node.minor,
        "fileMode": node.file_mode & 0o7777});
    for (key, id) in [("uid", node.uid), ("gid", node.gid)] {
        if let Some(id) = id {
            device[key] = json!(id);
        }
    }
    device
}

/// Whether Go takes this key for the field: by Unicode's simple folding, of which two pairs lead out of ASCII.
pub(crate) fn is_field(key: &str, field: &str) -> bool {
    key.replace('\u{17f}', "s").replace('\u{212a}', "k").eq_ignore_ascii_case(field)
}

/// The key under which a field stands; none where it is absent.
fn key<'m>(map: &'m Map<String, Value>, field: &str) -> Result<Option<&'m String>, Refused> {
    let mut keys = map.keys().filter(|key| is_field(key, field));
    match (keys.next(), keys.next()) {
        (key, None) => Ok(key),
        _ => refused(format!("{field} stands twice")),
    }
}

/// The value of a field; none where it is absent or null.
fn get<'m>(map: &'m Map<String, Value>, field: &str) -> Result<Option<&'m Value>, Refused> {
    Ok(key(map, field)?.and_then(|key| map.get(key)).filter(|value| !value.is_null()))
}

/// The place of a field, which is made where there is none.
fn slot<'m>(map: &'m mut Map<String, Value>, field: &str, empty: Value) -> Result<&'m mut Value, Refused> {
    let key = key(map, field)?.cloned().unwrap_or_else(|| field.to_owned());
    let place = map.entry(key).or_insert(Value::Null);
    if place.is_null() {
        *place = empty;
    }
    Ok(place)
}

/// The list at the end of this way, which is made where there is none.
fn at<'m>(root: &'m mut Map<String, Value>, way: &[&str]) -> Result<&'m mut Value, Refused> {
    match way {
        [] => refused("no way"),
        [list] => slot(root, list, json!([])),
        [object, rest @ ..] => {
            at(slot(root, object, json!({}))?.as_object_mut().ok_or(Refused((*object).to_owned()))?, rest)
        }
    }
}

fn append(list: &mut Value, value: Value) -> Result<(), Refused> {
    list.as_array_mut().ok_or(Refused("no list".into()))?.push(value);
    Ok(())
}

fn list_of_objects(list: &Value) -> Result<Vec<&Map<String, Value>>, Refused> {
    let list = list.as_array().ok_or(Refused("no list".into()))?;
    list.iter().map(|entry| entry.as_object().ok_or(Refused("no object".into()))).collect()
}

fn text<'m>(map: &'m Map<String, Value>, field: &str) -> Result<Option<&'m str>, Refused> {
    match get(map, field)? {
        Some(value) => value.as_str().map(Some).ok_or(Refused(format!("{field} is no text"))),
        None => Ok(None),
    }
}

fn number(map: &Map<String, Value>, field: &str) -> Result<Option<i64>, Refused> {
    match get(map, field)? {
        // serde_json takes -0 for a float.
        Some(value) if value.as_f64() == Some(0.0) => Ok(Some(0)),
        Some(value) => value.as_i64().map(Some).ok_or(Refused(format!("{field} is no number"))),
        None => Ok(None),
    }
}

/// The path as it is in the container, whose root has no parent.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}
