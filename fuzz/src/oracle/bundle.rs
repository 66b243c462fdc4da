//! What is read of a bundle and of a process object, and what is refused: keys on serde_json's objects, folded as Go
//! folds them, and the entries of the short lists by serde's derived readers, which the product had before it had its
//! own, with the refusal of a key in another spelling.

use allocation::{
    bundle::{Device, Injection},
    cdi::HOOK_NAMES,
    gids::{IdMapping, UserNamespace},
};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};
use serde_json::value::RawValue;

use crate::{
    json::{elements, list, members, optional, signed, value},
    reference::is_field,
};

/// The places of a bundle, or of a process object. Where it is in doubt nothing else of it is said.
#[derive(Default)]
pub(crate) struct Places<'a> {
    pub(crate) in_doubt: bool,
    pub(crate) env: Vec<String>,
    pub(crate) annotation_keys: Vec<String>,
    pub(crate) rootfs: Option<String>,
    has_process: bool,
    gids: Option<&'a str>,
    rlimits: Option<&'a str>,
    rlimits_in_doubt: bool,
    devices: Option<&'a str>,
    rules: Option<&'a str>,
    namespaces: Option<&'a str>,
    uid_mappings: Option<&'a str>,
    gid_mappings: Option<&'a str>,
    cgroups_path: Option<&'a str>,
    mounts: Option<&'a str>,
    hooks: Option<&'a str>,
}

type Members<'a> = Vec<(String, &'a str)>;

impl<'a> Places<'a> {
    /// Of a bundle that is an object.
    pub(crate) fn of_bundle(text: &'a str) -> Self {
        let mut places = Self::default();
        let root = members(text).expect("an object");
        if let Some(process) = places.object(&root, "process") {
            places.process(&process);
        }
        if let Some(linux) = places.object(&root, "linux") {
            places.devices = places.field(&linux, "devices", '[');
            places.namespaces = places.field(&linux, "namespaces", '[');
            places.uid_mappings = places.field(&linux, "uidMappings", '[');
            places.gid_mappings = places.field(&linux, "gidMappings", '[');
            let resources = places.object(&linux, "resources").unwrap_or_default();
            places.rules = places.field(&resources, "devices", '[');
            // Go leaves what it has read already where null stands.
            let paths = linux.iter().filter(|(key, value)| is_field(key, "cgroupsPath") && *value != "null");
            places.cgroups_path = paths.map(|(_, value)| *value).next_back();
        }
        places.rootfs = rootfs(&root).flatten();
        places.mounts = places.field(&root, "mounts", '[');
        places.hooks = places.field(&root, "hooks", '{');
        let annotations = places.object(&root, "annotations").unwrap_or_default();
        places.annotation_keys = annotations.into_iter().map(|(key, _)| key).collect();
        places
    }

    /// Of a process object; none where it is no object.
    pub(crate) fn of_process(text: &'a str) -> Option<Self> {
        let mut places = Self::default();
        places.process(&members(text)?);
        Some(places)
    }

    fn process(&mut self, process: &Members<'a>) {
        self.has_process = true;
        for entry in self.field(process, "env", '[').and_then(elements).unwrap_or_default() {
            match value(entry) {
                Some(entry) => self.env.push(entry),
                None => self.in_doubt = true,
            }
        }
        if let Some(user) = self.object(process, "user") {
            self.gids = self.field(&user, "additionalGids", '[');
        }
        // Only who raises one looks at them.
        let mut of_limits = Self::default();
        self.rlimits = of_limits.field(process, "rlimits", '[');
        self.rlimits_in_doubt = of_limits.in_doubt;
    }

    fn object(&mut self, of: &Members<'a>, name: &str) -> Option<Members<'a>> {
        self.field(of, name, '{').and_then(members)
    }

    /// The value of a field that begins so. Another one, or two, put the whole in doubt; null is as good as nothing.
    fn field(&mut self, of: &Members<'a>, name: &str, open: char) -> Option<&'a str> {
        let found: Vec<&str> =
            of.iter().filter(|(key, _)| is_field(key, name)).map(|(_, raw)| *raw).collect();
        self.in_doubt |= found.len() > 1;
        let value = found.first().copied().filter(|raw| *raw != "null")?;
        self.in_doubt |= !value.starts_with(open);
        Some(value)
    }

    pub(crate) fn devices(&self) -> Option<Vec<Device<'static>>> {
        let devices: Vec<OciDevice> = entries(self.devices, &["path", "type", "major", "minor"])?;
        let device = |device: OciDevice| Device {
            path: device.path.into(),
            kind: device.kind.into(),
            major: device.major,
            minor: device.minor,
        };
        Some(devices.into_iter().map(device).collect())
    }

    pub(crate) fn user_namespace(&self) -> Option<UserNamespace> {
        let namespaces: Vec<Namespace> = entries(self.namespaces, &["type", "path"])?;
        let Some(user) = namespaces.into_iter().find(|namespace| namespace.kind == "user") else {
            return Some(UserNamespace::Host);
        };
        let (uids, gids) = (mappings(self.uid_mappings)?, mappings(self.gid_mappings)?);
        Some(match user.path {
            Some(path) if !path.is_empty() && gids.is_empty() => UserNamespace::Joined { path },
            _ => UserNamespace::Mapped { uids, gids },
        })
    }

    pub(crate) fn cgroups_path(&self) -> Option<Option<String>> {
        optional(self.cgroups_path, value)
    }

    /// Whether what has to be looked into for this injection can be read.
    pub(crate) fn can_be_looked_into(&self, injection: &Injection<'_>) -> bool {
        let process = &injection.process;
        let gids = !self.has_process || process.gids.is_empty() || list(self.gids, value::<u32>).is_some();
        let can_be_raised =
            || !self.rlimits_in_doubt && entries::<Rlimit>(self.rlimits, &["type", "hard", "soft"]).is_some();
        let rlimits = !self.has_process || process.memlock_bytes.is_none() || can_be_raised();
        let rules = || entries::<Rule>(self.rules, &["allow", "type", "major", "minor", "access"]);
        let nodes = injection.nodes.is_empty() || self.devices().is_some() && rules().is_some();
        let mounts =
            injection.mounts.is_empty() && injection.shm_bytes.is_none() || self.mounts_can_be_read();
        !self.in_doubt && gids && rlimits && nodes && mounts && self.can_take_hooks(injection)
    }

    pub(crate) fn mounts_can_be_read(&self) -> bool {
        entries::<Mount>(self.mounts, &["destination", "type", "source", "options"]).is_some()
    }

    fn can_take_hooks(&self, injection: &Injection<'_>) -> bool {
        if injection.hooks.is_empty() {
            return true;
        }
        let mut hooks = Self::default();
        let members = self.hooks.and_then(members).unwrap_or_default();
        let lists = HOOK_NAMES.map(|name| (name, hooks.field(&members, name, '[')));
        let can_take = |name: &str| {
            let keys = &["path", "args", "env", "timeout"];
            lists
                .iter()
                .find(|(known, _)| *known == name)
                .is_some_and(|(_, l)| entries::<Hook>(*l, keys).is_some())
        };
        !hooks.in_doubt && injection.hooks.iter().all(|hook| can_take(&hook.name))
    }
}

/// The last path of any root; the outer None where one of them is no object, or a path in it no text.
fn rootfs(root: &Members<'_>) -> Option<Option<String>> {
    let mut last = None;
    for (_, of) in root.iter().filter(|(key, _)| is_field(key, "root")) {
        for (_, path) in members(of)?.iter().filter(|(key, _)| is_field(key, "path")) {
            last = Some(value(path)?);
        }
    }
    Some(last)
}

/// Each entry is an object, in which these keys stand in no other spelling.
fn entries<T: DeserializeOwned>(raw: Option<&str>, keys: &[&str]) -> Option<Vec<T>> {
    list(raw, |entry| {
        let members = members(entry)?;
        let as_spelt = |key: &str| keys.iter().all(|known| key == *known || !is_field(key, known));
        members.iter().all(|(key, _)| as_spelt(key)).then(|| value(entry))?
    })
}

fn mappings(raw: Option<&str>) -> Option<Vec<IdMapping>> {
    let mappings: Vec<Mapping> = entries(raw, &["containerID", "hostID", "size"])?;
    let mapping = |Mapping { container_id, host_id, size }| IdMapping { container_id, host_id, size };
    Some(mappings.into_iter().map(mapping).collect())
}

#[derive(Deserialize)]
struct Mapping {
    #[serde(rename = "containerID")]
    container_id: u32,
    #[serde(rename = "hostID")]
    host_id: u32,
    size: u32,
}

#[derive(Deserialize)]
struct OciDevice {
    path: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "number")]
    major: Option<i64>,
    #[serde(default, deserialize_with = "number")]
    minor: Option<i64>,
}

#[derive(Deserialize)]
struct Namespace {
    #[serde(rename = "type")]
    kind: String,
    path: Option<String>,
}

/// What these say is held against the tree of values (`crate::reference`): here it is read for its types alone.
#[derive(Deserialize)]
#[allow(dead_code, reason = "read for their types")]
struct Rule {
    allow: bool,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "number")]
    major: Option<i64>,
    #[serde(default, deserialize_with = "number")]
    minor: Option<i64>,
    access: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read for their types")]
struct Rlimit {
    #[serde(rename = "type")]
    kind: String,
    hard: u64,
    soft: u64,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read for their types")]
struct Mount {
    destination: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    source: Option<String>,
    options: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read for their types")]
struct Hook {
    path: String,
    args: Option<Vec<String>>,
    env: Option<Vec<String>>,
    #[serde(default, deserialize_with = "number")]
    timeout: Option<i64>,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    let number = |raw: Box<RawValue>| signed(raw.get()).ok_or_else(|| D::Error::custom("no whole number"));
    raw.map(number).transpose()
}
