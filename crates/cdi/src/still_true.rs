use std::collections::BTreeSet;

use allocation::cdi;
use inventory::{Gpu, PciAddress};
use serde_json::Value;

use super::spec::{KIND, nodes};

/// What of a spec is true of a machine.
#[derive(Debug)]
pub struct StillTrue<'a> {
    /// The spec reduced to what is true, or its text unchanged where all of it is. `None`: no device is left.
    pub text: Option<String>,
    /// The GPUs that the reduced spec gives.
    pub gpus: Vec<&'a Gpu>,
}

/// What of a spec that rocworker made earlier is true now, when it cannot be made anew. A GPU's nodes stay where a
/// container can use it and the spec gave the same nodes by a name that stays the GPU's own: a boot numbers the
/// nodes anew, so that one card's node may be another's. `usable`: the GPUs that a container can use.
#[must_use]
pub fn still_true<'a>(text: &str, usable: impl Iterator<Item = &'a Gpu>) -> StillTrue<'a> {
    let none = StillTrue { text: None, gpus: Vec::new() };
    let Some(spec) = read(text) else { return none };
    let gpus: Vec<&Gpu> = usable.filter(|gpu| gives(&spec, gpu)).collect();
    let there: BTreeSet<String> = gpus.iter().flat_map(|gpu| nodes(gpu)).map(|node| node.path).collect();
    let mut given = spec.devices.iter().flat_map(|device| &device.edits.device_nodes);
    if given.all(|node| there.contains(node.host())) {
        return StillTrue { text: Some(text.to_owned()), gpus };
    }
    // A card node alone is of no use.
    let renders = gpus.iter().filter_map(|gpu| gpu.render.as_ref()?.path.to_str()).collect();
    without(text, &there, &renders).map_or(none, |text| StillTrue { text: Some(text), gpus })
}

fn read(text: &str) -> Option<cdi::Spec> {
    cdi::Spec::parse(text).ok().filter(|spec| spec.kind == KIND && spec.faults().is_empty())
}

/// Whether the spec gave a GPU's nodes by a name that lasts: its card's address, where cards are named so, else its uuid or
/// its card's. An index belongs to no GPU for good.
fn gives(spec: &cdi::Spec, gpu: &Gpu) -> bool {
    let names_by = |is_so: fn(&str) -> bool| spec.devices.iter().any(|device| is_so(&device.name));
    let uuid = gpu.uuid.as_ref().ok().copied().or(gpu.card_uuid).map(|uuid| uuid.to_string());
    let name = if names_by(|name| name.parse::<PciAddress>().is_ok()) {
        gpu.pci.map(|address| address.to_string())
    } else {
        uuid
    };
    let device = spec.devices.iter().find(|device| name.as_deref() == Some(&*device.name));
    let gave = |path: &str| device.is_some_and(|it| it.edits.device_nodes.iter().any(|it| it.host() == path));
    nodes(gpu).iter().all(|node| gave(&node.path))
}

/// The spec without nodes that are not there, and without devices that have no render node left.
fn without(text: &str, there: &BTreeSet<String>, renders: &BTreeSet<&str>) -> Option<String> {
    let mut spec: Value = serde_json::from_str(text).ok()?;
    let devices = spec.get_mut("devices")?.as_array_mut()?;
    devices.retain_mut(|device| {
        let nodes = device.pointer_mut("/containerEdits/deviceNodes").and_then(Value::as_array_mut);
        nodes.is_some_and(|nodes| {
            nodes.retain(|node| there.contains(host(node)));
            nodes.iter().any(|node| renders.contains(host(node)))
        })
    });
    let text = format!("{spec:#}\n");
    let is_left = read(&text).is_some_and(|spec| !spec.devices.is_empty());
    is_left.then_some(text)
}

fn host(node: &Value) -> &str {
    let text = |key| node.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("hostPath").or_else(|| text("path")).unwrap_or_default()
}
