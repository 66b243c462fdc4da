//! The objects of a spec. Keys that CDI does not know are kept by name: what they ask for is not given.

use super::{Device, DeviceNode, Edits, Hook, Mount};
use crate::json::{Fault, Scanner, Text, keyed, object, plain_bytes};

/// Whether there is any annotation: of these, nothing else matters here.
pub(super) fn annotated(scanner: &mut Scanner<'_>) -> Result<bool, Fault> {
    let annotations = scanner.optional(|scanner| scanner.object_of(|scanner, _| scanner.skip().map(drop)))?;
    Ok(annotations.is_some_and(|annotations| !annotations.empty))
}

pub(super) fn note(unknown: &mut Vec<String>, key: Text<'_>) -> Result<(), Fault> {
    unknown.push(key.decode().into_owned());
    Ok(())
}

keyed!(Device<'a>, required [], |device, scanner| {
    "name" => device.name = scanner.text()?,
    "annotations" => device.annotated = annotated(scanner)?,
    "containerEdits" => device.edits = object(scanner)?,
}, |device, key| note(&mut device.unknown, key));

keyed!(Edits<'a>, required [], |edits, scanner| {
    "env" => edits.env = scanner.texts()?,
    "deviceNodes" => scanner.each(|scanner| {
        edits.device_nodes.push(match scanner.by_text(in_one_line) {
            Some(line) => line.node(),
            None => object(scanner)?,
        });
        Ok(())
    })?,
    "mounts" => edits.mounts = scanner.list(object)?,
    "hooks" => edits.hooks = scanner.list(object)?,
    "additionalGids" => edits.additional_gids = scanner.list(Scanner::integer)?,
}, |edits, key| note(&mut edits.others, key));

keyed!(DeviceNode<'a>, required [], |node, scanner| {
    "path" => node.path = scanner.text()?,
    "hostPath" => node.host_path = scanner.optional(Scanner::text)?,
    "type" => node.kind = scanner.optional(Scanner::text)?,
    "major" => node.major = scanner.optional(Scanner::integer)?,
    "minor" => node.minor = scanner.optional(Scanner::integer)?,
    "fileMode" => node.file_mode = scanner.optional(Scanner::integer)?,
    "permissions" => node.permissions = scanner.optional(Scanner::text)?,
    "uid" => node.uid = scanner.optional(Scanner::integer)?,
    "gid" => node.gid = scanner.optional(Scanner::integer)?,
}, |node, key| note(&mut node.unknown, key));

/// A node that may be read and written, as the line says that templates/cdi/amd.json writes for it.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) path: &'a str,
    file_mode: u32,
    gid: u32,
}

impl<'a> Line<'a> {
    pub(super) fn node(self) -> DeviceNode<'a> {
        let Self { path, file_mode, gid } = self;
        let (file_mode, gid, permissions) = (Some(file_mode), Some(gid), Some("rw".into()));
        DeviceNode { path: path.into(), file_mode, gid, permissions, ..DeviceNode::default() }
    }
}

/// Such a line, and what follows. A spec of 64 partitions has 384 of them. To compare one takes a tenth of the time that
/// reading it key by key takes.
pub(super) fn in_one_line(text: &str) -> Option<(Line<'_>, &str)> {
    let rest = text.strip_prefix(r#"{ "path": ""#)?;
    let (path, rest) = rest.split_at(plain_bytes(rest.as_bytes()));
    let rest = rest.strip_prefix('"')?;
    let (file_mode, rest) = number(rest.strip_prefix(r#", "fileMode": "#)?)?;
    let (gid, rest) = number(rest.strip_prefix(r#", "gid": "#)?)?;
    let rest = rest.strip_prefix(r#", "permissions": "rw" }"#)?;
    Some((Line { path, file_mode, gid }, rest))
}

/// The number at the beginning, as JSON spells it.
fn number(text: &str) -> Option<(u32, &str)> {
    let mut number: u32 = 0;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = text.as_bytes().get(length) {
        number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
        length += 1;
    }
    let is_json = length == 1 || (length > 1 && !text.starts_with('0'));
    Some((number, text.get(length..).filter(|_| is_json)?))
}

keyed!(Mount<'a>, required [], |mount, scanner| {
    "hostPath" => mount.host_path = scanner.text()?,
    "containerPath" => mount.container_path = scanner.text()?,
    "options" => mount.options = scanner.texts()?,
    "type" => mount.kind = scanner.optional(Scanner::text)?,
}, |mount, key| note(&mut mount.unknown, key));

keyed!(Hook<'a>, required [], |hook, scanner| {
    "hookName" => hook.name = scanner.text()?,
    "path" => hook.path = scanner.text()?,
    "args" => hook.args = scanner.texts()?,
    "env" => hook.env = scanner.texts()?,
    "timeout" => hook.timeout = scanner.optional(Scanner::integer)?,
}, |hook, key| note(&mut hook.unknown, key));
