//! `topology`: how the GPUs are linked, as a matrix or as a tree.

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use inventory::Gpu;
use inventory::topology::{Linked, hive_name};
use printable::printable;
use ui::topology::{self, Matrix, SELF, UNKNOWN, Unit};

use super::Outcome;
use super::detect::ranges;
use super::options::Format;
use super::output::{BAD, DIM, styled};
use super::session::Session;
use super::table::{Cell, Columns};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// As a tree: NUMA node, host bridge, bridges, card, partitions
    #[arg(long)]
    tree: bool,
}

/// How many GPUs' links fit side by side into a table of 100 columns.
const ABREAST: usize = 10;

/// How many sentences of one kind are printed.
const MOST: usize = 5;

pub(crate) fn run(session: &Session, args: &Args) -> anyhow::Result<Outcome> {
    let inventory = amdgpu::read(&session.root);
    let topology = amdgpu::topology(&session.root, &inventory);
    let linked = Linked { inventory: &inventory, topology: &topology };
    session.format.print(&linked, || {
        let shown = if args.tree { tree::text(linked) } else { matrix(linked, session.format) };
        shown + &first_of(&linked.problems(), "problem:")
    })?;
    Ok(Outcome::Done)
}

fn matrix(linked: Linked<'_>, format: Format) -> String {
    if linked.gpus().next().is_none() {
        return "No AMD GPU on the PCI bus of this machine.\n".to_owned();
    }
    let is_wide = format == Format::Wide;
    let matrix = if is_wide { Matrix::of_gpus(linked) } else { Matrix::of_cards(linked) };
    let mut text = String::new();
    let abreast = if is_wide { matrix.units.len() } else { ABREAST };
    for first in (0..matrix.units.len()).step_by(abreast) {
        text += &block(&matrix, first, abreast, format);
        text.push('\n');
    }
    text += &legend(&matrix, linked);
    text += &hives(linked, format);
    text += &numa_nodes(linked, format);
    text + &unknown(&matrix, linked)
}

/// The matrix' columns from `first` on, each row's card before them.
fn block(matrix: &Matrix, first: usize, abreast: usize, format: Format) -> String {
    let labels: Vec<String> = matrix.units.iter().map(label).collect();
    let mut headings = vec!["GPU", "PCI"];
    headings.extend(labels.iter().skip(first).take(abreast).map(String::as_str));
    let mut columns = Columns::new(&headings);
    for ((unit, label), row) in matrix.units.iter().zip(&labels).zip(&matrix.rows) {
        let mut cells: Vec<Cell> =
            vec![label.as_str().into(), unit.pci.map_or("-".to_owned(), |pci| pci.to_string()).into()];
        cells.extend(row.iter().skip(first).take(abreast).map(|word| match word.as_str() {
            SELF => Cell::styled(SELF, DIM),
            UNKNOWN => Cell::styled(UNKNOWN, BAD),
            word => word.into(),
        }));
        columns.cells(cells);
    }
    columns.shown(format)
}

fn label(unit: &Unit) -> String {
    ranges(&unit.gpus)
}

/// Explains the words of the matrix.
fn legend(matrix: &Matrix, linked: Linked<'_>) -> String {
    let mut lines: BTreeMap<(u8, &str), String> = BTreeMap::new();
    let is_of_cards = matrix.units.iter().any(|unit| unit.gpus.len() > 1);
    let words: BTreeSet<&str> = matrix.rows.iter().flatten().map(String::as_str).collect();
    for word in words {
        let (place, meaning) = match word {
            SELF if is_of_cards => (0, "the card itself; -o wide shows its partitions".to_owned()),
            SELF => (0, "the GPU itself".to_owned()),
            "CARD" => (1, format!("partitions of one card{}", bandwidth(word, linked))),
            "XGMI" => (2, format!("XGMI; KFD does not name the hops{}", bandwidth(word, linked))),
            "PIX" => (3, "PCIe through at most one switch".to_owned()),
            "PXB" => (4, "PCIe through several switches, below one host bridge".to_owned()),
            "PHB" => (5, "PCIe through one host bridge".to_owned()),
            "NODE" => (6, "PCIe through host bridges of one NUMA node".to_owned()),
            "SYS" => (7, "PCIe and the connection between NUMA nodes".to_owned()),
            UNKNOWN => (8, "not known".to_owned()),
            xgmi => {
                let hops = xgmi.trim_start_matches("XGMI");
                let unit = if hops == "1" { "hop" } else { "hops" };
                (2, format!("XGMI, {hops} {unit}{}", bandwidth(word, linked)))
            }
        };
        lines.insert((place, word), meaning);
    }
    let lines = lines.into_iter().map(|((_, word), meaning)| format!("{word:<5}  {meaning}\n"));
    styled(DIM, lines.collect::<String>().trim_end()) + "\n"
}

/// The least and the most that KFD says of these links.
fn bandwidth(word: &str, linked: Linked<'_>) -> String {
    let links = || linked.topology.links.iter().filter(|link| topology::word(link).as_deref() == Ok(word));
    let least = links().filter_map(|link| link.min_bandwidth).min();
    let most = links().filter_map(|link| link.max_bandwidth).max();
    match (least, most) {
        (Some(least), Some(most)) if least != most => {
            format!("; {} to {} GB/s", gigabytes(least), gigabytes(most))
        }
        (Some(most), _) | (_, Some(most)) => format!("; {} GB/s", gigabytes(most)),
        (None, None) => String::new(),
    }
}

fn gigabytes(megabytes: u64) -> String {
    match megabytes % 1_000 {
        0 => (megabytes / 1_000).to_string(),
        rest => format!("{}.{}", megabytes / 1_000, rest / 100),
    }
}

fn hives(linked: Linked<'_>, format: Format) -> String {
    let hives = linked.hives();
    if hives.is_empty() {
        return String::new();
    }
    let mut columns = Columns::new(&["HIVE", "CARDS", "GPUS"]).right(&[1]).shortened(&[2]);
    for hive in hives {
        let cards = hive.cards.len().to_string();
        columns.row([hive_name(hive.id).into(), cards.into(), ranges(&hive.gpus).into()]);
    }
    format!("\n{}", columns.shown(format))
}

/// Which GPUs are near which CPUs.
fn numa_nodes(linked: Linked<'_>, format: Format) -> String {
    // GPUs of which no node is known come last.
    let place = |(index, gpu): (u32, &Gpu)| {
        let node = gpu.numa_node.as_ref().ok();
        ((node.is_none(), node.copied(), linked.local_cpus(gpu).ok()), index)
    };
    let mut gpus: Vec<_> = linked.gpus().map(place).collect();
    gpus.sort();
    let mut columns = Columns::new(&["NUMA", "GPUS", "CPUS"]).shortened(&[2, 1]);
    for gpus in gpus.chunk_by(|(a, _), (b, _)| a == b) {
        let Some(((_, node, cpus), _)) = gpus.first() else { continue };
        let node = node.map_or_else(|| UNKNOWN.to_owned(), |node| node.to_string());
        let indexes: Vec<u32> = gpus.iter().map(|(_, index)| *index).collect();
        columns.row([node.into(), ranges(&indexes).into(), cpus.unwrap_or(UNKNOWN).into()]);
    }
    format!("\n{}", columns.shown(format))
}

/// Why links and NUMA nodes are not known.
fn unknown(matrix: &Matrix, linked: Linked<'_>) -> String {
    let mut reasons = unknown_links(matrix);
    reasons.extend(unknown_places(linked));
    first_of(&reasons, UNKNOWN)
}

/// A line each, and one for those that are not printed.
fn first_of(sentences: &[String], sign: &str) -> String {
    let mut text = String::new();
    for sentence in sentences.iter().take(MOST) {
        writeln!(text, "{} {}", styled(BAD, sign), printable(sentence)).ok();
    }
    match sentences.len().saturating_sub(MOST) {
        0 => {}
        more => _ = writeln!(text, "{} {more} more; -o json lists them", styled(BAD, sign)),
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Each reason why links are unknown, with the first pair of GPUs that it holds for.
fn unknown_links(matrix: &Matrix) -> Vec<String> {
    let mut reasons: Vec<(&str, String, usize)> = Vec::new();
    for (a, b, why) in &matrix.unknown {
        match reasons.iter_mut().find(|(known, ..)| known == why) {
            Some((.., count)) => *count += 1,
            None => {
                let of = |place: &usize| matrix.units.get(*place).map(label).unwrap_or_default();
                reasons.push((why, format!("{} and {}", of(a), of(b)), 1));
            }
        }
    }
    let line = |(why, pair, count): (&str, String, usize)| match count - 1 {
        0 => format!("{pair}: {why}"),
        more => format!("{pair}: {why}; and so for {more} more"),
    };
    reasons.into_iter().map(line).collect()
}

/// Each reason why the places of GPUs are unknown, with the GPUs that it holds for. Files of several cards are one
/// reason: `*` stands for the card.
fn unknown_places(linked: Linked<'_>) -> Vec<String> {
    let mut reasons: Vec<(String, Vec<u32>)> = Vec::new();
    for (index, gpu) in linked.gpus() {
        for why in linked.unknown(gpu).into_values() {
            let why = gpu.pci.map_or_else(|| why.clone(), |pci| why.replace(&pci.to_string(), "*"));
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, gpus)) => gpus.push(index),
                None => reasons.push((why, vec![index])),
            }
        }
    }
    reasons.into_iter().map(|(why, gpus)| format!("{}: {why}", ranges(&gpus))).collect()
}
