//! How far a switch has come, on disk: a killed one is finished by the next.

use inventory::PciAddress;
use inventory::partitioning::{Card, Compute, Entry, Memory, Modes, Selector};
use root::{Attributes, Root};
use serde::{Deserialize, Serialize};

const PATH: &str = "/var/lib/rocworker/partition.json";
const SCHEMA_VERSION: u32 = 1;
const LIMIT: usize = 1 << 20;

/// A switch of cards, under way or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    schema_version: u32,
    pub goal: Goal,
    pub phase: Phase,
    /// The boot in which it began: no kernel keeps modes over the next.
    pub boot: Option<String>,
    /// When it began: `2026-11-29T15:14:27Z`.
    pub since: String,
    /// Every card of the driver, also where the goal leaves it out.
    pub cards: Vec<CardGoal>,
    /// Every card's modes before the first switch of this boot, for a reset.
    pub before: Vec<CardModes>,
    /// Units that were stopped and are to be started again.
    pub units: Vec<String>,
    /// Why it failed, and what is true now.
    pub problem: Option<String>,
}

/// What a switch is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// A profile of the configuration, by its name.
    Profile(String),
    /// The modes before rocworker's first switch of this boot.
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// It is planned, and nothing is changed.
    Pending,
    /// Units stop, and processes leave the cards.
    Draining,
    /// Modes are written.
    Applying,
    /// The driver is unloaded and loaded, and compute modes are written after that.
    Reloading,
    /// Modes are read back.
    Verifying,
    Succeeded,
    Failed,
}

/// A card's modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardModes {
    pub pci: PciAddress,
    pub compute: Compute,
    /// `None` where the card has no memory modes.
    pub memory: Option<Memory>,
}

/// A card's modes before the switch, and those that it is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardGoal {
    pub pci: PciAddress,
    pub compute: (Compute, Compute),
    pub memory: Option<(Memory, Memory)>,
    /// Whether the goal leaves the card out, which then has its modes again afterwards.
    pub is_skipped: bool,
}

impl Progress {
    pub(super) fn begun(goal: Goal, boot: Option<String>, since: String, cards: Vec<CardGoal>) -> Self {
        let modes = |card: &CardGoal| CardModes {
            pci: card.pci,
            compute: card.compute.0,
            memory: card.memory.map(|(now, _)| now),
        };
        let before = cards.iter().map(modes).collect();
        let (phase, units, problem) = (Phase::Pending, Vec::new(), None);
        Self { schema_version: SCHEMA_VERSION, goal, phase, boot, since, cards, before, units, problem }
    }

    /// Reads the last switch; `None`: there was none.
    ///
    /// # Errors
    /// A sentence on why the file cannot be believed, and what to do.
    pub fn read(root: &Root) -> Result<Option<Self>, String> {
        let wrong = |problem: String| {
            format!("{}: {problem}; it says how far a switch came: remove it", root.shown(PATH).display())
        };
        let bytes = match root.read_trusted(PATH, LIMIT) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let progress: Self = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        if progress.schema_version != SCHEMA_VERSION {
            return Err(wrong(format!(
                "schema_version is {}, and this rocworker reads {SCHEMA_VERSION}",
                progress.schema_version
            )));
        }
        Ok(Some(progress))
    }

    pub(super) fn write(&self, root: &Root) -> anyhow::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        root.write(PATH, &bytes, Attributes { mode: 0o600, owner: None })?;
        Ok(())
    }

    /// Forgets the last switch: a reset, or an undo of the whole machine, has taken it back.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn forget(root: &Root) -> Result<(), root::Error> {
        // An undo of a machine whose cards were never switched makes no call for it.
        if root.is_there(PATH) { root.remove(PATH).map(drop) } else { Ok(()) }
    }

    /// The modes of before, as a profile of the cards that have others now.
    #[must_use]
    pub fn of_before(&self, cards: &[Card]) -> Vec<Entry> {
        let is_so = |modes: &&CardModes| {
            let card = cards.iter().find(|card| card.pci == modes.pci);
            card.is_some_and(|card| {
                card.compute.as_ref() == Ok(&modes.compute)
                    && card.memory.as_ref().ok() == modes.memory.as_ref()
            })
        };
        let entry = |card: &CardModes| {
            let modes = Some(Modes { compute: card.compute, memory: card.memory });
            Entry { cards: Selector::Card(card.pci), modes, count: None }
        };
        self.before.iter().filter(|modes| !is_so(modes)).map(entry).collect()
    }

    /// Whether it has not ended: it is at work, or was killed.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        !matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Each mode that a card does not have as the goal asks, as the end of a sentence.
    #[must_use]
    pub fn wrong(&self, cards: &[Card]) -> Vec<String> {
        let mut wrong = Vec::new();
        for goal in &self.cards {
            let pci = goal.pci;
            let Some(card) = cards.iter().find(|card| card.pci == pci) else {
                wrong.push(format!("{pci} is gone"));
                continue;
            };
            match &card.compute {
                Ok(mode) if *mode == goal.compute.1 => {}
                Ok(mode) => wrong.push(format!("{pci} is in {mode}, not in {}", goal.compute.1)),
                Err(why) => wrong.push(format!("{pci}: {why}")),
            }
            match (goal.memory, &card.memory) {
                (None, _) => {}
                (Some((_, wanted)), Ok(mode)) if *mode == wanted => {}
                (Some((_, wanted)), Ok(mode)) => wrong.push(format!("{pci} is in {mode}, not in {wanted}")),
                (Some(_), Err(why)) => wrong.push(format!("{pci}: {why}")),
            }
        }
        wrong
    }
}

impl Goal {
    /// The command that a person gives for it.
    #[must_use]
    pub fn command(&self) -> String {
        match self {
            Self::Profile(name) => format!("rocworker partition set {name}"),
            Self::Reset => "rocworker partition reset".to_owned(),
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Profile(name) => f.write_str(name),
            Self::Reset => f.write_str("reset"),
        }
    }
}
