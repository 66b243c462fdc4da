//! What setting a profile would do on this machine, and what it would stop.

use std::collections::BTreeSet;

use config::Partitions;
use inventory::PciAddress;
use inventory::partitioning::{Aim, Entry, Refusal, Steps, aims};
use root::Root;
use serde::Serialize;

use super::holders::in_the_way;
use super::{Holder, Look};

/// The way to a profile.
#[derive(Debug, Clone)]
pub struct Plan {
    pub aims: Vec<Aim>,
    pub steps: Steps,
    /// Units that stop meanwhile.
    pub units: Vec<String>,
    /// The processes that must end first.
    pub holders: Vec<Holder>,
    /// Containers that see other devices after that, or why they are not known.
    pub leased: Result<BTreeSet<String>, String>,
    /// The cards that are without a driver for the time of a reload; empty without one.
    pub reloaded: Vec<PciAddress>,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused(pub Vec<String>);

impl Plan {
    /// Plans how a profile of the configuration is reached.
    ///
    /// # Errors
    /// Each reason why it cannot be set, a sentence each.
    pub fn make(
        root: &Root,
        look: &Look,
        partitions: &Partitions,
        entries: &[Entry],
    ) -> Result<Self, Refused> {
        let sentences = |refusals: Vec<Refusal>| Refused(refusals.iter().map(ToString::to_string).collect());
        if look.inventory.may_lack_gpus() {
            let unread = look.inventory.unanswered().map(ToString::to_string);
            let why = |unread| format!("nothing is changed, because not every GPU could be read: {unread}");
            return Err(Refused(unread.map(why).collect()));
        }
        let aims = aims(entries, &look.cards).map_err(sentences)?;
        let steps = Steps::of(&aims, &look.cards);
        if steps.needs_reload() && look.is_loaded_by_kmm {
            let why = "another memory mode takes a load of amdgpu, which the AMD GPU Operator's KMM does on this node: set \
                       memory modes by the operator, or name none in the profile";
            return Err(Refused(vec![why.to_owned()]));
        }
        let holders =
            look.holders.as_ref().map_err(|why| Refused(vec![format!("nothing is changed: {why}")]))?;
        let is_reloaded = steps.needs_reload();
        let is_switched =
            |pci: &PciAddress| is_reloaded || steps.compute.iter().any(|switch| switch.pci == *pci);
        let computes = |id: &String| holders.iter().any(|holder| holder.container.as_ref() == Some(id));
        let is_leased = |(pci, id): &&(PciAddress, String)| is_switched(pci) && !computes(id);
        let leased = |all: &Vec<_>| all.iter().filter(is_leased).map(|(_, id)| id.clone()).collect();
        let all = || look.inventory.cards().into_iter().filter(|card| card.first.is_driven_by_amdgpu());
        Ok(Self {
            holders: in_the_way(root, holders.clone(), &steps),
            leased: look.leases.as_ref().map(leased).map_err(Clone::clone),
            reloaded: all().filter(|_| is_reloaded).filter_map(|card| card.first.pci).collect(),
            units: if steps.is_empty() { Vec::new() } else { partitions.units.clone() },
            aims,
            steps,
        })
    }

    /// The cards that the profile skips and that a reload takes along.
    #[must_use]
    pub fn taken_along(&self) -> Vec<PciAddress> {
        let is_aimed = |pci: &PciAddress| self.aims.iter().any(|aim| aim.pci == *pci);
        self.reloaded.iter().copied().filter(|pci| !is_aimed(pci)).collect()
    }

    /// The steps in order, a sentence each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        if self.steps.is_empty() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if !self.units.is_empty() {
            lines.push(format!("stop units that run: {}", self.units.join(", ")));
        }
        lines.push(match &*self.holders {
            [] => "see that no process is on the cards".to_owned(),
            holders => {
                let named: Vec<String> = holders.iter().map(ToString::to_string).collect();
                format!("wait until these processes have left the cards: {}", named.join(", "))
            }
        });
        match &self.leased {
            Ok(leased) if leased.is_empty() => {}
            Ok(leased) => {
                let leased: Vec<&str> = leased.iter().map(String::as_str).collect();
                lines.push(format!(
                    "leave containers that hold GPUs and do not compute: {} see other devices afterwards",
                    leased.join(", ")
                ));
            }
            Err(why) => lines.push(format!(
                "leave containers that hold GPUs and do not compute; which is not known: {why}"
            )),
        }
        for (from, to, cards) in grouped(&self.steps.memory) {
            lines.push(format!("request the memory mode {to} for {cards}, now in {from}"));
        }
        if self.steps.needs_reload() {
            let along = match &*self.taken_along() {
                [] => String::new(),
                along => {
                    let along: Vec<String> = along.iter().map(ToString::to_string).collect();
                    format!(", also {}, which the profile leaves out", along.join(", "))
                }
            };
            lines.push(format!(
                "unload amdgpu and load it again: all {} cards of the driver are gone meanwhile{along}",
                self.reloaded.len()
            ));
        }
        for is_restored in [false, true] {
            let of: Vec<_> =
                self.steps.compute.iter().filter(|it| it.is_restored == is_restored).copied().collect();
            for (from, to, cards) in grouped(&of) {
                lines.push(match is_restored {
                    true => {
                        format!("restore the compute mode {to} of {cards}, which the driver loads in {from}")
                    }
                    false => format!("set the compute mode of {cards} from {from} to {to}"),
                });
            }
        }
        lines.push("read each card's modes back".to_owned());
        if !self.units.is_empty() {
            lines.push("start the units that ran".to_owned());
        }
        lines
    }
}

/// Equal switches together, with the cards that they are for.
fn grouped<M: Copy + PartialEq>(switches: &[inventory::partitioning::Switch<M>]) -> Vec<(M, M, String)> {
    let mut groups: Vec<(M, M, Vec<String>)> = Vec::new();
    for switch in switches {
        match groups.iter_mut().find(|(from, to, _)| (*from, *to) == (switch.from, switch.to)) {
            Some((_, _, cards)) => cards.push(switch.pci.to_string()),
            None => groups.push((switch.from, switch.to, vec![switch.pci.to_string()])),
        }
    }
    groups.into_iter().map(|(from, to, cards)| (from, to, cards.join(", "))).collect()
}
