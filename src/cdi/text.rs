use std::collections::BTreeSet;

use allocation::cdi::{self, Edits};

use super::spec::{Node, Spec};
use crate::render::{self, Templates};

/// What came out of the template is not what should be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Render(#[from] render::Error),
    #[error("{place} gives a spec that cannot be read again: {cause}")]
    Parse { place: String, cause: allocation::Error },
    #[error("{place} gives a spec that is not valid CDI: {fault}")]
    Invalid { place: String, fault: cdi::Fault },
    #[error("{place} gives another spec than it was asked for: {difference}")]
    Different { place: String, difference: String },
}

/// The spec's text, from its template: parsed again, valid CDI, and naming the devices and nodes that it was
/// asked for, no other.
///
/// # Errors
/// When the template does not give that.
pub fn text(templates: &Templates, spec: &Spec) -> Result<String, Error> {
    let place = || templates.place(render::CDI);
    let text = templates.render(render::CDI, spec)?;
    let parsed = cdi::Spec::parse(&text).map_err(|cause| Error::Parse { place: place(), cause })?;
    if let Some(fault) = parsed.faults().into_iter().next() {
        return Err(Error::Invalid { place: place(), fault });
    }
    compare(spec, &parsed).map_err(|difference| Error::Different { place: place(), difference })?;
    Ok(text)
}

fn compare(spec: &Spec, parsed: &cdi::Spec<'_>) -> Result<(), String> {
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
    let same = |nodes: &[Node], edits: &Edits<'_>| paths(nodes) == paths_of(edits);
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

fn paths_of<'a>(edits: &'a Edits<'_>) -> BTreeSet<&'a str> {
    edits.device_nodes.iter().map(|node| &*node.path).collect()
}
