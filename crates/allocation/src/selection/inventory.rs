//! The GPUs that can be given, and the choice among them.

use super::{
    Chosen, Gpu,
    pack::{Candidate, least_used},
};
use inventory::PciAddress;

use crate::{
    Error, Quoted, Render,
    cdi::Outline,
    error::refuse,
    health::withheld::Withheld,
    policy::Policy,
    request::{Request, Selector},
};

const NO_GPUS: &str = "the policy and the CDI spec have no GPU to give; see rocworker detect";
/// The most quarantined GPUs that one sentence names.
const MOST_NAMED: usize = 3;

/// The GPUs that a policy gives away on a machine that a CDI spec describes.
#[derive(Clone, Debug)]
pub struct Inventory {
    /// What the policy allows, in the order of the indexes. With each, the place in [`Outline::devices`] of the spec's
    /// device for it, if the spec has one.
    allowed: Vec<(Gpu, Option<usize>)>,
    /// What the spec has and the policy does not allow.
    forbidden: Vec<Gpu>,
    /// Those of `allowed` that no container gets just now, and why: the beginning of a sentence.
    quarantined: Vec<(Render, String)>,
}

impl Inventory {
    /// Matches the policy's GPUs with the spec's devices.
    ///
    /// An index means what the policy says; without a list in the policy it means what the spec says. A GPU
    /// of the policy is found in the spec by its PCI address and render node, never by its index: indexes
    /// are given anew when a card is gone.
    #[must_use]
    pub fn new(policy: &Policy, spec: &Outline<'_>) -> Self {
        let machine = machine(spec);
        let quarantined = Vec::new();
        match &policy.gpus {
            None => Self { forbidden: Vec::new(), allowed: machine, quarantined },
            Some(gpus) => {
                let allowed: Vec<(Gpu, Option<usize>)> =
                    gpus.iter().map(|gpu| as_it_is_now(gpu, gpus, &machine)).collect();
                let is_allowed = |gpu: &Gpu, device: Option<usize>| {
                    allowed.iter().any(|(allowed, of_spec)| match of_spec {
                        Some(_) => *of_spec == device,
                        None => allowed.render == gpu.render && allowed.pci == gpu.pci,
                    })
                };
                let others = machine.iter().filter(|(gpu, device)| !is_allowed(gpu, *device));
                Self { forbidden: others.map(|(gpu, _)| gpu.clone()).collect(), allowed, quarantined }
            }
        }
    }

    /// From here on no GPU of a quarantined card is given, except these: their container has them already.
    pub fn quarantine(&mut self, withheld: &Withheld, except: &[Render]) {
        let others = self.gpus().filter(|gpu| !except.contains(&gpu.render));
        let quarantined = others.filter_map(|gpu| {
            let why = gpu.withheld(withheld)?.quarantine.as_ref()?;
            Some((gpu.render, format!("the GPU {gpu} {why}")))
        });
        self.quarantined = quarantined.collect();
    }

    /// A sentence for each GPU that is quarantined.
    pub fn quarantined(&self) -> impl Iterator<Item = Error> {
        self.quarantined.iter().map(|(_, why)| quarantined(why))
    }

    /// What the sentence about a count that cannot be met adds; empty where no GPU is quarantined.
    #[must_use]
    pub fn quarantine_note(&self) -> String {
        match self.quarantined.len() {
            0 => String::new(),
            number => format!("; quarantine withholds {number}: {}", self.reasons()),
        }
    }

    fn reasons(&self) -> String {
        let named = self.quarantined.iter().take(MOST_NAMED).map(|(_, why)| why.as_str());
        let mut reasons = named.collect::<Vec<_>>().join("; ");
        if let more @ 1.. = self.quarantined.len().saturating_sub(MOST_NAMED) {
            reasons += &format!("; and {more} more");
        }
        quarantined(&reasons).into()
    }

    /// The GPUs that may be had, in the order of their indexes, whether they are there or not.
    pub fn gpus(&self) -> impl Iterator<Item = &Gpu> {
        self.allowed.iter().map(|(gpu, _)| gpu)
    }

    /// The GPUs that this request gets, in the order of their indexes, each once. `uses` says how many
    /// containers have a GPU now; only a count looks at it.
    ///
    /// # Errors
    /// The request cannot be met in full.
    pub fn select(&self, request: &Request, uses: impl Fn(&Gpu) -> usize) -> Result<Vec<Chosen<'_>>, Error> {
        match request {
            Request::Nothing => Ok(Vec::new()),
            Request::All if self.allowed.is_empty() => refuse(NO_GPUS),
            Request::All => {
                let all: Vec<Chosen<'_>> = self.allowed.iter().map(chosen).collect::<Result<_, _>>()?;
                match self.given(all) {
                    none if none.is_empty() => refuse(format!(
                        "the container asks for all GPUs, and each is quarantined: {}",
                        self.reasons()
                    )),
                    given => Ok(given),
                }
            }
            Request::Listed(selectors) => {
                let mut wanted = vec![false; self.allowed.len()];
                for selector in selectors {
                    self.mark(selector, &mut wanted)?;
                }
                let wanted = self.allowed.iter().zip(wanted).filter(|(_, wanted)| *wanted);
                let each = |(gpu, _)| {
                    let chosen = chosen(gpu)?;
                    self.why_not(chosen.gpu).map_or(Ok(chosen), |why| Err(quarantined(why)))
                };
                wanted.map(each).collect()
            }
            Request::Count(count) => {
                let there = self.there();
                let asked = usize::try_from(*count).unwrap_or(usize::MAX);
                if asked > there.len() {
                    return refuse(format!(
                        "the container asks for {asked} GPUs, and the policy and the CDI spec have {}{}",
                        there.len(),
                        self.quarantine_note()
                    ));
                }
                Ok(packed(&there, asked, |gpu| Candidate::new(gpu, uses(gpu), false)))
            }
        }
    }

    /// What the default gives: all that is there, and a refusal for each that is not or is quarantined, to be said as a
    /// warning.
    #[must_use]
    pub fn all_that_is_there(&self) -> (Vec<Chosen<'_>>, Vec<Error>) {
        let mut gone: Vec<Error> = self.allowed.iter().filter_map(|gpu| chosen(gpu).err()).collect();
        if self.allowed.is_empty() {
            gone.push(Error::new(NO_GPUS));
        }
        gone.extend(self.quarantined());
        (self.there(), gone)
    }

    /// Marks what a selector names.
    fn mark(&self, selector: &Selector, wanted: &mut [bool]) -> Result<(), Error> {
        let mut found = false;
        for ((gpu, _), wanted) in self.allowed.iter().zip(wanted) {
            if names(selector, gpu) {
                *wanted = true;
                found = true;
            }
        }
        // An index is the policy's own; the spec's device of that index may be another card.
        let is_forbidden = self.forbidden.iter().any(|gpu| names(selector, gpu));
        let name = selector.to_string();
        match (found, is_forbidden) {
            (false, false) => refuse(format!(
                "there is no GPU {} on this machine; rocworker detect lists them",
                Quoted(&name)
            )),
            (false, true) => refuse(format!("the policy does not allow the GPU {}", Quoted(&name))),
            (true, true) if matches!(selector, Selector::Pci(_) | Selector::Uuid(_)) => refuse(format!(
                "the policy allows only some partitions of the card {}: ask for those by index",
                Quoted(&name)
            )),
            (true, _) => Ok(()),
        }
    }

    /// The GPUs that are there and not quarantined.
    #[must_use]
    pub fn there(&self) -> Vec<Chosen<'_>> {
        self.given(self.allowed.iter().filter_map(|gpu| chosen(gpu).ok()).collect())
    }

    fn given<'i>(&self, mut chosen: Vec<Chosen<'i>>) -> Vec<Chosen<'i>> {
        chosen.retain(|chosen| self.why_not(chosen.gpu).is_none());
        chosen
    }

    /// Why a GPU is quarantined, if it is.
    fn why_not(&self, gpu: &Gpu) -> Option<&str> {
        self.quarantined.iter().find(|(render, _)| *render == gpu.render).map(|(_, why)| why.as_str())
    }

    /// `count` of the GPUs that are there and free, a processor's own last: from the fullest card that has room for them,
    /// so that whole cards stay whole; else from cards that are close to each other. None: fewer are free.
    #[must_use]
    pub fn pick_free(&self, count: u32, is_free: impl Fn(&Gpu) -> bool) -> Option<Vec<Chosen<'_>>> {
        let (free, taken): (Vec<_>, Vec<_>) =
            self.there().into_iter().partition(|chosen| is_free(chosen.gpu));
        let begun = |gpu: &Gpu| {
            gpu.card.is_some() && taken.iter().any(|taken: &Chosen<'_>| taken.gpu.card == gpu.card)
        };
        let count = usize::try_from(count).ok().filter(|count| *count <= free.len())?;
        Some(packed(&free, count, |gpu| Candidate::new(gpu, 0, begun(gpu))))
    }
}

fn quarantined(why: &str) -> Error {
    Error::new(format!("{why}; see rocworker health"))
}

fn chosen((gpu, device): &(Gpu, Option<usize>)) -> Result<Chosen<'_>, Error> {
    let device = device.ok_or_else(|| {
        Error::new(format!(
            "the GPU {gpu} of the policy is not in the CDI spec, so it is gone or not usable: see rocworker detect, \
             then rocworker cdi generate"
        ))
    })?;
    Ok(Chosen { gpu, device })
}

/// So many of these, chosen by [`least_used`].
fn packed<'i>(
    of: &[Chosen<'i>],
    count: usize,
    candidate: impl Fn(&'i Gpu) -> Candidate<'i>,
) -> Vec<Chosen<'i>> {
    let candidates: Vec<Candidate<'_>> = of.iter().map(|chosen| candidate(chosen.gpu)).collect();
    least_used(&candidates, count).into_iter().filter_map(|at| of.get(at).copied()).collect()
}

fn names(selector: &Selector, gpu: &Gpu) -> bool {
    match selector {
        Selector::Index(index) => gpu.index == *index,
        Selector::Uuid(uuid) => {
            [&gpu.uuid, &gpu.card_uuid].into_iter().flatten().any(|own| own.eq_ignore_ascii_case(uuid))
        }
        Selector::Pci(address) => gpu.card == Some(*address) || gpu.pci == Some(*address),
        Selector::Render(render) => gpu.render == *render,
    }
}

/// A GPU of the policy with the spec's device for it, and with the render node that it has now: leases and the kernel
/// know it by that, and its number in the policy may be another card's since.
fn as_it_is_now(gpu: &Gpu, policys: &[Gpu], machine: &[(Gpu, Option<usize>)]) -> (Gpu, Option<usize>) {
    let device = device_of(gpu, policys, machine);
    let now = machine.iter().find(|(_, at)| at.is_some() && *at == device);
    let render = now.map_or(gpu.render, |(now, _)| now.render);
    (Gpu { render, ..gpu.clone() }, device)
}

/// The device of the spec that a GPU of the policy is: on its card, where the spec says whose card that
/// is, and with its render node. A card's only device counts with any node: its number may have changed
/// since the policy was written. A card that the policy lists with several GPUs was partitioned then: what there is
/// now of it is not each of them.
fn device_of(gpu: &Gpu, policys: &[Gpu], machine: &[(Gpu, Option<usize>)]) -> Option<usize> {
    let card = gpu.card.or(gpu.pci);
    let on_card = |other: &Gpu| card.is_some() && other.card == card;
    let mut same_card = machine.iter().filter(|(other, _)| on_card(other));
    match (same_card.next(), same_card.next()) {
        (Some((_, only)), None)
            if policys.iter().filter(|other| other.card.or(other.pci) == card).count() == 1 =>
        {
            *only
        }
        (Some(_), _) => machine.iter().find(|(other, _)| on_card(other) && other.render == gpu.render)?.1,
        (None, _) => {
            let unplaced = |other: &Gpu| other.card.is_none() && other.render == gpu.render;
            machine.iter().find(|(other, _)| unplaced(other))?.1
        }
    }
}

/// The GPUs of a spec, each with its place there: the devices that are named by an index and have a render node. The other
/// names of a node are its card (a PCI address) and its uuids: its own, which names no other node, before its card's.
fn machine(spec: &Outline<'_>) -> Vec<(Gpu, Option<usize>)> {
    let (mut cards, mut uuids, mut gpus) = (Vec::new(), Vec::new(), Vec::new());
    for (place, (name, renders)) in spec.devices().enumerate() {
        if let Some(address) = PciAddress::parse(name) {
            cards.extend(renders.iter().map(|render| (*render, address)));
        } else if name.starts_with("GPU-") {
            uuids.extend(renders.iter().map(|render| (*render, name, renders.len())));
        } else if let (Some(index), Some(render)) = (index(name), renders.first()) {
            let gpu = (index, *render, place);
            gpus.insert(gpus.partition_point(|other| *other < gpu), gpu);
        }
    }
    let gpu = |(index, render, place)| {
        let card = cards.iter().rev().find(|(other, _)| *other == render).map(|(_, card)| *card);
        let named = uuids.iter().filter(|(other, ..)| *other == render);
        let uuid = named.clone().find(|(.., nodes)| *nodes == 1).map(|(_, uuid, _)| (*uuid).to_owned());
        let card_uuid = named.max_by_key(|(.., nodes)| *nodes).map(|(_, uuid, _)| (*uuid).to_owned());
        (Gpu { index, pci: card, render, uuid, card_uuid, card, ..Gpu::default() }, Some(place))
    };
    gpus.into_iter().map(gpu).collect()
}

/// The index that a device's name is. `01` is a name, but no index.
fn index(name: &str) -> Option<u32> {
    let plain = name.bytes().all(|b| b.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    if plain { name.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
