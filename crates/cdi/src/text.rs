use std::collections::BTreeSet;

use allocation::cdi::{self, Edits};
use render::{self, Templates};

use super::spec::{Node, Spec};

/// What came out of the template is not what should be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Render(#[from] render::Error),
    #[error("{0} gives {1}")]
    Wrong(String, String),
}

/// The spec's text, from its template: parsed again, valid CDI, and naming the devices and nodes that it was
/// asked for, no other.
///
/// # Errors
/// When the template does not give that.
pub fn text(templates: &Templates, spec: &Spec) -> Result<String, Error> {
    let wrong = |what| Error::Wrong(templates.place(render::CDI), what);
    let text = templates.render(render::CDI, spec)?;
    let parsed = cdi::Spec::parse(&text)
        .map_err(|cause| wrong(format!("a spec that cannot be read again: {cause}")))?;
    if let Some(fault) = parsed.faults().first() {
        return Err(wrong(format!("a spec that is not valid CDI: {fault}")));
    }
    compare(spec, &parsed).map_err(|other| wrong(format!("another spec than it was asked for: {other}")))?;
    Ok(text)
}

/// The kinds of edits beside device nodes that a spec makes. rocworker's own template makes none; an override may.
#[must_use]
pub fn other_edits(text: &str) -> BTreeSet<String> {
    let spec = cdi::Spec::parse(text).unwrap_or_default();
    let all = spec.devices.into_iter().map(|device| device.edits).chain([spec.edits]);
    let kinds = all.flat_map(|edits| {
        let known = [
            ("env", !edits.env.is_empty()),
            ("mounts", !edits.mounts.is_empty()),
            ("hooks", !edits.hooks.is_empty()),
            ("additionalGids", !edits.additional_gids.is_empty()),
        ];
        known.into_iter().filter(|(_, there)| *there).map(|(kind, _)| kind.to_owned()).chain(edits.others.0)
    });
    kinds.collect()
}

fn compare(spec: &Spec, parsed: &cdi::Spec) -> Result<(), String> {
    let asked: Vec<&str> = spec.devices.iter().map(|device| device.name.as_str()).collect();
    let given: Vec<&str> = parsed.devices.iter().map(|device| &*device.name).collect();
    if asked != given || spec.kind != parsed.kind {
        return Err(format!(
            "{} with the devices {} and not {}",
            parsed.kind,
            given.join(", "),
            asked.join(", ")
        ));
    }
    let same = |nodes: &[Node], edits: &Edits| paths(nodes) == paths_of(edits);
    if !same(&spec.common, &parsed.edits) {
        return Err("the nodes that all devices have in common".to_owned());
    }
    let wrong =
        spec.devices.iter().zip(&parsed.devices).find(|(asked, given)| !same(&asked.nodes, &given.edits));
    wrong.map_or(Ok(()), |(device, _)| Err(format!("the nodes of device {}", device.name)))
}

fn paths(nodes: &[Node]) -> BTreeSet<&str> {
    nodes.iter().map(|node| node.path.as_str()).collect()
}

fn paths_of(edits: &Edits) -> BTreeSet<&str> {
    edits.device_nodes.iter().map(|node| &*node.path).collect()
}
