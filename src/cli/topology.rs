//! `topology`: how the GPUs are linked, as a matrix or as a tree.

mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter, Write};

use inventory::topology::{Kind, Link, Linked, Nearest, hive_name};
use inventory::{Gpu, PciAddress, Reading, Unknown};
use printable::printable;

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

/// What stands for a value that is not known.
const UNKNOWN: &str = "?";

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

/// A row and column of the matrix: a card with its partitions, or one GPU. `gpus`: indexes, ascending.
struct Unit {
    pci: Option<PciAddress>,
    gpus: Vec<u32>,
}

impl Unit {
    fn label(&self) -> String {
        ranges(&self.gpus)
    }
}

/// How one GPU or card reaches another, in the order of the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Itself,
    /// Two partitions of one card.
    Card,
    /// The number of links in a row, where KFD names it.
    Xgmi(Option<u32>),
    Pcie(Nearest),
}

impl Way {
    fn of(link: &Link) -> Reading<Self> {
        Ok(match (link.kind.as_ref().map_err(Clone::clone)?, &link.nearest) {
            (Kind::Card, _) => Self::Card,
            (Kind::Xgmi { hops }, _) => Self::Xgmi(hops.as_ref().ok().copied()),
            (Kind::Pcie, Some(nearest)) => Self::Pcie(nearest.clone()?),
            (Kind::Pcie, None) => {
                return Err(Unknown::because("sysfs does not say where the two are on the bus"));
            }
        })
    }

    fn meaning(self, is_of_cards: bool) -> String {
        match self {
            Self::Itself if is_of_cards => "the card itself; -o wide shows its partitions",
            Self::Itself => "the GPU itself",
            Self::Card => "partitions of one card",
            Self::Xgmi(None) => "XGMI; KFD does not name the hops",
            Self::Xgmi(Some(1)) => "XGMI, 1 hop",
            Self::Xgmi(Some(hops)) => return format!("XGMI, {hops} hops"),
            Self::Pcie(Nearest::Pix) => "PCIe through at most one switch",
            Self::Pcie(Nearest::Pxb) => "PCIe through several switches, below one host bridge",
            Self::Pcie(Nearest::Phb) => "PCIe through one host bridge",
            Self::Pcie(Nearest::Node) => "PCIe through host bridges of one NUMA node",
            Self::Pcie(Nearest::Sys) => "PCIe and the connection between NUMA nodes",
        }
        .to_owned()
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Itself => f.write_str("X"),
            Self::Card => f.write_str("CARD"),
            Self::Xgmi(None) => f.write_str("XGMI"),
            Self::Xgmi(Some(hops)) => write!(f, "XGMI{hops}"),
            Self::Pcie(nearest) => f.write_str(nearest.word()),
        }
    }
}

/// The way between each two units, or why none is known.
struct Matrix {
    units: Vec<Unit>,
    rows: Vec<Vec<Result<Way, String>>>,
}

impl Matrix {
    /// Of cards, or of all GPUs. A GPU without a card is a unit of its own.
    fn of(linked: Linked<'_>, is_wide: bool) -> Self {
        let mut units: Vec<Unit> = Vec::new();
        for (index, gpu) in linked.gpus() {
            match units.iter_mut().find(|unit| !is_wide && unit.pci.is_some() && unit.pci == gpu.pci) {
                Some(unit) => unit.gpus.push(index),
                None => units.push(Unit { pci: gpu.pci, gpus: vec![index] }),
            }
        }
        let links = linked.topology.links.iter().map(|link| (link.gpus, link)).collect();
        let row = |unit| units.iter().map(|other| way(unit, other, &links)).collect();
        Self { rows: units.iter().map(row).collect(), units }
    }
}

/// The one way of all links between two units.
fn way(unit: &Unit, other: &Unit, links: &BTreeMap<(u32, u32), &Link>) -> Result<Way, String> {
    if unit.gpus == other.gpus {
        return Ok(Way::Itself);
    }
    let pairs = unit.gpus.iter().flat_map(|a| other.gpus.iter().map(move |b| (*a.min(b), *a.max(b))));
    let links = pairs.filter_map(|pair| links.get(&pair));
    let ways: BTreeSet<Way> =
        links.map(|link| Way::of(link).map_err(|why| why.to_string())).collect::<Result<_, _>>()?;
    match ways.len() {
        0 | 1 => ways.first().copied().ok_or_else(|| "no link is known".to_owned()),
        _ => {
            let words: Vec<String> = ways.iter().map(Way::to_string).collect();
            Err(format!("their partitions are linked in several ways ({}): use -o wide", words.join(", ")))
        }
    }
}

fn matrix(linked: Linked<'_>, format: Format) -> String {
    if linked.gpus().next().is_none() {
        return "No AMD GPU on the PCI bus of this machine.\n".to_owned();
    }
    let is_wide = format == Format::Wide;
    let matrix = Matrix::of(linked, is_wide);
    let mut text = String::new();
    let abreast = if is_wide { matrix.units.len() } else { ABREAST };
    for first in (0..matrix.units.len()).step_by(abreast) {
        text += &block(&matrix, first, abreast, format);
        text.push('\n');
    }
    text += &legend(&matrix);
    text += &hives(linked, format);
    text += &numa_nodes(linked, format);
    text + &first_of(&[unknown_links(&matrix), unknown_places(linked)].concat(), UNKNOWN)
}

/// The matrix' columns from `first` on, each row's card before them.
fn block(matrix: &Matrix, first: usize, abreast: usize, format: Format) -> String {
    let labels: Vec<String> = matrix.units.iter().map(Unit::label).collect();
    let mut headings = vec!["GPU", "PCI"];
    headings.extend(labels.iter().skip(first).take(abreast).map(String::as_str));
    let mut columns = Columns::new(&headings);
    for ((unit, label), row) in matrix.units.iter().zip(&labels).zip(&matrix.rows) {
        let mut cells: Vec<Cell> =
            vec![label.as_str().into(), unit.pci.map_or("-".to_owned(), |pci| pci.to_string()).into()];
        cells.extend(row.iter().skip(first).take(abreast).map(|way| match way {
            Ok(Way::Itself) => Cell::styled(Way::Itself.to_string(), DIM),
            Ok(way) => way.to_string().into(),
            Err(_) => Cell::styled(UNKNOWN, BAD),
        }));
        columns.cells(cells);
    }
    columns.shown(format)
}

/// Explains the words of the matrix.
fn legend(matrix: &Matrix) -> String {
    let is_of_cards = matrix.units.iter().any(|unit| unit.gpus.len() > 1);
    let ways = || matrix.rows.iter().flatten();
    let known: BTreeSet<Way> = ways().filter_map(|way| way.as_ref().ok().copied()).collect();
    let mut lines: Vec<String> = known
        .into_iter()
        .map(|way| format!("{:<5}  {}", way.to_string(), way.meaning(is_of_cards)))
        .collect();
    if ways().any(Result::is_err) {
        lines.push(format!("{UNKNOWN:<5}  not known"));
    }
    styled(DIM, lines.join("\n")) + "\n"
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
    let pairs = matrix.rows.iter().enumerate().flat_map(|(at, row)| {
        let unit = matrix.units.get(at).map(Unit::label).unwrap_or_default();
        let others = matrix.units.iter().zip(row).skip(at + 1);
        others.filter_map(move |(other, word)| {
            Some((word.as_ref().err()?.clone(), format!("{unit} and {}", other.label())))
        })
    });
    let line = |(why, pairs): (String, Vec<String>)| match (pairs.first(), pairs.len()) {
        (Some(first), 2..) => format!("{first}: {why}; and so for {} more", pairs.len() - 1),
        (first, _) => format!("{}: {why}", first.map_or("", String::as_str)),
    };
    by_reason(pairs).into_iter().map(line).collect()
}

/// Each reason why the places of GPUs are unknown, with the GPUs that it holds for. Files of several cards are one
/// reason: `*` stands for the card.
fn unknown_places(linked: Linked<'_>) -> Vec<String> {
    let reasons = linked.gpus().flat_map(|(index, gpu)| {
        let of_any = move |why: String| gpu.pci.map_or(why.clone(), |pci| why.replace(&pci.to_string(), "*"));
        linked.unknown(gpu).into_values().map(move |why| (of_any(why), index))
    });
    by_reason(reasons).into_iter().map(|(why, gpus)| format!("{}: {why}", ranges(&gpus))).collect()
}

/// Each reason once, in the order in which they come, with all that it holds for.
fn by_reason<T>(found: impl Iterator<Item = (String, T)>) -> Vec<(String, Vec<T>)> {
    let mut reasons: Vec<(String, Vec<T>)> = Vec::new();
    for (why, one) in found {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, all)) => all.push(one),
            None => reasons.push((why, vec![one])),
        }
    }
    reasons
}
