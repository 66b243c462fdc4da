//! What a message means for this machine: which GPU it is, what a reset takes down, which commands to type.

use amdgpu::Address;
use kernel_log::knowledge::{Class, Message};
use serde::Serialize;

use super::here::{Card, Here, Place};

/// What this machine adds to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The GPU that the line names, or the one beneath the port that it names.
    pub gpu: Option<String>,
    /// The indexes of all entries of its card; `None`: this machine has no such card.
    pub indexes: Option<Vec<u32>>,
    /// The card's XGMI hive, in 16 hexadecimal digits.
    pub hive: Option<String>,
    /// What a reset of that GPU resets: every entry of its card, and of each card of its hive.
    pub takes_down: Vec<TakenDown>,
    pub commands: Vec<Command>,
    /// What else is to be known of this machine, a sentence each.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TakenDown {
    pub gpu: String,
    pub index: u32,
}

/// What to type, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    #[serde(rename = "for")]
    pub purpose: Purpose,
    pub run: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    Look,
    Drain,
    Reset,
}

impl Purpose {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Drain => "drain",
            Self::Reset => "reset",
        }
    }
}

impl Advice {
    /// `address`: what the line names, if anything.
    #[must_use]
    pub fn of(message: &Message, address: Option<Address>, here: &Here) -> Self {
        let mut notes: Vec<String> = here.unknown.iter().map(|why| unread(why)).collect();
        let place = address.map(|address| (address, here.place(address)));
        let card = match &place {
            Some((_, Place::Card(card))) => Some(*card),
            Some((address, Place::Above(cards))) => {
                notes.push(above(*address, cards));
                if let [card] = **cards { Some(card) } else { None }
            }
            Some((address, Place::Other)) => {
                notes.push(format!("{address} is a device of this machine, and no AMD GPU."));
                None
            }
            Some((address, Place::Absent)) => {
                notes.push(format!(
                    "This machine has no GPU {address}: the log is another machine's, or the GPU has gone."
                ));
                None
            }
            Some((_, Place::Unknown)) | None => None,
        };
        let taken = card.map(|card| here.reset_with(card)).unwrap_or_default();
        let gpu = card.map(|card| card.address).or(address);
        let mut commands = looks(message, gpu, card);
        if message.drain && (card.is_some() || matches!(place, Some((_, Place::Above(_))))) {
            commands.extend(drains(here));
        }
        if let Some(card) = card.filter(|_| message.reset && message.class != Class::ResetRecovered) {
            let resets = resets(card, here);
            if resets.is_empty() {
                notes.push(
                    "Neither amd-smi nor rocm-smi is installed here: a restart of the machine resets the GPU."
                        .to_owned(),
                );
            }
            commands.extend(resets);
        }
        Self {
            gpu: gpu.map(|address| address.to_string()),
            indexes: card.map(|card| card.entries.iter().map(|entry| entry.index).collect()),
            hive: card.and_then(|card| card.hive).map(|hive| format!("{hive:016x}")),
            takes_down: taken.into_iter().flat_map(taken_down).collect(),
            commands,
            notes,
        }
    }
}

fn unread(why: &str) -> String {
    format!("What this machine has is not known: {why}.")
}

fn taken_down(card: &Card) -> impl Iterator<Item = TakenDown> {
    let gpu = card.address.to_string();
    card.entries.iter().map(move |entry| TakenDown { gpu: gpu.clone(), index: entry.index })
}

fn above(address: Address, cards: &[&Card]) -> String {
    let names: Vec<String> = cards.iter().map(|card| card.address.to_string()).collect();
    match &*names {
        [name] => format!("{address} is a port above GPU {name}."),
        names => format!("{address} is a port above {} GPUs: {}.", names.len(), names.join(", ")),
    }
}

/// The message's own commands; one for which something is not known is left out. A partitioned card's are for its first
/// entry: the card's files are there.
fn looks(message: &Message, gpu: Option<Address>, card: Option<&Card>) -> Vec<Command> {
    let entry = card.and_then(|card| card.entries.first());
    let values = [
        ("{pci}", gpu.map(|address| address.to_string())),
        ("{render}", entry.and_then(|entry| entry.render.clone())),
        ("{index}", entry.map(|entry| entry.index.to_string())),
    ];
    let filled = |command: &String| {
        values.iter().try_fold(command.clone(), |text, (name, value)| match value {
            Some(value) => Some(text.replace(name, value)),
            None => (!text.contains(name)).then_some(text),
        })
    };
    let runs = message.commands.iter().filter_map(filled);
    runs.map(|run| Command { purpose: Purpose::Look, run }).collect()
}

fn drains(here: &Here) -> Vec<Command> {
    let name = |otherwise: &str| here.name.clone().unwrap_or_else(|| otherwise.to_owned());
    let worker = here.is_worker.then(|| format!("fly -t TARGET land-worker --worker {}", name("NAME")));
    let node = here.is_node.then(|| format!("kubectl drain {} --ignore-daemonsets", name("NODE")));
    let runs = worker.into_iter().chain(node).chain(["rocworker lease list".to_owned()]);
    runs.map(|run| Command { purpose: Purpose::Drain, run }).collect()
}

/// rocm-smi takes no address: its own numbers are asked for first.
fn resets(card: &Card, here: &Here) -> Vec<Command> {
    let runs = match (here.has_amd_smi, here.has_rocm_smi) {
        (true, _) => vec![format!("amd-smi reset --gpureset --gpu {}", card.address)],
        (false, true) => vec!["rocm-smi --showbus".to_owned(), "rocm-smi --gpureset -d N".to_owned()],
        (false, false) => Vec::new(),
    };
    runs.into_iter().map(|run| Command { purpose: Purpose::Reset, run }).collect()
}
