//! The objects of a spec. Keys that CDI does not know are kept by name: what they ask for is not given.

use super::{Device, DeviceNode, Edits, Hook, Mount};
use crate::json::{Fault, Scanner, Text, keyed, object};

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
    "deviceNodes" => edits.device_nodes = scanner.list(object)?,
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
