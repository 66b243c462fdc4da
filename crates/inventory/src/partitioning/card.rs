//! A card and the combinations of modes that it can be in.

use std::collections::BTreeMap;

use super::{Chip, Compute, Generation, Memory, Rules};
use crate::{Gfx, PciAddress, Reading, Sriov, Unknown};

/// One of AMD's cards, as far as it can be divided. Only its first device reports modes and takes them.
#[derive(Debug, Clone)]
pub struct Card {
    pub pci: PciAddress,
    pub name: Option<String>,
    pub chip: Option<Chip>,
    pub gfx: Reading<Gfx>,
    pub sriov: Option<Sriov>,
    /// The XGMI hive, whose cards have one memory mode.
    pub hive_id: Option<u64>,
    /// Whether the driver lets root write the compute mode. It does not for a virtual function.
    pub is_writable: bool,
    /// The modes in which the card is.
    pub compute: Reading<Compute>,
    pub memory: Reading<Memory>,
    /// The compute modes that the driver takes under the present memory mode.
    pub compute_available: Reading<Vec<Compute>>,
    /// The compute modes of the card under one memory mode or another. Linux 6.13 and later list them.
    pub compute_supported: Reading<Vec<Compute>>,
    /// The memory modes that the driver takes. A card with one memory mode has no list.
    pub memory_available: Reading<Vec<Memory>>,
    /// The HBM of the whole card, in bytes.
    pub memory_bytes: Reading<u64>,
    /// Whether each device may use the memory of its whole domain (`compute_partition_mem_alloc_mode` is `ALL`).
    pub shares_domains: bool,
    /// The devices that KFD shows, in the order of its nodes.
    pub devices: Vec<Device>,
}

/// One device of a card: what a container gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// HIP's and `rocworker detect`'s number.
    pub index: Option<u32>,
    /// Its number on the card.
    pub partition: u32,
    /// The kernel's name of its render node: `renderD128`.
    pub render: Option<String>,
    pub xcds: Option<u32>,
    pub memory_bytes: Reading<u64>,
}

/// A value, and whether it was read or follows from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<T> {
    pub value: T,
    pub is_computed: bool,
}

/// A compute and a memory mode together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combination {
    pub compute: Compute,
    pub memory: Memory,
    /// How many devices the card is then.
    pub devices: u32,
    /// XCDs of each device.
    pub xcds: u32,
    /// Memory of each device in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether the kernel allows the two together, and lists each for this card.
    pub is_allowed: bool,
    /// Whether AMD has validated the two together on bare metal.
    pub is_validated: bool,
    pub is_current: bool,
}

impl Combination {
    /// Where the memory of a device is.
    #[must_use]
    pub fn locality(&self) -> &'static str {
        match (self.memory.domains(), self.devices) {
            (1, 1) => "all of the HBM",
            (1, _) => "spread over all of the HBM",
            (domains, devices) if devices > domains => "its XCDs' domain, with others",
            _ => "its XCDs' domain",
        }
    }
}

impl Card {
    /// How many XCDs the card has: by its chip, else by its devices.
    ///
    /// # Errors
    /// Neither says it.
    pub fn xcds(&self) -> Reading<u32> {
        let each = self.devices.first().and_then(|device| device.xcds).filter(|count| *count > 0);
        let whole = || match (&self.compute, each) {
            (Ok(Compute::Cpx) | Err(_), _) | (_, None) => None,
            (Ok(mode), Some(each)) => Some(each.saturating_mul(mode.devices(0))),
        };
        let sum =
            || self.devices.iter().map(|device| device.xcds).sum::<Option<u32>>().filter(|sum| *sum > 0);
        // Devices may be missing that the kernel had no minor for, and KFD's nodes may be those of another mode while a
        // card is switched.
        self.chip.map(|chip| chip.xcds).or_else(whole).or_else(sum).ok_or_else(|| {
            Unknown::because(format!("how many XCDs {} has: KFD's nodes have no num_xcc", self.pci))
        })
    }

    /// What the kernel decides by.
    ///
    /// # Errors
    /// The card has no partitions, or what decides is not known.
    pub fn rules(&self) -> Reading<Rules> {
        let gfx = self.gfx.clone()?;
        let generation = Generation::of(gfx)
            .ok_or_else(|| Unknown::absent(format!("{} is of {gfx}, which has no partitions", self.pci)))?;
        Ok(Rules { generation, xcds: self.xcds()? })
    }

    /// The compute mode: as the driver reports it, else by the size of the devices that KFD shows.
    ///
    /// # Errors
    /// The reason why the driver's file does not say it, where KFD does not either.
    pub fn compute_mode(&self) -> Reading<Seen<Compute>> {
        let why = match &self.compute {
            Ok(value) => return Ok(Seen { value: *value, is_computed: false }),
            Err(why) => why.clone(),
        };
        let each = self.devices.first().and_then(|device| device.xcds).filter(|count| *count > 0);
        let (Ok(rules), Some(each)) = (self.rules(), each) else { return Err(why) };
        let has_size = |mode: &&Compute| mode.devices(rules.xcds) * each == rules.xcds;
        let mode = rules.compute_modes().iter().find(has_size);
        mode.map(|value| Seen { value: *value, is_computed: true }).ok_or(why)
    }

    /// The memory of the whole card in bytes: as the driver reports it, else the chip's.
    ///
    /// # Errors
    /// The reason why the driver's file does not say it, where the chip is not known.
    pub fn whole_memory(&self) -> Reading<Seen<u64>> {
        match (&self.memory_bytes, self.chip) {
            (Ok(value), _) => Ok(Seen { value: *value, is_computed: false }),
            (Err(_), Some(chip)) => Ok(Seen { value: chip.memory_bytes, is_computed: true }),
            (Err(why), None) => Err(why.clone()),
        }
    }

    /// The memory of one of the card's devices in bytes: as KFD reports it, else the card's divided by its devices.
    ///
    /// # Errors
    /// The reason why neither is known.
    pub fn memory_of(&self, device: &Device) -> Reading<Seen<u64>> {
        match &device.memory_bytes {
            Ok(value) => Ok(Seen { value: *value, is_computed: false }),
            Err(why) => {
                let devices = self.expected_devices().map_err(|_| why.clone())?;
                let whole = self.whole_memory().map_err(|_| why.clone())?;
                Ok(Seen { value: whole.value / u64::from(devices.max(1)), is_computed: true })
            }
        }
    }

    /// How many devices the card is in its compute mode, whether the kernel shows them or not.
    ///
    /// # Errors
    /// The mode or the number of XCDs is not known.
    pub fn expected_devices(&self) -> Reading<u32> {
        Ok(self.compute_mode()?.value.devices(self.xcds()?))
    }

    /// Every combination that the card's modes make, the fewest devices first.
    ///
    /// # Errors
    /// The card has no partitions, or what decides is not known.
    pub fn combinations(&self) -> Reading<Vec<Combination>> {
        let rules = self.rules()?;
        let whole = self.whole_memory().ok().map(|seen| seen.value);
        let memory_modes = self.memory_modes(rules);
        let current = self.compute_mode().ok().map(|seen| seen.value);
        let mut all = Vec::new();
        for compute in rules.compute_modes().iter().copied() {
            let devices = compute.devices(rules.xcds);
            for memory in memory_modes.iter().copied() {
                // A device has no part of a domain that it shares with no other: more domains than devices are not.
                let parts =
                    if self.shares_domains { memory.domains() } else { devices.max(memory.domains()) };
                all.push(Combination {
                    compute,
                    memory,
                    devices,
                    xcds: rules.xcds / devices.max(1),
                    memory_bytes: whole.map(|whole| whole / u64::from(parts.max(1))),
                    is_allowed: self.allows(rules, compute, memory),
                    is_validated: self.chip.is_some_and(|chip| chip.has_validated(compute, memory)),
                    is_current: (current, self.memory.as_ref().ok()) == (Some(compute), Some(&memory)),
                });
            }
        }
        Ok(all)
    }

    /// The memory modes that the card can have: those that the driver lists. Without its list, the present one alone; and
    /// where that is not known either, those of the kernel's rules.
    fn memory_modes(&self, rules: Rules) -> Vec<Memory> {
        match (&self.memory_available, &self.memory) {
            (Ok(listed), _) => listed.clone(),
            (Err(_), Ok(current)) => vec![*current],
            (Err(_), Err(_)) => {
                let all = rules.compute_modes().iter().flat_map(|mode| rules.memory_modes(*mode));
                let by_domains: BTreeMap<u32, Memory> = all.map(|mode| (mode.domains(), *mode)).collect();
                by_domains.into_values().collect()
            }
        }
    }

    /// Whether the kernel allows both modes together and lists each for this card.
    fn allows(&self, rules: Rules, compute: Compute, memory: Memory) -> bool {
        let is_listed = self.compute_supported.as_ref().map_or(true, |listed| listed.contains(&compute));
        // What the driver takes under the present memory mode says nothing of another.
        let is_taken = self.memory.as_ref() != Ok(&memory)
            || self.compute_available.as_ref().map_or(true, |listed| listed.contains(&compute));
        rules.allow(compute, memory) && is_listed && is_taken
    }
}
