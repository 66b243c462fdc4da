//! The links as a matrix of words, between cards or between all GPUs.

use std::collections::{BTreeMap, BTreeSet};

use inventory::topology::{Kind, Link, Linked};
use inventory::{PciAddress, Reading, Unknown};

/// The links between units: a word for each two.
#[derive(Debug)]
pub struct Matrix {
    pub units: Vec<Unit>,
    /// A row for each unit, a word for each unit in it: [`SELF`] on the diagonal.
    pub rows: Vec<Vec<String>>,
    /// Where a word is [`UNKNOWN`]: the places of the two units, and why.
    pub unknown: Vec<(usize, usize, String)>,
}

/// A unit of the matrix: a card with its partitions, or one GPU.
#[derive(Debug)]
pub struct Unit {
    pub pci: Option<PciAddress>,
    /// Indexes, ascending.
    pub gpus: Vec<u32>,
}

/// The word for a unit and itself.
pub const SELF: &str = "X";
/// The word for an unknown link.
pub const UNKNOWN: &str = "?";

/// A link's kind in one word, with the hops of XGMI where they are known.
///
/// # Errors
/// Why a link's kind is not known.
pub fn word(link: &Link) -> Reading<String> {
    Ok(match link.kind.as_ref().map_err(Clone::clone)? {
        Kind::Card => "CARD".to_owned(),
        Kind::Xgmi { hops: Ok(hops) } => format!("XGMI{hops}"),
        Kind::Xgmi { hops: Err(_) } => "XGMI".to_owned(),
        Kind::Pcie => match &link.nearest {
            Some(nearest) => nearest.as_ref().map_err(Clone::clone)?.word().to_owned(),
            None => return Err(Unknown::because("sysfs does not say where the two are on the bus")),
        },
    })
}

impl Matrix {
    /// The matrix of links between cards; a GPU without a card is a unit of its own.
    pub fn of_cards(linked: Linked<'_>) -> Self {
        let mut units: Vec<Unit> = Vec::new();
        for (index, gpu) in linked.gpus() {
            match units.iter_mut().find(|unit| unit.pci.is_some() && unit.pci == gpu.pci) {
                Some(unit) => unit.gpus.push(index),
                None => units.push(Unit { pci: gpu.pci, gpus: vec![index] }),
            }
        }
        Self::between(units, &linked.topology.links)
    }

    /// The matrix of links between all GPUs.
    pub fn of_gpus(linked: Linked<'_>) -> Self {
        let units = linked.gpus().map(|(index, gpu)| Unit { pci: gpu.pci, gpus: vec![index] });
        Self::between(units.collect(), &linked.topology.links)
    }

    fn between(units: Vec<Unit>, links: &[Link]) -> Self {
        let links: BTreeMap<(u32, u32), &Link> = links.iter().map(|link| (link.gpus, link)).collect();
        let mut rows = Vec::new();
        let mut unknown = Vec::new();
        for (at, unit) in units.iter().enumerate() {
            let mut row = Vec::new();
            for (other_at, other) in units.iter().enumerate() {
                if at == other_at {
                    row.push(SELF.to_owned());
                    continue;
                }
                let pairs = unit.gpus.iter().flat_map(|a| other.gpus.iter().map(move |b| (*a, *b)));
                let found = pairs.filter_map(|(a, b)| links.get(&(a.min(b), a.max(b))).copied());
                row.push(one_word(found).unwrap_or_else(|why| {
                    if at < other_at {
                        unknown.push((at, other_at, why));
                    }
                    UNKNOWN.to_owned()
                }));
            }
            rows.push(row);
        }
        Self { units, rows, unknown }
    }
}

/// The word for all links between two cards, or why there is not one.
fn one_word<'l>(links: impl Iterator<Item = &'l Link>) -> Result<String, String> {
    let mut words = BTreeSet::new();
    for link in links {
        words.insert(word(link).map_err(|why| why.to_string())?);
    }
    if words.len() > 1 {
        let words: Vec<String> = words.into_iter().collect();
        return Err(format!(
            "their partitions are linked in several ways ({}): use -o wide",
            words.join(", ")
        ));
    }
    words.pop_first().ok_or_else(|| "no link is known".to_owned())
}
