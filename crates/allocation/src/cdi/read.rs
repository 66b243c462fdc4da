//! The objects of a spec. Keys that CDI does not know are kept by name: what they ask for is not given.

use super::{Device, DeviceNode, Edits, Hook, Mount, Spec};
use crate::json::{Fault, Scanner, Text, keyed, object, plain_bytes};

/// Whether there is any annotation: of these, nothing else matters here.
pub(super) fn annotated(scanner: &mut Scanner<'_>) -> Result<bool, Fault> {
    let annotations = scanner.optional(|scanner| scanner.object_of(|scanner, _| scanner.skip().map(drop)))?;
    Ok(annotations.is_some_and(|annotations| !annotations.empty))
}

/// A device node spelt as rocworker's template spells it (templates/cdi/amd.json): a spec of 64 partitions has
/// five hundred, and to read each key by key takes ten times as long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) path: &'a str,
    file_mode: u32,
}

impl<'a> From<Written<'a>> for DeviceNode<'a> {
    fn from(Written { path, file_mode }: Written<'a>) -> Self {
        Self {
            path: path.into(),
            file_mode: Some(file_mode),
            permissions: Some("rw".into()),
            ..DeviceNode::default()
        }
    }
}

/// Of any other spelling nothing is read.
pub(super) fn as_written<'a>(scanner: &mut Scanner<'a>) -> Option<Written<'a>> {
    const BEFORE_PATH: &[u8] = b"{ \"path\": \"";
    let whole = scanner.rest();
    let rest = whole.strip_prefix(BEFORE_PATH)?;
    let length = plain_bytes(rest);
    let mut rest = rest.get(length..)?.strip_prefix(b"\", \"fileMode\": ")?;
    let before = rest.len();
    let mut file_mode = 0_u32;
    while let Some((digit @ b'0'..=b'9', behind)) = rest.split_first() {
        // JSON has no leading zeros, and a mode is not so long.
        if before - rest.len() == 9 || file_mode == 0 && before > rest.len() {
            return None;
        }
        file_mode = file_mode * 10 + u32::from(digit - b'0');
        rest = behind;
    }
    if rest.len() == before {
        return None;
    }
    let rest = rest.strip_prefix(b", \"permissions\": \"rw\" }")?;
    let path = BEFORE_PATH.len()..BEFORE_PATH.len() + length;
    Some(Written { path: scanner.take(whole.len() - rest.len(), path), file_mode })
}

/// Goes past a list of device nodes; each is given as it is written, or read otherwise.
pub(super) fn nodes<'a, T>(
    scanner: &mut Scanner<'a>,
    written: impl Fn(Written<'a>) -> T,
    other: impl Fn(&mut Scanner<'a>) -> Result<T, Fault>,
    mut found: impl FnMut(T),
) -> Result<(), Fault> {
    scanner.each(|scanner| {
        scanner.peek()?;
        let Some(node) = as_written(scanner) else { return other(scanner).map(&mut found) };
        found(written(node));
        // Whoever wrote one like that wrote the next one like that.
        loop {
            let behind = scanner.offset();
            if scanner.take_comma()
                && let Some(node) = as_written(scanner)
            {
                found(written(node));
            } else {
                scanner.back_to(behind);
                return Ok(());
            }
        }
    })
}

fn device_nodes<'a>(scanner: &mut Scanner<'a>) -> Result<Vec<DeviceNode<'a>>, Fault> {
    // A card node and a render node.
    let mut list = Vec::with_capacity(2);
    nodes(scanner, DeviceNode::from, object, |node| list.push(node))?;
    Ok(list)
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
    "annotations" => device.annotated = annotated(scanner)?,
    "containerEdits" => device.edits = object(scanner)?,
}, |device, key| note(&mut device.unknown, key));

keyed!(Edits<'a>, required [], |edits, scanner| {
    "env" => edits.env = scanner.texts()?,
    "deviceNodes" => edits.device_nodes = device_nodes(scanner)?,
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
