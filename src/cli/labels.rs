//! `labels`: what a Kubernetes node says of its GPUs.

use std::fmt::Write as _;

use inventory::labels::{self, Labels};
use printable::printable;
use serde::Serialize;

use super::Outcome;
use super::options::Format;
use super::output::{DIM, print_text, styled};
use super::session::Session;

/// A merge patch of a node (RFC 7396).
#[derive(Serialize)]
struct Patch<'l> {
    metadata: Metadata<'l>,
}

#[derive(Serialize)]
struct Metadata<'l> {
    labels: &'l Labels,
}

pub(crate) fn run(session: &Session) -> anyhow::Result<Outcome> {
    let labels =
        amdgpu::labels(&session.root, &session.config()?.kubernetes.labels).map_err(anyhow::Error::msg)?;
    let patch = Patch { metadata: Metadata { labels: &labels } };
    match session.format {
        Format::Yaml => print_text(&yaml_serde::to_string(&patch)?)?,
        Format::Nfd => print_text(&labels::feature_file(&labels, None))?,
        Format::Table | Format::Wide | Format::Json => session.format.print(&patch, || text(&labels))?,
    }
    Ok(Outcome::Done)
}

fn text(labels: &Labels) -> String {
    if labels.is_empty() {
        return "No label: amdgpu drives no GPU of this machine.\n".to_owned();
    }
    let mut text = String::new();
    for (name, value) in labels {
        writeln!(text, "{}={}", printable(name), printable(value)).ok();
    }
    let hint = "kubectl patch node NAME --type merge --patch \"$(rocworker labels -o json)\"";
    writeln!(text, "{}", styled(DIM, hint)).ok();
    text
}
