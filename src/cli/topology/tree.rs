//! The tree: a line a place, the places below it further to the right.

use std::fmt::Write;

use inventory::topology::{Card, Linked, hive_name};
use inventory::tree::{Branch, Place};
use inventory::{Vendor, names};
use printable::printable;

use super::super::detect::{no_gpu, ranges};
use super::super::output::{DIM, HEADING, styled};

pub(super) fn text(linked: Linked<'_>) -> String {
    let tree = linked.tree();
    if tree.is_empty() {
        return no_gpu(linked.inventory.may_lack_gpus()).to_owned();
    }
    let mut text = String::new();
    for branch in &tree {
        writeln!(text, "{}", line(&branch.place, linked)).ok();
        below(branch, "", linked, &mut text);
    }
    text
}

fn below(branch: &Branch<'_>, indent: &str, linked: Linked<'_>, text: &mut String) {
    let mut leaves = branch.children.iter().peekable();
    while let Some(mut child) = leaves.next() {
        let (fork, bar) = if leaves.peek().is_some() { ("├─ ", "│  ") } else { ("└─ ", "   ") };
        let mut shown = line(&child.place, linked);
        // Bridges in a row with nothing beside them are one line.
        while let (Place::Bridge { .. }, [only @ Branch { place: Place::Bridge { .. }, .. }]) =
            (&child.place, child.children.as_slice())
        {
            child = only;
            shown = format!("{shown} > {}", line(&child.place, linked));
        }
        writeln!(text, "{}{shown}", styled(DIM, format_args!("{indent}{fork}"))).ok();
        let indent = format!("{indent}{bar}");
        below(child, &indent, linked, text);
        partitions(&linked.gpus_at(&child.place), &indent, text);
    }
}

fn line(place: &Place<'_>, linked: Linked<'_>) -> String {
    match place {
        Place::NumaNode { number, local_cpus } => {
            let node =
                number.map_or_else(|| "NUMA node not known".to_owned(), |node| format!("NUMA node {node}"));
            let cpus = local_cpus.map(|cpus| format!(", CPUs {}", printable(cpus)));
            styled(HEADING, format_args!("{node}{}", cpus.unwrap_or_default()))
        }
        Place::HostBridge(Some(name)) => format!("host bridge {}", printable(name)),
        Place::HostBridge(None) => "host bridge not known".to_owned(),
        Place::Bridge { address, is_on_card: false } => format!("bridge {address}"),
        Place::Bridge { address, is_on_card: true } => format!("{address} on the card"),
        Place::Card(card) => line_of_card(card, &linked.gpus_at(place), linked),
        Place::NoCard(_) => format!("card not known  GPU {}", indexes(&linked.gpus_at(place))),
    }
}

/// `0000:05:00.0  GPU 0-7  AMD Instinct MI300X OAM  32 GT/s x16  hive …`.
fn line_of_card(card: &Card, gpus: &[(u32, Option<u32>)], linked: Linked<'_>) -> String {
    let mut parts = vec![card.address.to_string()];
    match gpus {
        [] if card.vendor == Vendor::Amd => {}
        [] => parts.push("not AMD".to_owned()),
        gpus => parts.push(format!("GPU {}", indexes(gpus))),
    }
    let gpu = card.gpus.first().and_then(|place| linked.inventory.gpus.get(*place));
    parts.extend(gpu.and_then(names::of).as_deref().map(printable));
    let speed = card.speed.as_ref().ok().map(|transfers| format!("{} GT/s", transfers / 1e9));
    let lanes = card.width.as_ref().ok().map(|lanes| format!("x{lanes}"));
    let link: Vec<String> = speed.into_iter().chain(lanes).collect();
    if !link.is_empty() {
        parts.push(link.join(" "));
    }
    parts.extend(gpu.and_then(|gpu| gpu.hive_id).map(|id| format!("hive {}", hive_name(id))));
    parts.join("  ")
}

fn indexes(gpus: &[(u32, Option<u32>)]) -> String {
    ranges(&gpus.iter().map(|(index, _)| *index).collect::<Vec<u32>>())
}

/// A card's only GPU stands in the card's line.
fn partitions(gpus: &[(u32, Option<u32>)], indent: &str, text: &mut String) {
    let mut gpus = gpus.iter().filter(|_| gpus.len() > 1).peekable();
    while let Some((index, partition)) = gpus.next() {
        let fork = if gpus.peek().is_some() { "├─ " } else { "└─ " };
        let partition = partition.map(|id| format!("partition {id}: ")).unwrap_or_default();
        writeln!(text, "{}{partition}GPU {index}", styled(DIM, format_args!("{indent}{fork}"))).ok();
    }
}

#[cfg(test)]
mod tests;
