//! What is read of a bundle and of a process object, and what is refused: on serde_json's objects, with keys folded as
//! Go folds them.
//!
//! It is given the text as Go's decoder reads it ([`crate::json::as_go_decodes`]).

use allocation::{
    bundle::{Device, Injection},
    gids::{IdMapping, UserNamespace},
};
use raw_json::Text;

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

    /// The value of a field that begins so; another one puts the whole in doubt.
    fn field(&mut self, of: &Members<'a>, name: &str, open: char) -> Option<&'a str> {
        let value = self.once(of, name)?;
        self.in_doubt |= !value.starts_with(open);
        Some(value)
    }

    /// The value of a field. Two put the whole in doubt; null is as good as nothing.
    fn once(&mut self, of: &Members<'a>, name: &str) -> Option<&'a str> {
        let mut found = of.iter().filter(|(key, _)| is_field(key, name)).map(|(_, raw)| *raw);
        let first = found.next();
        self.in_doubt |= found.next().is_some();
        first.filter(|raw| *raw != "null")
    }

    pub(crate) fn devices(&self) -> Option<Vec<Device<'static>>> {
        entries(self.devices, ["path", "type", "major", "minor"], |[path, kind, major, minor]| {
            let text = |raw| value(raw).map(|text: String| Text(text.into()));
            let (major, minor) = (optional(major, signed)?, optional(minor, signed)?);
            Some(Device { path: text(path?)?, kind: text(kind?)?, major, minor })
        })
    }

    pub(crate) fn user_namespace(&self) -> Option<UserNamespace> {
        let namespaces = entries(self.namespaces, ["type", "path"], |[kind, path]| {
            Some((value::<String>(kind?)?, optional(path, value::<String>)?))
        })?;
        let Some((_, path)) = namespaces.into_iter().find(|(kind, _)| kind == "user") else {
            return Some(UserNamespace::Host);
        };
        let (uids, gids) = (mappings(self.uid_mappings)?, mappings(self.gid_mappings)?);
        Some(match path {
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
        let rlimits = !self.has_process
            || process.memlock_bytes.is_none()
            || !self.rlimits_in_doubt && self.rlimits_can_be_read();
        let nodes = injection.nodes.is_empty() || self.devices().is_some() && self.rules_can_be_read();
        let mounts = injection.shm_bytes.is_none() || self.mounts_can_be_read();
        !self.in_doubt && gids && rlimits && nodes && mounts
    }

    fn rlimits_can_be_read(&self) -> bool {
        let rlimit = |[kind, hard, soft]: [Option<&str>; 3]| {
            Some((value::<String>(kind?)?, value::<u64>(hard?)?, value::<u64>(soft?)?))
        };
        entries(self.rlimits, ["type", "hard", "soft"], rlimit).is_some()
    }

    fn rules_can_be_read(&self) -> bool {
        let rule = |[allow, kind, major, minor, access]: [Option<&str>; 5]| {
            optional(allow, value::<bool>)?;
            optional(kind, value::<String>)?;
            optional(access, value::<String>)?;
            Some((optional(major, signed)?, optional(minor, signed)?))
        };
        entries(self.rules, ["allow", "type", "major", "minor", "access"], rule).is_some()
    }

    pub(crate) fn mounts_can_be_read(&self) -> bool {
        let mount = |[destination, kind, source, options]: [Option<&str>; 4]| {
            value::<String>(destination?)?;
            optional(kind, value::<String>)?;
            optional(source, value::<String>)?;
            list(options, value::<String>)
        };
        entries(self.mounts, ["destination", "type", "source", "options"], mount).is_some()
    }
}

/// The last path of any root; the outer None where a root is no object, or its last path no text.
fn rootfs(root: &Members<'_>) -> Option<Option<String>> {
    let mut last = None;
    for (_, of) in root.iter().filter(|(key, _)| is_field(key, "root")) {
        if let Some((_, path)) = members(of)?.iter().rfind(|(key, _)| is_field(key, "path")) {
            last = Some(value(path)?);
        }
    }
    Some(last)
}

/// Each entry is an object, in which each of these keys stands once at the most, in whatever spelling.
fn entries<'a, T, const N: usize>(
    raw: Option<&'a str>,
    keys: [&str; N],
    read: impl Fn([Option<&'a str>; N]) -> Option<T>,
) -> Option<Vec<T>> {
    list(raw, |entry| {
        let mut of_entry = Places::default();
        let members = members(entry)?;
        let values = keys.map(|key| of_entry.once(&members, key));
        if of_entry.in_doubt { None } else { read(values) }
    })
}

fn mappings(raw: Option<&str>) -> Option<Vec<IdMapping>> {
    let mapping = |[container_id, host_id, size]: [Option<&str>; 3]| {
        Some(IdMapping {
            container_id: value(container_id?)?,
            host_id: value(host_id?)?,
            size: value(size?)?,
        })
    };
    entries(raw, ["containerID", "hostID", "size"], mapping)
}
