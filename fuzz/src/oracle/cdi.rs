//! A CDI spec on serde_json's objects.

use std::borrow::Cow;

use allocation::cdi::{Device, DeviceNode, Edits, Hook, Mount, Spec};

use crate::json::{Object, elements, list, members, optional, signed, value};

/// A spec of which only the top is read.
pub(crate) struct Top<'a> {
    spec: Spec<'static>,
    pub(crate) devices: Vec<&'a str>,
    edits: Option<&'a str>,
}

pub(crate) fn top(raw: &str) -> Option<Top<'_>> {
    let object = Object::read(raw, &["cdiVersion", "kind", "annotations", "devices", "containerEdits"])?;
    let spec = Spec {
        version: text(object.get("cdiVersion"))?,
        kind: text(object.get("kind"))?,
        annotated: annotated(object.get("annotations"))?,
        unknown: object.others(),
        ..Spec::default()
    };
    let devices = optional(object.get("devices"), elements)?.unwrap_or_default();
    let edits = object.get("containerEdits").filter(|edits| *edits != "null");
    Some(Top { spec, devices, edits })
}

impl Top<'_> {
    /// The spec with these of its devices.
    pub(crate) fn only(&self, places: impl Iterator<Item = usize>) -> Option<Spec<'static>> {
        let devices = places.map(|place| device(self.devices[place])).collect::<Option<_>>()?;
        let edits = self.edits.map_or(Some(Edits::default()), edits)?;
        Some(Spec { devices, edits, ..self.spec.clone() })
    }

    /// What an outline has of it: each device's name, and its nodes as the host has them. Whatever else is wrong
    /// with a device is left for whoever is given it; where a key stands twice in one, that is wrong, too.
    pub(crate) fn outline(&self) -> Option<Vec<(String, Vec<String>)>> {
        let is_object = |edits: &str| edits.starts_with('{');
        if !self.edits.is_none_or(is_object) {
            return None;
        }
        self.devices.iter().map(|device| named(device)).collect()
    }
}

fn named(device: &str) -> Option<(String, Vec<String>)> {
    let (mut name, mut hosts) = (String::new(), Vec::new());
    for (key, raw) in members(device)? {
        match key.as_str() {
            "name" => name = value(raw)?,
            "containerEdits" => {
                for (_, nodes) in members(raw)?.into_iter().filter(|(key, _)| key == "deviceNodes") {
                    hosts.extend(list(Some(nodes), host)?);
                }
            }
            _ => {}
        }
    }
    Some((name, hosts))
}

fn host(node: &str) -> Option<String> {
    let (mut path, mut host) = (String::new(), String::new());
    for (key, raw) in members(node)? {
        match key.as_str() {
            "path" => path = value(raw)?,
            "hostPath" => host = optional(Some(raw), value::<String>)?.unwrap_or_default(),
            _ => {}
        }
    }
    Some(if host.is_empty() { path } else { host })
}

/// A text, or nothing where it is absent; null is neither.
fn text(raw: Option<&str>) -> Option<Cow<'static, str>> {
    raw.map_or(Some(Cow::default()), |raw| value(raw).map(Cow::Owned))
}

fn optional_text(raw: Option<&str>) -> Option<Option<Cow<'static, str>>> {
    optional(raw, |raw| value(raw).map(Cow::Owned))
}

fn texts(raw: Option<&str>) -> Option<Vec<Cow<'static, str>>> {
    list(raw, |raw| value(raw).map(Cow::Owned))
}

fn annotated(raw: Option<&str>) -> Option<bool> {
    Some(optional(raw, members)?.is_some_and(|annotations| !annotations.is_empty()))
}

fn device(raw: &str) -> Option<Device<'static>> {
    let object = Object::read(raw, &["name", "annotations", "containerEdits"])?;
    Some(Device {
        name: text(object.get("name"))?,
        edits: object.get("containerEdits").map_or(Some(Edits::default()), edits)?,
        annotated: annotated(object.get("annotations"))?,
        unknown: object.others(),
    })
}

fn edits(raw: &str) -> Option<Edits<'static>> {
    let object = Object::read(raw, &["env", "deviceNodes", "mounts", "hooks", "additionalGids"])?;
    Some(Edits {
        device_nodes: list(object.get("deviceNodes"), node)?,
        env: texts(object.get("env"))?,
        mounts: list(object.get("mounts"), mount)?,
        hooks: list(object.get("hooks"), hook)?,
        additional_gids: list(object.get("additionalGids"), value)?,
        others: object.others(),
    })
}

fn node(raw: &str) -> Option<DeviceNode<'static>> {
    let keys = &["path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"];
    let object = Object::read(raw, keys)?;
    Some(DeviceNode {
        path: text(object.get("path"))?,
        file_mode: optional(object.get("fileMode"), value)?,
        gid: optional(object.get("gid"), value)?,
        permissions: optional_text(object.get("permissions"))?,
        host_path: optional_text(object.get("hostPath"))?,
        kind: optional_text(object.get("type"))?,
        major: optional(object.get("major"), signed)?,
        minor: optional(object.get("minor"), signed)?,
        uid: optional(object.get("uid"), value)?,
        unknown: object.others(),
    })
}

fn mount(raw: &str) -> Option<Mount<'static>> {
    let object = Object::read(raw, &["hostPath", "containerPath", "options", "type"])?;
    Some(Mount {
        host_path: text(object.get("hostPath"))?,
        container_path: text(object.get("containerPath"))?,
        options: texts(object.get("options"))?,
        kind: optional_text(object.get("type"))?,
        unknown: object.others(),
    })
}

fn hook(raw: &str) -> Option<Hook<'static>> {
    let object = Object::read(raw, &["hookName", "path", "args", "env", "timeout"])?;
    Some(Hook {
        name: text(object.get("hookName"))?,
        path: text(object.get("path"))?,
        args: texts(object.get("args"))?,
        env: texts(object.get("env"))?,
        timeout: optional(object.get("timeout"), signed)?,
        unknown: object.others(),
    })
}
