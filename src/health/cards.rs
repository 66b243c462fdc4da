//! AMD's cards as health is judged by them.

use std::path::Path;

use inventory::health::Health;
use inventory::readings::{CardReadings, Fault};
use inventory::snapshot::Card;
use inventory::{PciAddress, Unknown};
use root::Root;
use root::patient::{DEADLINE, PATIENCE, Patient};

/// Reads the cards in a thread of its own, which a file that hangs does not keep.
#[derive(Debug)]
pub(super) struct Cards {
    patient: Patient<Read>,
    /// The last reading that did not fail.
    last: Option<Read>,
}

/// The cards of the machine, as one look read them.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    /// Cards whose PCI address is known.
    pub(super) cards: Vec<Card>,
    /// Why nothing is known of any card.
    pub(super) problem: Option<String>,
    /// Why there may be more cards: files that have not answered.
    pub(super) unanswered: Vec<String>,
}

impl Cards {
    pub(super) fn new(root: &Root) -> Self {
        Self { patient: Patient::new(root.place(), PATIENCE, DEADLINE), last: None }
    }

    /// Reads all cards. Where that fails, returns the cards of the last reading without their values, and the reason.
    /// `last`: the last judgement, which names the cards where none was read yet.
    pub(super) fn read(&mut self, last: Option<&Health>) -> Read {
        match self.patient.run(all) {
            Ok(mut read) => {
                if !read.unanswered.is_empty() {
                    keep_judged(&mut read, last);
                }
                self.last = Some(read.clone());
                read
            }
            Err(error) => self.unread(last, &format!("The GPUs cannot be read: {error}")),
        }
    }

    fn unread(&self, last: Option<&Health>, why: &str) -> Read {
        let mut read = self.last.clone().unwrap_or_else(|| {
            let mut read = Read::default();
            keep_judged(&mut read, last);
            read
        });
        for card in &mut read.cards {
            card.readings = unread(card.pci, [why.to_owned()]);
        }
        if read.cards.is_empty() {
            read.problem = Some(why.to_owned());
        }
        read
    }
}

/// A card that was judged and is not among what was read has not gone where files do not answer.
fn keep_judged(read: &mut Read, last: Option<&Health>) {
    for gpu in last.map_or(&[][..], |health| &health.gpus) {
        if read.cards.iter().all(|card| card.pci != Some(gpu.pci)) {
            // Which driver it has is not known: that the kernel's log is silent about it says nothing.
            let readings = unread(Some(gpu.pci), read.unanswered.clone());
            read.cards.push(Card { pci: Some(gpu.pci), readings, ..Card::default() });
        }
    }
}

/// Readings without a value, and why nothing was read of the card.
fn unread(pci: Option<PciAddress>, why: impl IntoIterator<Item = String>) -> CardReadings {
    let address = pci.map(|pci| pci.to_string()).unwrap_or_default();
    let file = Path::new("/sys/bus/pci/devices").join(address);
    let fault = |why| Fault { file: file.clone(), reason: Unknown::because(why) };
    CardReadings { faults: why.into_iter().map(fault).collect(), ..CardReadings::default() }
}

fn all(root: &Root) -> Read {
    let inventory = amdgpu::read(root);
    let cards = inventory.cards();
    // The partitions of a card that does not answer are no cards of their own.
    let addressed = cards.iter().filter(|card| card.first.pci.is_some());
    let cards = addressed.map(|card| amdgpu::snapshot::card(root, card)).collect();
    Read { cards, problem: None, unanswered: inventory.unanswered().map(ToString::to_string).collect() }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test lays out files")]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use gpu_health::rules::Rules;
    use inventory::health::State;
    use layout::{Gpu, Machine, Nodes};

    use super::super::{Judgement, Observer};
    use super::*;

    const LOG: &str = "5,0,0,-;Linux version 6.12.48+deb13-amd64 (debian-kernel@lists.debian.org)\n";

    /// A machine with a card that vfio-pci drives, and how its driver begins to hang.
    fn observer() -> (tempfile::TempDir, Root, Observer) {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::instinct_with_readings(2, 1).put("/dev/kmsg", LOG);
        let machine = machine.gpu(Gpu::amd("0000:25:00.0", 0x74a1).unbound().driver("vfio-pci"));
        machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let observer = Observer::new(&root);
        (folder, root, observer)
    }

    fn hang(observer: &mut Observer) {
        observer.cards.patient = Patient::new(PathBuf::from("/not/there"), PATIENCE, DEADLINE);
    }

    fn states(health: &Health) -> Vec<State> {
        health.gpus.iter().map(|gpu| gpu.state).collect()
    }

    #[test]
    fn a_reading_that_fails_changes_nothing_but_what_was_read() {
        let (_folder, root, mut observer) = observer();
        let before = observer.cards.read(None);
        assert_eq!(
            before.cards.iter().map(Card::is_driven_by_amdgpu).collect::<Vec<_>>(),
            [true, true, false]
        );
        assert!(
            before.cards[0].readings.power.watts.is_some() && !before.cards[0].readings.memory.is_empty()
        );
        let Judgement { health, .. } = observer.judge(&root, &Rules::built_in(), None, 1_790_000_000);
        let expected = [State::Healthy, State::Healthy, State::Unknown];
        assert_eq!(states(&health), expected, "{health:#?}");
        assert_eq!(health.gpus[2].unknown[0], "vfio-pci drives it: only amdgpu says how a GPU is");

        hang(&mut observer);
        let after = observer.cards.read(None);
        let kept = |card: &Card| (card.pci, card.driver.clone(), card.bridges.clone());
        assert_eq!(
            after.cards.iter().map(kept).collect::<Vec<_>>(),
            before.cards.iter().map(kept).collect::<Vec<_>>()
        );
        let is_empty = |card: &Card| {
            CardReadings { faults: Vec::new(), ..card.readings.clone() } == CardReadings::default()
        };
        assert!(after.cards.iter().all(is_empty), "{after:?}");
        let last = Some(&health);
        let Judgement { health, cards } = observer.judge(&root, &Rules::built_in(), last, 1_790_000_010);
        assert_eq!(states(&health), expected, "by the kernel's log alone: {health:#?}");
        assert!(health.gpus[0].unknown[0].starts_with("The GPUs cannot be read: "), "{health:#?}");
        assert!(cards.len() == 3 && cards.iter().all(|card| card.readings.memory.is_empty()), "{cards:?}");
    }

    #[test]
    fn cards_that_only_the_last_judgement_names_stay_and_are_unknown() {
        let (_folder, root, mut observer) = observer();
        let Judgement { health, .. } = observer.judge(&root, &Rules::built_in(), None, 1_790_000_000);
        let mut later = Observer::new(&root);
        hang(&mut later);
        let now = 1_790_000_010;
        let Judgement { health: found, .. } = later.judge(&root, &Rules::built_in(), Some(&health), now);
        let addresses = |health: &Health| health.gpus.iter().map(|gpu| gpu.pci).collect::<Vec<PciAddress>>();
        assert_eq!(addresses(&found), addresses(&health));
        assert_eq!(states(&found), [State::Unknown; 3], "{found:#?}");
        let Judgement { health: found, .. } = later.judge(&root, &Rules::built_in(), None, now);
        assert_eq!(found.gpus, []);
        assert!(found.unknown.iter().any(|it| it.starts_with("The GPUs cannot be read: ")), "{found:#?}");
    }

    #[test]
    fn a_card_that_does_not_answer_stays_one_card_whose_driver_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::instinct_with_readings(1, 8).put("/dev/kmsg", LOG);
        machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let mut observer = Observer::new(&root);
        let rules = Rules::built_in();
        let Judgement { health, .. } = observer.judge(&root, &rules, None, 1_790_000_000);
        let pci = health.gpus[0].pci;
        // A folder gives no text.
        for name in ["uevent", "class"] {
            let file = folder.path().join(format!("sys/bus/pci/devices/{pci}")).join(name);
            fs::remove_file(&file).unwrap();
            fs::create_dir(&file).unwrap();
        }
        // KFD still names its partitions, which are no cards of their own.
        assert!(amdgpu::read(&root).cards().iter().any(|card| card.first.pci.is_none()));
        let Judgement { health, cards } = observer.judge(&root, &rules, Some(&health), 1_790_000_010);
        assert_eq!(cards.iter().map(|card| card.pci).collect::<Vec<_>>(), [Some(pci)]);
        let unknown = &health.gpus[0].unknown;
        assert!(unknown[0].starts_with(&format!("PCI device {pci} cannot be read: ")), "{health:#?}");
        assert!(!unknown.iter().any(|it| it.contains("driver")), "{health:#?}");
    }
}
