//! The objects of a spec. Keys that CDI does not know are kept by name: what they ask for is not given.

use super::{Device, DeviceNode, Edits, Hook, Mount, Spec, written};
use crate::json::{Fault, Scanner, Text, keyed, object};

/// Whether there is any annotation: of these, nothing else matters here.
pub(super) fn annotated(scanner: &mut Scanner<'_>) -> Result<bool, Fault> {
    let annotations = scanner.optional(|scanner| scanner.object_of(|scanner, _| scanner.skip().map(drop)))?;
    Ok(annotations.is_some_and(|annotations| !annotations.empty))
}

/// A card node and a render node are what most devices have.
fn device_nodes<'a>(scanner: &mut Scanner<'a>) -> Result<Vec<DeviceNode<'a>>, Fault> {
    let mut list = Vec::with_capacity(2);
    scanner.each(|scanner| {
        scanner.peek()?;
        list.push(match written::node(scanner) {
            Some(node) => node.into(),
            None => object(scanner)?,
        });
        Ok(())
    })?;
    Ok(list)
}

/// To the compiler this is what reads a bundle's list of groups, and stands with that (layout.ld of the wrapper).
fn gids(scanner: &mut Scanner<'_>) -> Result<Vec<u32>, Fault> {
    let mut gids = Vec::new();
    scanner.each(|scanner| {
        gids.push(scanner.integer()?);
        Ok(())
    })?;
    Ok(gids)
}

fn note(unknown: &mut Vec<String>, key: Text<'_>) -> Result<(), Fault> {
    unknown.push(key.decode().into_owned());
    Ok(())
}

keyed!(Spec<'a>, required [], |spec, scanner| {
    "cdiVersion" => spec.version = scanner.text()?,
    "kind" => spec.kind = scanner.text()?,
    "annotations" => spec.annotated = annotated(scanner)?,
    "devices" => spec.devices = scanner.list(object)?,
    "containerEdits" => spec.edits = scanner.optional(object)?.unwrap_or_default(),
}, |spec, key| note(&mut spec.unknown, key));

keyed!(Device<'a>, required [], |device, scanner| {
    "name" => device.name = scanner.text()?,
    "annotations" => device.more.annotated = annotated(scanner)?,
    "containerEdits" => device.edits = object(scanner)?,
}, |device, key| note(&mut device.more.unknown, key));

keyed!(Edits<'a>, required [], |edits, scanner| {
    "env" => edits.more.env = scanner.texts()?,
    "deviceNodes" => edits.device_nodes = device_nodes(scanner)?,
    "mounts" => edits.more.mounts = scanner.list(object)?,
    "hooks" => edits.more.hooks = scanner.list(object)?,
    "additionalGids" => edits.more.additional_gids = gids(scanner)?,
}, |edits, key| note(&mut edits.more.others, key));

keyed!(DeviceNode<'a>, required [], |node, scanner| {
    "path" => node.path = scanner.text()?,
    "hostPath" => node.more.host_path = scanner.optional(Scanner::text)?,
    "type" => node.more.kind = scanner.optional(Scanner::text)?,
    "major" => node.more.major = scanner.optional(Scanner::integer)?,
    "minor" => node.more.minor = scanner.optional(Scanner::integer)?,
    "fileMode" => node.file_mode = scanner.optional(Scanner::integer)?,
    "permissions" => node.permissions = scanner.optional(Scanner::text)?,
    "uid" => node.more.uid = scanner.optional(Scanner::integer)?,
    "gid" => node.gid = scanner.optional(Scanner::integer)?,
}, |node, key| note(&mut node.more.unknown, key));

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
