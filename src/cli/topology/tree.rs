//! The tree: a line a place, the places below it further to the right.

use std::fmt::Write;

use super::super::detect::{no_gpu, ranges};
use super::super::output::{DIM, HEADING, styled};
use crate::printable::printable;
use crate::topology::Answer;
use crate::topology::tree::{Branch, CardEntry, Place};

pub(super) fn text(answer: &Answer) -> String {
    if answer.tree.is_empty() {
        return no_gpu(answer.may_lack).to_owned();
    }
    let mut text = String::new();
    for branch in &answer.tree {
        writeln!(text, "{}", line(&branch.place)).ok();
        below(branch, "", &mut text);
    }
    text
}

fn below(branch: &Branch, indent: &str, text: &mut String) {
    let mut leaves = branch.children.iter().peekable();
    while let Some(mut child) = leaves.next() {
        let (fork, bar) = if leaves.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
        let mut shown = line(&child.place);
        // Bridges in a row with nothing beside them are one line.
        while let (Place::Bridge { .. }, [only @ Branch { place: Place::Bridge { .. }, .. }]) =
            (&child.place, child.children.as_slice())
        {
            child = only;
            shown = format!("{shown} > {}", line(&child.place));
        }
        writeln!(text, "{}{shown}", styled(DIM, format_args!("{indent}{fork}"))).ok();
        let indent = format!("{indent}{bar}");
        below(child, &indent, text);
        if let Place::Card(card) = &child.place {
            partitions(card, &indent, text);
        }
    }
}

fn line(place: &Place) -> String {
    match place {
        Place::NumaNode { numa_node, local_cpus } => {
            let node = numa_node
                .map_or_else(|| "NUMA node not known".to_owned(), |node| format!("NUMA node {node}"));
            let cpus = local_cpus.as_ref().map(|cpus| format!(", CPUs {}", printable(cpus)));
            styled(HEADING, format_args!("{node}{}", cpus.unwrap_or_default()))
        }
        Place::HostBridge { name: Some(name) } => format!("host bridge {}", printable(name)),
        Place::HostBridge { name: None } => "host bridge not known".to_owned(),
        Place::Bridge { pci, on_card: false } => format!("bridge {pci}"),
        Place::Bridge { pci, on_card: true } => format!("{pci} on the card"),
        Place::Card(card) => line_of_card(card),
    }
}

/// `0000:05:00.0  GPU 0-7  AMD Instinct MI300X OAM  32 GT/s x16  hive …`.
fn line_of_card(card: &CardEntry) -> String {
    let indexes: Vec<u32> = card.gpus.iter().map(|part| part.index).collect();
    let mut parts = vec![card.pci.clone().unwrap_or_else(|| "card not known".to_owned())];
    match indexes.as_slice() {
        [] if card.vendor == "amd" => {}
        [] => parts.push("not AMD".to_owned()),
        indexes => parts.push(format!("GPU {}", ranges(indexes))),
    }
    parts.extend(card.name.as_deref().map(printable));
    let speed = card.link_transfers_per_second.map(|transfers| format!("{} GT/s", transfers / 1e9));
    let lanes = card.link_lanes.map(|lanes| format!("x{lanes}"));
    let link: Vec<String> = speed.into_iter().chain(lanes).collect();
    if !link.is_empty() {
        parts.push(link.join(" "));
    }
    parts.extend(card.hive.as_ref().map(|hive| format!("hive {hive}")));
    parts.join("  ")
}

fn partitions(card: &CardEntry, indent: &str, text: &mut String) {
    let mut parts = card.gpus.iter().filter(|_| card.gpus.len() > 1).peekable();
    while let Some(part) = parts.next() {
        let fork = if parts.peek().is_some() { "├─ " } else { "└─ " };
        let partition = part.partition.map(|id| format!("partition {id}: ")).unwrap_or_default();
        writeln!(text, "{}{partition}GPU {}", styled(DIM, format_args!("{indent}{fork}")), part.index).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tree::Part;

    fn card(pci: Option<&str>, gpus: &[u32]) -> Branch {
        let part = |index: &u32| Part { index: *index, partition: None };
        let entry = CardEntry {
            pci: pci.map(str::to_owned),
            vendor: "amd",
            name: None,
            link_transfers_per_second: None,
            link_lanes: None,
            hive: None,
            gpus: gpus.iter().map(part).collect(),
            unknown: None,
        };
        Branch { place: Place::Card(entry), children: Vec::new() }
    }

    #[test]
    fn what_sysfs_does_not_name_is_a_branch_of_its_own() {
        let bridge = Place::HostBridge { name: None };
        let bridge = Branch { place: bridge, children: vec![card(Some("0000:03:00.0"), &[0])] };
        let node = Place::NumaNode { numa_node: None, local_cpus: None };
        let tree = vec![Branch { place: node, children: vec![bridge] }, card(None, &[1, 2])];
        let answer = Answer {
            schema_version: 1,
            gpus: Vec::new(),
            links: Vec::new(),
            hives: Vec::new(),
            tree,
            problems: Vec::new(),
            may_lack: false,
        };
        let expected = "NUMA node not known\n\
                        └─ host bridge not known\n\
                        \x20  └─ 0000:03:00.0  GPU 0\n\
                        card not known  GPU 1-2\n";
        assert_eq!(anstream::adapter::strip_str(&text(&answer)).to_string(), expected);
    }
}
